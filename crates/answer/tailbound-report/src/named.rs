// SPDX-License-Identifier: MIT OR Apache-2.0
//! The figures of a probe that are no latencies of due events: costs, rates, skews, counts.
//!
//! Units: each figure names its own.
//! Not here: latencies (`table`, `figures`), what tasks did over time (`pictures`).

use tailbound_core::Run;
use tailbound_core::number::Whole as _;
use tailbound_core::record::FigureRecord;
use tailbound_core::units::{format_ns, grouped};

use crate::table::Table;

/// A value with its unit, as people write it.
#[must_use]
pub fn value(v: f64, unit: &str) -> String {
    match unit {
        _ if !v.is_finite() => "unknown".to_owned(),
        "ns" => format_ns(v),
        "%" => format!("{} %", crate::svg::scale::trimmed(v, 3)),
        "1" | "" => count(v),
        other => format!("{} {other}", count(v)),
    }
}

/// Counts whole, with their thousands apart: a figure is no tick of a picture.
fn count(v: f64) -> String {
    if v.abs() < 1000.0 || v.abs() > 1e15 {
        return crate::svg::scale::trimmed(v, 2);
    }
    let whole = grouped(v.abs().round().whole_u64());
    if v < 0.0 { format!("-{whole}") } else { whole }
}

/// `-38 ns to 61 ns`, with the confidence where they are not certain; empty where not known.
#[must_use]
pub fn limits(f: &FigureRecord) -> String {
    let one = |v: f64| value(v, &f.unit);
    let range = match (f.low, f.high) {
        (Some(low), Some(high)) => format!("{} to {}", one(low), one(high)),
        (None, Some(high)) => format!("at most {}", one(high)),
        (Some(low), None) => format!("at least {}", one(low)),
        (None, None) => return String::new(),
    };
    match f.confidence {
        Some(p) => format!("{range} ({} %)", crate::svg::scale::trimmed(p * 100.0, 4)),
        None => range,
    }
}

/// All of them; `None` where the run has none.
#[must_use]
pub fn table(run: &Run) -> Option<Table> {
    if run.figures.is_empty() {
        return None;
    }
    let some = |of: &dyn Fn(&FigureRecord) -> bool| run.figures.iter().any(of);
    let limited = some(&|f| f.low.is_some() || f.high.is_some());
    let noted = some(&|f| !f.note.is_empty());
    let mut head = vec!["figure", "value"];
    head.extend(limited.then_some("limits"));
    head.extend(noted.then_some("what it is"));
    let mut table = Table::new(&head).with_words(&[2, 3]);
    for f in &run.figures {
        let mut row = vec![f.name.clone(), value(f.value, &f.unit)];
        row.extend(limited.then(|| limits(f)));
        row.extend(noted.then(|| f.note.clone()));
        table.row(row);
    }
    Some(table)
}
