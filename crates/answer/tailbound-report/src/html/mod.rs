// SPDX-License-Identifier: MIT OR Apache-2.0
//! The report as one HTML file: works offline, in light and dark, on paper and on a phone,
//! and without script.
//!
//! The markup is XML as well as HTML, so that a test can prove it well
//! formed. A content security policy forbids every fetch and every script but the page's own,
//! which it names by its hash, so that no text of a run could cause one even if it escaped its
//! escaping. Styles may stand in attributes: tables and pictures use them.
//! Not here: pictures (`pictures`), figures (`figures`), words (`digest`).
//! Source: HTML Standard (syntax, `meta` policies), Content Security Policy Level 3.

mod compare;
mod glossary;
mod head;
pub(crate) mod page;
mod sections;

use std::fmt::Write as _;

use serde_json::Value;
use tailbound_core::Run;
use tailbound_stats::Analysis;
use tailbound_stats::compare::{Settings, Systems};

pub use page::{CHART_CSS, CHART_SCRIPT};

use self::compare::RunsOfPage;
use crate::compare::Answer;
use crate::escape::xml;
use page::Page;

/// The page of one run, or of several over one another and then each.
///
/// `names` are the run files' names in the order of `runs`; where one is missing the run's
/// identity stands in.
#[must_use]
pub fn html(runs: &[Analysis<'_>], names: &[String]) -> String {
    page_of(runs, names, None)
}

/// The same under a heading of whoever knows more of several runs than their files: on which systems they were made.
#[must_use]
pub fn html_under(runs: &[Analysis<'_>], names: &[String], heading: &str) -> String {
    page_of(runs, names, Some(heading))
}

fn page_of(runs: &[Analysis<'_>], names: &[String], heading: Option<&str>) -> String {
    let names: Vec<String> = runs
        .iter()
        .enumerate()
        .map(|(i, r)| names.get(i).cloned().unwrap_or_else(|| r.run().header.id.clone()))
        .collect();
    let mut page = Page::default();
    let title = match (runs, names.as_slice()) {
        ([], _) => {
            page.push(
                "<h1>Tailbound report</h1><p>No run was given: there is nothing to report.</p>",
            );
            "no run".to_owned()
        }
        ([run], [name]) => {
            sections::run(&mut page, run, name, "r0");
            format!("{}: {name}", run.outcome().word())
        }
        _ => {
            let given: Vec<(String, Vec<Run>)> =
                names.iter().cloned().zip(runs.iter().map(|r| vec![r.run().clone()])).collect();
            match Systems::of(&given, &[]) {
                Ok(systems) => {
                    let answer = Answer::of(systems, Settings::default());
                    compare::overview(&mut page, &answer, runs_of(&answer), heading);
                }
                Err(why) => {
                    heading.into_iter().for_each(|words| {
                        let _ = write!(page.body, "<h1>{}</h1>", xml(words));
                    });
                    page.text("note", &format!("Not compared: {why}."));
                }
            }
            for (i, (run, name)) in runs.iter().zip(&names).enumerate() {
                let _ = write!(page.body, "<div class=\"run\" id=\"run-{i}\">");
                sections::run(&mut page, run, name, &format!("r{i}"));
                page.push("</div>");
            }
            format!("comparison of {} runs", runs.len())
        }
    };
    let reports: Vec<Value> = runs.iter().map(crate::json::json).collect();
    page.finish(&title, &reports)
}

/// Where every system is a single run, those follow.
fn runs_of(answer: &Answer) -> RunsOfPage {
    if answer.single_runs() { RunsOfPage::Below } else { RunsOfPage::Absent }
}

/// The page of a comparison.
#[must_use]
pub fn comparison(answer: &Answer) -> String {
    let mut page = Page::default();
    let runs = runs_of(answer);
    compare::overview(&mut page, answer, runs, None);
    let mut reports = vec![answer.json()];
    if runs == RunsOfPage::Below {
        for (i, run) in answer.systems.wholes.iter().enumerate() {
            let _ = write!(page.body, "<div class=\"run\" id=\"run-{i}\">");
            let name = answer.systems.systems.get(i).map_or("", |s| s.name.as_str());
            let analysis = Analysis::of(run);
            sections::run(&mut page, &analysis, name, &format!("r{i}"));
            page.push("</div>");
            reports.push(crate::json::json(&analysis));
        }
    }
    page.finish(&format!("comparison of {} systems", answer.systems.systems.len()), &reports)
}

/// The body of a comparison in a page of something else.
pub(crate) fn compared(page: &mut Page, answer: &Answer) {
    compare::overview(page, answer, RunsOfPage::Absent, None);
}
