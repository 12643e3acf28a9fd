// SPDX-License-Identifier: MIT OR Apache-2.0
//! A matrix as one HTML file: the worst of each cell at a glance, then for each load two
//! pictures with axes in common and six statistics.
//!
//! Shades of the overview repeat its figures and never replace them.
//! Not here: the page itself (`crate::html`), pictures (`pictures`).

use std::fmt::Write as _;

use super::grid::{Cell, CellFigures, Grid, GridSlot, Variant, load_name};
use super::{json, notes, sections, tables};
use crate::escape::xml;
use crate::html::page::Page;
use crate::pictures::{self, Multiple};
use crate::svg::Layout;
use tailbound_core::number::Real as _;

/// The page of a matrix; needs nothing else.
#[must_use]
pub fn html(cells: &[Cell]) -> String {
    let mut page = Page::default();
    if cells.is_empty() {
        page.push("<h1>Tailbound matrix</h1><p>No cell was given: there is nothing to show.</p>");
        return page.finish("empty matrix", &[]);
    }
    let grid = Grid::of(cells);
    let title = title(&grid);
    let _ = write!(page.body, "<h1>Tailbound matrix: {}</h1>", xml(&title));
    let _ = write!(
        page.body,
        "<div class=\"verdict measured\"><p>{}</p></div>",
        xml(&notes::headline(&grid))
    );
    if let Some(words) = notes::virtual_time(&grid) {
        page.text("virtual", &words);
    }
    if let Some(words) = notes::shared_options(&grid) {
        page.text("soft", &words);
    }
    page.heading("Maximum latency of each cell");
    overview(&mut page, &grid, |m| m.summary.max_ns.map(|n| n.real()), tables::max);
    page.heading("Standard deviation of each cell");
    overview(&mut page, &grid, |m| m.summary.sd_ns, tables::sd);
    page.text("soft", "Darker red means a larger figure, on a logarithmic scale.");
    let notes = notes::notes(&grid);
    if !notes.is_empty() {
        page.heading("Note");
        page.list(&notes);
    }
    if let Some(table) = sections::table(&grid) {
        page.heading(sections::TITLE);
        let table = table.html();
        let _ = write!(page.body, "<div class=\"cells\">{table}</div>");
    }
    loads(&mut page, &grid);
    page.heading("Every cell");
    let table = tables::cells(&grid).html();
    let _ = write!(page.body, "<div class=\"cells\">{table}</div>");
    let report = json::of(&grid);
    page.finish(&title, &[report])
}

/// `3 kernels × 4 loads`
fn title(grid: &Grid) -> String {
    let many = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    format!("{} × {}", many(grid.variants.len(), "kernel"), many(grid.loads.len(), "load"))
}

/// One figure of every place, shaded by its share of the way from the least to the greatest.
fn overview(
    page: &mut Page,
    grid: &Grid,
    value: impl Fn(&CellFigures) -> Option<f64>,
    words: impl Fn(&CellFigures) -> String,
) {
    let known = || {
        let of = |p: &GridSlot| p.measured().and_then(&value).filter(|v| *v > 0.0);
        grid.rows.iter().flatten().filter_map(of).map(f64::ln).collect::<Vec<_>>()
    };
    let least = known().into_iter().fold(f64::INFINITY, f64::min);
    let greatest = known().into_iter().fold(f64::NEG_INFINITY, f64::max);
    page.push(
        "<div class=\"scroll\" tabindex=\"0\"><table class=\"heat\"><thead><tr><th scope=\"col\">kernel</th>",
    );
    for load in &grid.loads {
        let _ = write!(page.body, "<th scope=\"col\">{}</th>", xml(load_name(load)));
    }
    page.push("</tr></thead><tbody>");
    for (variant, row) in grid.variants.iter().zip(&grid.rows) {
        let _ = write!(page.body, "<tr><th scope=\"row\">{}</th>", swatch(variant));
        for place in row {
            let Some(m) = place.measured() else {
                let _ = write!(page.body, "<td class=\"failed\">{}</td>", tables::without(place));
                continue;
            };
            let share = value(m).filter(|v| *v > 0.0 && greatest > least);
            let share = share.map_or(0.0, |v| (v.ln() - least) / (greatest - least));
            let _ = write!(page.body, "<td style=\"--h:{share:.2}\">{}</td>", xml(&words(m)));
        }
        page.push("</tr>");
    }
    page.push("</tbody></table></div>");
}

/// A piece of the variant's line before its name.
fn swatch(variant: &Variant) -> String {
    format!(
        "<span class=\"tb swatch\"><svg viewBox=\"0 0 24 8\" aria-hidden=\"true\"><path class=\"s thick {}\"{} d=\"M0 4h24\"/></svg></span>{}",
        variant.look.class(),
        variant.look.dash(),
        xml(&variant.name())
    )
}

/// For each load its pictures and figures.
fn loads(page: &mut Page, grid: &Grid) {
    let all: Vec<_> = (0..grid.loads.len()).flat_map(|load| grid.series(load)).collect();
    let multiple = Multiple::of(&all, Layout::HALF);
    page.heading("Load by load");
    page.text("soft", &format!("Latency histogram: {}", lower(pictures::HISTOGRAM_EXPLANATION)));
    page.text(
        "soft",
        &format!("Exceedance (complementary CDF): {}", lower(pictures::SURVIVAL_EXPLANATION)),
    );
    page.text(
        "soft",
        "All plots have the same axes. Every due activation is counted, missed ones too.",
    );
    for (i, load) in grid.loads.iter().enumerate() {
        page.heading(load_name(load));
        let series = grid.series(i);
        let pictures = multiple.as_ref().map(|m| {
            let deadline = grid.deadline_ns();
            [
                pictures::late_multiple(&series, deadline, m),
                pictures::survival_multiple(&series, deadline, m),
            ]
        });
        let pictures: Vec<_> = pictures.into_iter().flatten().flatten().collect();
        if pictures.is_empty() {
            page.text("note", "No picture: nothing was measured under this load.");
        } else {
            page.push("<section class=\"multiples\">");
            pictures.iter().for_each(|f| page.figure(f, &format!("l{i}")));
            page.push("</section>");
        }
        let table = tables::statistics(grid, i).html();
        page.push(&table);
    }
}

/// A sentence that goes on after a colon.
fn lower(sentence: &str) -> String {
    let mut letters = sentence.chars();
    let first = letters.next().map(|c| c.to_lowercase().to_string()).unwrap_or_default();
    format!("{first}{}", letters.as_str())
}
