// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plain table: figures of every system with their ratio to the first, without intervals.
//!
//! Not here: what can be said of a difference ([`super::answer`]).

use tailbound_core::units::grouped;
use tailbound_core::{Context, Run};
use tailbound_stats::Comparison;
use tailbound_stats::compare::{Cell, ComparedContext};

use crate::table::Table;
use crate::{figures, unitless};

/// The comparison itself; names are file names, as a rule.
#[must_use]
pub fn comparison(runs: &[Run], names: &[String]) -> Comparison {
    let name = |i: usize| names.get(i).map_or("unnamed", String::as_str);
    let pairs: Vec<(&str, &Run)> = runs.iter().enumerate().map(|(i, r)| (name(i), r)).collect();
    tailbound_stats::compare(&pairs)
}

/// Standard figures of every run, per due activation, with the ratio to the first.
#[must_use]
pub fn table(c: &Comparison) -> Table {
    let mut table = Table::new(&["per due activation"]);
    for (i, run) in c.runs.iter().enumerate() {
        table.head.push(run.label.clone());
        if i > 0 {
            table.head.push("ratio".to_owned());
        }
    }
    let mut contexts: Vec<Context> = c.rows.iter().map(|r| r.context).collect();
    contexts.dedup();
    for context in &contexts {
        let name = |statistic: &str| {
            if contexts.len() > 1 {
                format!("{context}: {statistic}")
            } else {
                statistic.to_owned()
            }
        };
        for (statistic, of) in
            [("n", (|c| c.due) as fn(&ComparedContext) -> u64), ("missed", |c| c.missed)]
        {
            let mut cells = vec![name(statistic)];
            for (i, run) in c.runs.iter().enumerate() {
                let found = run.contexts.iter().find(|k| k.context == *context);
                cells.push(found.map_or_else(|| "not applicable".to_owned(), |k| grouped(of(k))));
                if i > 0 {
                    cells.push(String::new());
                }
            }
            table.row(cells);
        }
        for row in c.rows.iter().filter(|r| r.context == *context) {
            let mut cells = vec![name(&row.statistic)];
            for (i, cell) in row.cells.iter().enumerate() {
                cells.push(match cell.value.ns() {
                    Some(v) if row.unit == "none" => unitless::unitless(Some(v)),
                    _ => figures::quantile(Some(cell.value)),
                });
                if i > 0 {
                    let bare = row.unit == "none";
                    cells.push(if bare { String::new() } else { ratio(row.cells.first(), cell) });
                }
            }
            table.row(cells);
        }
    }
    table
}

fn ratio(first: Option<&Cell>, cell: &Cell) -> String {
    match (cell.ratio, first.and_then(|f| f.value.ns())) {
        (Some(r), _) => format!("× {r:.2}"),
        // There is no ratio to nothing or to an early value.
        (None, Some(first)) if first <= 0.0 => "not applicable".to_owned(),
        _ => "unknown".to_owned(),
    }
}
