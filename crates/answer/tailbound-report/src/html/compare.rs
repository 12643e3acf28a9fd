// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first part of a page of several systems: the answer, pictures, intervals, figures, and
//! in what the systems differ.

use std::fmt::Write as _;

use tailbound_stats::compare::Word;

use super::page::Page;
use super::sections;
use crate::compare::{Answer, plain};
use crate::escape::xml;
use crate::pictures;

/// Where a page has the runs that it compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunsOfPage {
    /// Below, each with an anchor.
    Below,
    /// Not in it.
    Absent,
}

/// What is said of all systems together; `heading`: in other words than how many systems there are.
pub(super) fn overview(page: &mut Page, answer: &Answer, runs: RunsOfPage, heading: Option<&str>) {
    let systems = &answer.systems;
    let own = || format!("{} systems compared", systems.systems.len());
    let words = heading.map_or_else(own, str::to_owned);
    let _ = write!(page.body, "<h1>Tailbound: {}</h1>", xml(&words));
    for (word, words, _) in answer.statements() {
        let (class, shown) = match word {
            Some(Word::Regression) => ("not-met", "regression"),
            Some(Word::Improvement) => ("met", "improvement"),
            Some(Word::Equivalent) => ("met", "equivalent"),
            Some(Word::Inconclusive) => ("undecided", "inconclusive"),
            None => ("undecided", "no intervals"),
        };
        let _ = write!(
            page.body,
            "<div class=\"verdict {class}\"><span class=\"word\">{shown}</span><p>{}</p></div>",
            xml(&words)
        );
    }
    for i in 0..answer.differences.len() {
        if let Some(table) = answer.table(i) {
            page.push(&table.html());
        }
        page.list(&answer.notes(i));
    }
    page.list(&answer.common_notes());
    page.push("<section class=\"pair\">");
    pictures::compared::all(answer).iter().for_each(|f| page.figure(f, "all"));
    page.push("</section>");
    if systems.deadline_ns.is_none() {
        page.text("note", "No deadline is drawn: the runs have none in common.");
    }
    if answer.single_runs() {
        each(page, answer, runs);
    }
    page.heading("Figures and their ratio to the first system");
    let comparison = plain::comparison(&systems.wholes, &systems.names());
    let table = plain::table(&comparison).html();
    page.push(&table);
    for (name, before, now) in answer.paths() {
        crate::paths::grown_section(page, name, before, now);
    }
    page.heading("Other differences");
    if answer.differing.differing.is_empty() {
        page.text("", "In nothing that was recorded of plan and machine.");
    } else {
        let table = answer.differing.table(&systems.names()).html();
        let _ = write!(page.body, "<div class=\"facts\">{table}</div>");
    }
    if let Some(words) = answer.differing.left_out_words() {
        page.text("note", &words);
    }
}

/// The verdict of each run.
fn each(page: &mut Page, answer: &Answer, runs: RunsOfPage) {
    page.heading("Each run");
    for (i, (run, system)) in answer.systems.wholes.iter().zip(&answer.systems.systems).enumerate()
    {
        let name = xml(&system.name);
        let name = match runs {
            RunsOfPage::Below => format!("<a href=\"#run-{i}\">{name}</a>"),
            RunsOfPage::Absent => name,
        };
        sections::verdict_after(page, &format!("{name}:"), run);
    }
}
