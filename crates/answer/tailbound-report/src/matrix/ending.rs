// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a command that made cells ends with: one answer, one page, and the worst of their exit statuses.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tailbound_stats::Analysis;

use super::{Cell, html};
use crate::text::Style;

/// Exit status of a cell without a run.
const FAILED: u8 = 3;
/// Failed, not met, undecided, met.
const WORST_FIRST: [u8; 4] = [FAILED, 1, 5, 0];

/// The page of these cells; of a single run its own report.
#[must_use]
pub fn page(cells: &[Cell]) -> String {
    match cells {
        [Cell { run: Ok(run), file, .. }] => {
            let name = file.clone().unwrap_or_else(|| run.header.id.clone());
            crate::html(&[Analysis::of(run)], &[name])
        }
        _ => html(cells),
    }
}

/// The worst of the cells' exit statuses; none is right where there is no cell.
#[must_use]
pub fn exit_status(cells: &[Cell]) -> u8 {
    let status = |cell: &Cell| match &cell.run {
        Ok(run) => run.verdict.as_ref().map_or(0, |v| v.outcome.exit_status()),
        Err(_) => FAILED,
    };
    let all: Vec<u8> = cells.iter().map(status).collect();
    WORST_FIRST.into_iter().find(|s| all.contains(s)).unwrap_or(4)
}

/// The answer of these cells for scripts, each with what it cost; of a single run its own.
#[must_use]
pub fn answer_json(cells: &[Cell], costs: Vec<Value>) -> Value {
    if let [Cell { run: Ok(run), .. }] = cells {
        let mut answer = crate::json(&Analysis::of(run));
        answer["lab_cost"] = costs.into_iter().next().unwrap_or_default();
        return answer;
    }
    let mut answer = super::json(cells);
    let made = answer.get_mut("cells").and_then(Value::as_array_mut);
    for (cell, cost) in made.into_iter().flatten().zip(costs) {
        cell["lab_cost"] = cost;
    }
    answer
}

/// The answer of these cells for people; of a single run its own.
#[must_use]
pub fn answer_text(cells: &[Cell], style: Style) -> String {
    match cells {
        [Cell { run: Ok(run), .. }] => crate::text(&Analysis::of(run), style),
        _ => super::text(cells, style),
    }
}

/// Where the run of each cell is, or why there is none, and where the report is.
#[must_use]
pub fn files_text(cells: &[Cell], files: &[PathBuf], report: Option<&Path>) -> String {
    let mut text = String::from("\n");
    for (path, cell) in files.iter().zip(cells) {
        match &cell.run {
            Ok(_) => text.push_str(&format!("Run file  {}\n", path.display())),
            Err(failure) => text.push_str(&format!("Failed    {}\n", failure.why)),
        }
    }
    if let Some(report) = report {
        text.push_str(&format!("Report    {}\n", report.display()));
    }
    text
}
