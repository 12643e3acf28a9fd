// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several runs side by side: figures with their ratio to the first, and in what plan and
//! machine differ.
//!
//! Context: COLD. Not here: overlaid pictures (`pictures::totals`).

use std::collections::BTreeSet;

use tailbound_core::Run;
use tailbound_core::units::grouped;
use tailbound_stats::{STANDARD, Summary, quantile};

use crate::figures;
use crate::table::Table;

struct Column {
    name: String,
    summary: Summary,
}

fn columns(runs: &[Run], names: &[String]) -> Vec<Column> {
    crate::pictures::totals(runs, names)
        .into_iter()
        .map(|s| Column { name: s.name, summary: Summary::of(&s.due) })
        .collect()
}

/// Standard figures of every run, per due activation, with the ratio to the first.
#[must_use]
pub fn table(runs: &[Run], names: &[String]) -> Table {
    let columns = columns(runs, names);
    let mut table = Table::new(&["per due activation"]);
    for (i, c) in columns.iter().enumerate() {
        table.head.push(c.name.clone());
        if i > 0 {
            table.head.push("ratio".to_owned());
        }
    }
    let mut counts = vec!["n".to_owned()];
    for (i, c) in columns.iter().enumerate() {
        counts.push(grouped(c.summary.n));
        if i > 0 {
            counts.push(String::new());
        }
    }
    table.row(counts);
    let mut row = |name: &str, show: &dyn Fn(&Summary) -> (String, Option<f64>)| {
        let mut cells = vec![name.to_owned()];
        let mut first = None;
        for (i, c) in columns.iter().enumerate() {
            let (text, value) = show(&c.summary);
            cells.push(text);
            if i == 0 {
                first = value;
            } else {
                cells.push(ratio(first, value));
            }
        }
        table.row(cells);
    };
    let whole = |v: Option<i64>| {
        let text = v.map_or_else(|| "unknown".to_owned(), tailbound_core::units::format_ns_i64);
        (text, v.map(|v| v as f64))
    };
    let real = |v: Option<f64>| {
        (v.map_or_else(|| "unknown".to_owned(), tailbound_core::units::format_ns), v)
    };
    row("min", &|s| whole(s.min_ns));
    row("mean", &|s| real(s.mean_ns));
    row("sd", &|s| real(s.sd_ns));
    for p in STANDARD {
        row(&quantile::label(p), &|s| {
            let q = s.quantile(p);
            (figures::quantile(q), q.and_then(|q| q.ns()))
        });
    }
    row("max", &|s| whole(s.max_ns));
    table
}

fn ratio(first: Option<f64>, other: Option<f64>) -> String {
    match (first, other) {
        (Some(a), Some(b)) if a > 0.0 && b > 0.0 => format!("× {:.2}", b / a),
        _ => "unknown".to_owned(),
    }
}

/// What to mind when reading the table.
#[must_use]
pub fn notes(_runs: &[Run], _names: &[String]) -> Vec<String> {
    Vec::new()
}

/// Members of plan and machine that are not the same in all runs.
#[must_use]
pub fn differences(runs: &[Run], names: &[String]) -> Table {
    let mut table = Table::new(&["what"]);
    table.head.extend(names.iter().cloned());
    table.words = (1..=names.len()).collect();
    let plans: Vec<serde_json::Value> =
        runs.iter().map(|r| serde_json::to_value(&r.header.plan).unwrap_or_default()).collect();
    let keys: BTreeSet<&String> =
        plans.iter().filter_map(|p| p.as_object()).flat_map(|o| o.keys()).collect();
    for key in keys {
        let cell = |p: &serde_json::Value| match p.get(key) {
            None => "not given".to_owned(),
            Some(serde_json::Value::String(s)) => s.clone(),
            Some(v) => v.to_string(),
        };
        push_if_different(&mut table, &format!("plan: {key}"), plans.iter().map(cell).collect());
    }
    let facts: BTreeSet<&String> = runs.iter().flat_map(|r| r.header.machine.keys()).collect();
    for fact in facts {
        let cell = |r: &Run| {
            let fact = r.header.machine.get(fact);
            fact.map_or_else(
                || "unknown: not recorded".to_owned(),
                tailbound_core::record::Fact::text,
            )
        };
        push_if_different(&mut table, fact, runs.iter().map(cell).collect());
    }
    push_if_different(&mut table, "tool", runs.iter().map(|r| r.header.tool.clone()).collect());
    table
}

fn push_if_different(table: &mut Table, name: &str, cells: Vec<String>) {
    if cells.windows(2).any(|w| w.first() != w.last()) {
        let mut row = vec![name.to_owned()];
        row.extend(cells);
        table.row(row);
    }
}
