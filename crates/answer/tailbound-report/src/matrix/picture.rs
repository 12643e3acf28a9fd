// SPDX-License-Identifier: MIT OR Apache-2.0
//! One picture of a matrix for a README or a mail: every kernel under its first load.

use super::grid::{Cell, Grid};
use crate::pictures;

/// The picture, `histogram` or `survival`, as an SVG document that needs nothing else.
/// `None` for another kind, and where nothing was measured under the first load.
#[must_use]
pub fn svg(cells: &[Cell], kind: &str) -> Option<String> {
    let grid = Grid::of(cells);
    let series = grid.series(0);
    let figure = match kind {
        "histogram" => pictures::late(&series, grid.deadline_ns()),
        "survival" => pictures::survival(&series, grid.deadline_ns()),
        _ => None,
    };
    figure.map(|f| f.standalone())
}
