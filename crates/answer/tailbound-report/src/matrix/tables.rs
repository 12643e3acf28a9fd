// SPDX-License-Identifier: MIT OR Apache-2.0
//! The figures of a matrix as tables of texts.
//!
//! Units: ns in; people's units out.

use tailbound_core::units::grouped;

use super::grid::{CellFigures, Grid, GridSlot, load_name};
use tailbound_stats::loads::{LoadTotal, loads};

use crate::svg::Unit;
use crate::table::Table;
use crate::{digest, figures, label};

/// What is said where there is no figure.
pub(super) fn without(place: &GridSlot) -> &'static str {
    match place {
        GridSlot::Measured(_) => "unknown",
        GridSlot::Failed(_) => "failed",
        GridSlot::NotRun => "not run",
    }
}

/// One figure of every place: kernels down, loads across.
pub(super) fn overview(grid: &Grid, what: &str, of: impl Fn(&CellFigures) -> String) -> Table {
    let mut table = Table::new(&[what]);
    table.head.extend(grid.loads.iter().map(|l| load_name(l).to_owned()));
    for (variant, row) in grid.variants.iter().zip(&grid.rows) {
        let mut cells = vec![variant.name()];
        cells.extend(row.iter().map(|p| p.measured().map_or_else(|| without(p).to_owned(), &of)));
        table.row(cells);
    }
    table
}

/// The latest activation.
pub(super) fn max(m: &CellFigures) -> String {
    figures::whole(m.summary.max_ns)
}

/// The standard deviation.
pub(super) fn sd(m: &CellFigures) -> String {
    figures::real(m.summary.sd_ns)
}

/// Number and six statistics of every kernel under load number `load`.
pub(super) fn statistics(grid: &Grid, load: usize) -> Table {
    // A column of zeros would only push others over the edge of a terminal.
    let any_missed = grid.places().filter_map(|p| p.2.measured()).any(|m| m.missed > 0);
    let mut head = vec!["", "n", "missed", "min", "max", "mean", "mode", "median", "sd"];
    head.retain(|h| any_missed || *h != "missed");
    let mut table = Table::new(&head);
    for (variant, place) in grid.under(load) {
        let mut cells = vec![variant.name()];
        match place.measured() {
            None => {
                cells.push(without(place).to_owned());
                cells.resize(head.len(), "–".to_owned());
            }
            Some(m) => {
                let s = &m.summary;
                cells.push(grouped(s.n));
                cells.extend(any_missed.then(|| grouped(m.missed)));
                cells.extend([
                    figures::whole(s.min_ns),
                    max(m),
                    figures::real(s.mean_ns),
                    figures::mode(s),
                    figures::quantile(Some(s.median)),
                    sd(m),
                ]);
            }
        }
        table.row(cells);
    }
    table
}

/// How each cell came out: verdict, what the loads achieved, what makes it unreliable, its file (of a failed one, whatever it left).
pub(super) fn cells(grid: &Grid) -> Table {
    let head = ["kernel", "load", "outcome", "load achieved", "what makes it unreliable", "file"];
    let mut table = Table::new(&head).with_words(&[1, 2, 3, 4, 5]);
    for (variant, load, place) in grid.places() {
        let mut cells = vec![variant.name(), load_name(load).to_owned()];
        let run = place.measured().and_then(|m| Some((m, grid.run(m)?)));
        match run {
            None => {
                cells.push(match place {
                    GridSlot::Failed(reason) => format!("failed: {reason}"),
                    other => without(other).to_owned(),
                });
                cells.extend(["none", "not applicable"].map(str::to_owned));
                cells.push(grid.file(variant, load).unwrap_or("none").to_owned());
            }
            Some((_, run)) => {
                cells.push(label::outcome(run).word().to_owned());
                let rates: Vec<String> = loads(run).iter().map(rate).collect();
                cells.push(match (rates.is_empty(), run.header.plan.loads.is_empty()) {
                    (true, true) => "no load by Tailbound".to_owned(),
                    (true, false) => "unknown: no record".to_owned(),
                    _ => rates.join(", "),
                });
                let doubts: Vec<&str> =
                    digest::culprits(run).iter().map(|f| f.title.as_str()).collect();
                cells.push(if doubts.is_empty() {
                    "nothing found".to_owned()
                } else {
                    doubts.join("; ")
                });
                cells.push(grid.file(variant, load).unwrap_or(&run.header.id).to_owned());
            }
        }
        table.row(cells);
    }
    table
}

fn rate(load: &LoadTotal) -> String {
    format!("{}: {} {}/s", load.name, Unit::Count.label(load.rate_per_s.round()), load.unit)
}
