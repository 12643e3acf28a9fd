// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a command that made cells ends with: one page, and the worst of their exit statuses.

use tailbound_stats::Analysis;

use super::{Cell, html};

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
