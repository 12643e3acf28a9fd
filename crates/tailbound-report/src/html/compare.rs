// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first part of a page of several runs: verdicts, overlays, ratios, and in what the
//! runs and their machines differ.
//!
//! Context: COLD.

use std::fmt::Write as _;

use tailbound_core::Run;

use super::Page;
use crate::escape::xml;
use crate::{compare, digest, label, pictures};

/// What is said of all runs together.
pub(super) fn overview(page: &mut Page, runs: &[Run], names: &[String]) {
    let _ = write!(page.body, "<h1>Tailbound: {} runs compared</h1>", runs.len());
    for (i, (run, name)) in runs.iter().zip(names).enumerate() {
        let outcome = label::outcome(run);
        let _ = write!(
            page.body,
            "<div class=\"verdict {}\"><span class=\"word\"><a href=\"#run-{i}\">{}</a>: {}</span>\
             <p>{}</p></div>",
            label::outcome_class(outcome),
            xml(name),
            outcome.word(),
            xml(&label::sentence(run))
        );
        page.text("soft", &digest::set_up(run));
        if let Some(words) = digest::virtual_time(run) {
            page.text("virtual", &words);
        }
    }
    let series = pictures::totals(runs, names);
    let deadline = pictures::common_deadline(runs);
    let both = [pictures::late(&series, deadline), pictures::survival(&series, deadline)];
    page.push("<section class=\"pair\">");
    both.iter().flatten().for_each(|f| page.figure(f, "all"));
    if let Some(early) = pictures::early(&series, None) {
        page.figure(&early, "all");
    }
    page.push("</section>");
    if deadline.is_none() {
        page.text("note", "No deadline is drawn: the runs have none in common.");
    }
    page.heading("Figures and their ratio to the first run");
    let comparison = compare::comparison(runs, names);
    let table = compare::table(&comparison).html();
    page.push(&table);
    page.list(&comparison.notes);
    page.heading("In what the runs differ");
    let differences = compare::differences(runs, names);
    if differences.rows.is_empty() {
        page.text("", "In nothing that was recorded of plan and machine.");
    } else {
        let table = differences.html();
        let _ = write!(page.body, "<div class=\"facts\">{table}</div>");
    }
}
