// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which of many changes help: the evidence for each, and what is kept.
//!
//! Ratios are to the untouched system; below 1 is earlier.
//! Not here: the experiment itself, and who decides (`tailbound-series`).

use serde_json::Value;
use tailbound_core::units::format_ns;
use tailbound_stats::compare::sentence::number;
use tailbound_stats::compare::{Difference, Feature};

use crate::compare::Answer;
use crate::html;
use crate::html::page::Page as HtmlPage;
use crate::table::Table;
use crate::text::Style;
use crate::text::ink::Ink;
use crate::text::page::Page;

/// Version of the JSON.
pub const SCHEMA: &str = "tailbound-tune-auto/1";

/// A change and what is known of it.
#[derive(Clone, Debug)]
pub struct Row<'a> {
    /// Its name.
    pub change: String,
    /// What it does.
    pub what: String,
    /// What became of it.
    pub fate: String,
    /// Alone, against the untouched system.
    pub alone: Option<&'a Difference>,
    /// All others without it, against all.
    pub without: Option<&'a Difference>,
    /// What each load did under it, relative to the untouched system.
    pub loads: Vec<(String, f64)>,
}

/// The whole answer.
#[derive(Debug)]
pub struct Experiment<'a> {
    /// The answer in a few sentences.
    pub sentences: Vec<String>,
    /// Every change.
    pub rows: Vec<Row<'a>>,
    /// How it was found out, a sentence each.
    pub design: Vec<String>,
    /// What is kept against the untouched system.
    pub last: Option<&'a Answer>,
    /// All of it for programs.
    pub json: Value,
}

/// The figure that says most of a tail: the highest quantile there is.
fn tail(d: &Difference) -> Option<&Feature> {
    let quantiles = d.features.iter().filter(|f| f.probability.is_some());
    quantiles.max_by(|a, b| a.probability.unwrap_or(0.0).total_cmp(&b.probability.unwrap_or(0.0)))
}

fn cell(feature: Option<&Feature>) -> String {
    let Some(feature) = feature else { return "not measured".to_owned() };
    match &feature.ratio {
        Some(r) => {
            let [low, high] = r.simultaneous;
            format!("{} {} ({} to {})", feature.name, number(r.estimate), number(low), number(high))
        }
        None => format!("{} {}", feature.name, format_ns(feature.b_ns)),
    }
}

fn maximum(d: Option<&Difference>) -> String {
    cell(d.and_then(|d| d.features.iter().find(|f| f.probability.is_none())))
}

impl Experiment<'_> {
    fn table(&self) -> Table {
        let mut table = Table::new(&[
            "change",
            "alone: tail",
            "alone: block maximum",
            "verdict",
            "others without it",
            "loads",
            "result",
        ])
        .with_words(&[3, 6]);
        for row in &self.rows {
            let loads: Vec<String> = row
                .loads
                .iter()
                .map(|(name, ratio)| format!("{name} {}", number(*ratio)))
                .collect();
            table.row(vec![
                row.change.clone(),
                cell(row.alone.and_then(tail)),
                maximum(row.alone),
                row.alone.map_or_else(|| "none".to_owned(), |d| d.word.word().to_owned()),
                row.without.map_or_else(
                    || "not measured".to_owned(),
                    |d| format!("{}, {}", cell(tail(d)), d.word.word()),
                ),
                if loads.is_empty() { "none".to_owned() } else { loads.join(", ") },
                row.fate.clone(),
            ]);
        }
        table
    }

    fn meanings(&self) -> Table {
        let mut table = Table::new(&["change", "what it does"]).with_words(&[1]);
        self.rows.iter().for_each(|r| table.row(vec![r.change.clone(), r.what.clone()]));
        table
    }

    /// For terminals, ending in a newline.
    #[must_use]
    pub fn text(&self, style: Style) -> String {
        let mut page = Page::new(style);
        self.sentences.iter().for_each(|s| page.text(s, "  ", Ink::Bold));
        page.heading("Every change");
        // One short line each: the whole table is in the report.
        for row in &self.rows {
            page.text(&format!("{}: {}", row.change, row.fate), "  ", Ink::Plain);
            if let Some(d) = row.alone {
                let words =
                    format!("  alone: {}; {}: {}", cell(tail(d)), maximum(Some(d)), d.word.word());
                page.text(&words, "    ", Ink::Plain);
            }
            if let Some(d) = row.without {
                let words = format!("  others without it: {}: {}", cell(tail(d)), d.word.word());
                page.text(&words, "    ", Ink::Plain);
            }
        }
        page.heading("How");
        self.design.iter().for_each(|n| page.text(&format!("- {n}"), "  ", Ink::Plain));
        page.finish()
    }

    /// The page.
    #[must_use]
    pub fn html(&self) -> String {
        let mut page = HtmlPage::default();
        page.push("<h1>Tailbound: which changes help</h1>");
        self.sentences.iter().for_each(|s| page.text("", s));
        page.heading("Every change");
        page.text(
            "note",
            "Ratios are to the untouched system, with 95 % intervals: below 1 is earlier. \"Others without it\" compares all \
             that were left but this one with all of them: above 1, it is missed.",
        );
        page.push(&self.table().html());
        page.push(&self.meanings().html());
        page.heading("How");
        page.list(&self.design);
        let mut reports = vec![self.json.clone()];
        if let Some(answer) = self.last {
            html::compared(&mut page, answer);
            reports.push(answer.json());
        }
        page.finish("which changes help", &reports)
    }
}
