// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several runs side by side: figures with their ratio to the first, and in what plan and
//! machine differ.
//!
//! Context: COLD. Not here: overlaid pictures (`pictures::totals`).

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tailbound_core::Run;
use tailbound_core::units::grouped;
use tailbound_stats::Comparison;
use tailbound_stats::compare::{Cell, ComparedContext};

use crate::table::Table;
use crate::text::Style;
use crate::text::ink::Ink;
use crate::text::report::{Page, outcome_ink};
use crate::{digest, figures, label};

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
    let mut contexts: Vec<&str> = c.rows.iter().map(|r| r.context.as_str()).collect();
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
                cells.push(figures::quantile(Some(cell.value)));
                if i > 0 {
                    cells.push(ratio(row.cells.first(), cell));
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

/// The comparison for scripts: `schema`, `runs`, `rows` and `notes` of
/// [`tailbound_stats::Comparison`], and `verdicts` (outcome, exit status, sentence of each run).
#[must_use]
pub fn json(runs: &[Run], names: &[String]) -> Value {
    let c = comparison(runs, names);
    let verdict = |r: &Run| {
        let outcome = label::outcome(r);
        json!({"outcome": outcome, "exit_status": outcome.exit_status(), "sentence": label::sentence(r)})
    };
    json!({
        "schema": "tailbound-compare/1",
        "runs": c.runs,
        "rows": c.rows,
        "notes": c.notes,
        "verdicts": runs.iter().map(verdict).collect::<Vec<_>>(),
    })
}

/// The comparison for terminals, ending in a newline.
#[must_use]
pub fn text(runs: &[Run], names: &[String], style: Style) -> String {
    let mut page = Page::new(style);
    let c = comparison(runs, names);
    for (run, compared) in runs.iter().zip(&c.runs) {
        page.text(&compared.label, "  ", Ink::Bold);
        let ink = outcome_ink(label::outcome(run));
        page.text(&format!("  {}", digest::headline(run)), "  ", ink);
        if let Some(words) = digest::virtual_time(run) {
            page.text(&format!("  {words}"), "  ", Ink::Plain);
        }
    }
    page.gap();
    let lines = table(&c).text(page.width());
    page.raw(lines, Ink::Plain);
    page.gap();
    c.notes.iter().for_each(|n| page.text(&format!("- {n}"), "  ", Ink::Plain));
    let differences = differences(runs, names);
    if differences.rows.is_empty() {
        page.text("- Plan and machine differ in nothing that was recorded.", "  ", Ink::Plain);
    } else {
        page.heading("In what the runs differ");
        for row in &differences.rows {
            let mut cells = row.iter();
            page.text(cells.next().map_or("", String::as_str), "  ", Ink::Plain);
            for (cell, run) in cells.zip(&c.runs) {
                page.text(&format!("  {}: {cell}", run.label), "    ", Ink::Plain);
            }
        }
    }
    page.finish()
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
