// SPDX-License-Identifier: MIT OR Apache-2.0
//! A choice as one HTML file and as JSON.

use serde_json::{Value, json};
use tailbound_stats::decide::{Choice, Crossing};

use super::{delay, flow, rates, sleepers, tables, text};
use crate::html::page::Page;
use crate::pictures::Figure;
use crate::table::Table;

/// Version of the shape of the JSON.
pub const SCHEMA: &str = "tailbound-decide/1";

/// Every picture that the data has.
#[must_use]
pub fn figures(choice: &Choice) -> Vec<Figure> {
    let mut out = vec![flow::figure(choice)];
    out.extend((0..choice.benchmarks.len()).filter_map(|i| delay::figure(choice, i)));
    out.extend(rates::figure(choice));
    out.extend(sleepers::figure(choice));
    out
}

/// The choice for scripts: `schema`, `recommendation` and everything it rests on.
#[must_use]
pub fn json(choice: &Choice) -> Value {
    json!({
        "schema": SCHEMA,
        "recommendation": {
            "advice": choice.path.advice,
            "words": text::headline(&choice.path),
            "because": choice.path.because,
            "certain": choice.path.certain,
            "would_change": choice.path.would_change,
        },
        "choice": choice,
    })
}

/// The page.
#[must_use]
pub fn html(choice: &Choice) -> String {
    let mut page = Page::default();
    page.push("<h1>Tailbound: real time or real fast?</h1><div class=\"verdict measured\">");
    page.text("word", &format!("{} and {}", choice.real.name, choice.fast.name));
    page.text("", &text::headline(&choice.path));
    page.push("</div>");
    page.text("", &choice.path.because);
    if !choice.path.would_change.is_empty() {
        page.heading("What would change the recommendation");
        page.list(&choice.path.would_change);
    }
    chart(&mut page, &flow::figure(choice));
    if !choice.benchmarks.is_empty() {
        page.heading("Throughput");
        page.list(
            &choice.benchmarks.iter().map(|w| tables::sentence(w, choice)).collect::<Vec<_>>(),
        );
        for w in &choice.benchmarks {
            page.push("<h3>");
            page.push(&crate::escape::xml(&w.spec));
            page.push("</h3>");
            fitting(&mut page, &tables::benchmark(w, choice));
        }
    }
    if choice.real.latency.is_some() || choice.fast.latency.is_some() {
        page.heading("Start latency");
        fitting(&mut page, &tables::latency(choice));
        for side in [&choice.fast, &choice.real] {
            if let Some(l) = &side.latency {
                page.text("soft", &format!("{}: intervals {}.", side.name, l.intervals));
            }
        }
    }
    delays(&mut page, choice);
    for figure in [rates::figure(choice), sleepers::figure(choice)].into_iter().flatten() {
        page.heading(&figure.title);
        page.figure(&figure, "decide");
    }
    if !choice.notes.is_empty() {
        page.heading("Notes");
        page.list(&choice.notes);
    }
    let title = text::headline(&choice.path);
    page.finish(title.trim_end_matches('.'), &[json(choice)])
}

/// A table of few columns: on a narrow screen its cells break into lines instead of scrolling under
/// the column of names.
fn fitting(page: &mut Page, table: &Table) {
    page.push("<div class=\"fits\">");
    page.push(&table.html());
    page.push("</div>");
}

/// A picture without values: there is nothing for the script to read out.
fn chart(page: &mut Page, figure: &Figure) {
    page.push("<figure><h3>");
    page.push(&crate::escape::xml(&figure.title));
    page.push("</h3>");
    page.push(&figure.wide);
    page.push(&figure.narrow);
    page.push("<details><summary>The answers</summary>");
    fitting(page, &figure.table);
    page.push("</details></figure>");
}

fn delays(page: &mut Page, choice: &Choice) {
    let crossed = |w: &tailbound_stats::decide::choice::BenchmarkChoice| !w.delays.is_empty();
    if !choice.benchmarks.iter().any(crossed) {
        return;
    }
    page.heading("Total delay over the length of a work item");
    fitting(page, &tables::breakeven(choice));
    page.text("soft", text::INTERVALS);
    let reversed = choice.benchmarks.iter().flat_map(|w| &w.delays);
    if reversed.into_iter().any(|d| matches!(d.crossing, Crossing::Reversed { .. })) {
        page.text("soft", "Reversed: real fast is done first below that length, real time above.");
    }
    for figure in (0..choice.benchmarks.len()).filter_map(|i| delay::figure(choice, i)) {
        page.figure(&figure, "decide");
    }
}
