// SPDX-License-Identifier: MIT OR Apache-2.0
//! A matrix for terminals: the worst of each cell, then six statistics load by load.

use super::grid::{Cell, Grid, load_name};
use super::{notes, sections, tables};
use crate::text::Style;
use crate::text::ink::Ink;
use crate::text::page::Page;

/// The matrix as text, ending in a newline. Figures are per due activation.
#[must_use]
pub fn text(cells: &[Cell], style: Style) -> String {
    let mut page = Page::new(style);
    if cells.is_empty() {
        page.text("No cell was given: there is nothing to show.", "", Ink::Plain);
        return page.finish();
    }
    let grid = Grid::of(cells);
    page.text(&notes::headline(&grid), "  ", Ink::Bold);
    if let Some(words) = notes::virtual_time(&grid) {
        page.text(&words, "  ", Ink::Bold);
    }
    if let Some(words) = notes::shared_options(&grid) {
        page.text(&words, "  ", Ink::Plain);
    }
    page.gap();
    let lines = tables::overview(&grid, "latest", tables::max).text(page.width());
    page.raw(lines, Ink::Plain);
    for (i, load) in grid.loads.iter().enumerate() {
        page.heading(&format!("{}, per due activation", load_name(load)));
        let lines = tables::statistics(&grid, i).text(page.width());
        page.raw(lines, Ink::Plain);
    }
    if let Some(table) = sections::table(&grid) {
        page.heading(sections::TITLE);
        page.raw(crate::blame::hanging(&table, page.width()), Ink::Plain);
    }
    let notes = notes::notes(&grid);
    if !notes.is_empty() {
        page.heading("Note");
        notes.iter().for_each(|n| page.text(&format!("- {n}"), "  ", Ink::Warn));
    }
    page.finish()
}
