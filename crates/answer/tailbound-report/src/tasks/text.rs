// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads as tasks, for a terminal.

use tailbound_core::Outcome;
use tailbound_core::units::{format_ns_i64, format_span, grouped};
use tailbound_stats::tasks::{Bound, ResponseTimes};

use super::{TaskReport, rows};
use crate::table::{Table, columns};
use crate::text::Style;
use crate::text::ink::Ink;
use crate::text::page::{Page, outcome_ink};

/// Widest bar.
const BAR_MAX: usize = 60;

/// The whole answer; ends in a newline.
#[must_use]
pub fn text(told: &TaskReport<'_>, style: Style) -> String {
    let mut page = Page::new(style);
    let outcome = told.answer.outcome();
    page.text(&format!("{}: {}", told.name, sentence(told.answer)), "  ", outcome_ink(outcome));
    page.heading("Model");
    table(&mut page, &rows::model(&told.model.tasks));
    if told.model.tasks.iter().any(|t| t.own_execution_ns.is_some()) {
        let words = "On CPU: its own execution and the interrupts that hit it there; bounds are computed from this.";
        page.text(words, "  ", Ink::Dim);
    }
    if !told.records.is_empty() {
        page.gap();
        table(&mut page, &rows::evidence(told.records, &told.model.tasks));
    }
    page.heading("Bounds of response times");
    table(&mut page, &rows::bounds(told.answer));
    details(&mut page, told.answer);
    if let Some((changes, answer)) = &told.what_if {
        page.heading(&format!("What if {}", changes.join(" and ")));
        page.text(&sentence(answer), "  ", outcome_ink(answer.outcome()));
        table(&mut page, &rows::change(told.answer, answer));
        details(&mut page, answer);
        if told.answer.watched_ns.is_some() {
            let words = "Latencies and blocking are those that were measured with priorities and CPUs as they \
                         were; where a thread changes them, measure again.";
            page.text(words, "  ", Ink::Dim);
        }
    }
    page.gap();
    let lost = told.records.iter().fold(0u64, |n, r| n.saturating_add(r.lost));
    if lost > 0 {
        let words = format!(
            "{} jobs are not in the model, as events of their time were lost.",
            grouped(lost)
        );
        page.text(&words, "  ", Ink::Warn);
    }
    if let Some(latency) = &told.latency {
        let words = format!(
            "Latency: each wait of a job for its CPU takes {}, the bound on the scheduling latency ({}), or as long as was seen where that is more.",
            format_ns_i64(latency.ns),
            latency.from
        );
        page.text(&words, "  ", Ink::Dim);
    }
    page.text(&told.answer.condition(), "  ", Ink::Dim);
    page.finish()
}

fn table(page: &mut Page, table: &Table) {
    let lines = table.text(page.width());
    page.raw(lines, Ink::Plain);
}

/// What holds, in a sentence.
fn sentence(answer: &ResponseTimes) -> String {
    let count = |wanted: Outcome| answer.threads.iter().filter(|t| t.outcome() == wanted).count();
    let watched = answer
        .watched_ns
        .map_or_else(String::new, |ns| format!(", watched for {}", format_span(ns)));
    let n = answer.threads.len();
    let threads = if n == 1 { "1 thread".to_owned() } else { format!("{n} threads") };
    let bounded = answer.threads.iter().filter(|t| t.bound.is_ok()).count();
    let with = answer.threads.iter().filter(|t| t.deadline_ns.is_some()).count();
    let deadlines = match (with, count(Outcome::Met), count(Outcome::NotMet)) {
        (0, ..) => String::new(),
        (all, met, 0) if met == all => format!("; {all} of {all} deadlines are shown to hold"),
        (all, met, 0) => format!("; {met} of {all} deadlines are shown to hold"),
        (all, met, missed) => {
            format!(
                "; {met} of {all} deadlines are shown to hold, {missed} were seen to be exceeded"
            )
        }
    };
    format!("{threads}{watched}; {bounded} with a bound{deadlines}.")
}

fn details(page: &mut Page, answer: &ResponseTimes) {
    let given: Vec<(&str, &Bound)> = (answer.threads.iter())
        .filter_map(|t| Some((t.name.as_str(), t.bound.as_ref().ok()?)))
        .collect();
    let most = given.iter().map(|(_, b)| b.ns).max().unwrap_or(0);
    let names = given.iter().map(|(n, _)| columns(n)).max().unwrap_or(0).min(24);
    let width = page.width().saturating_sub(names + 2).min(BAR_MAX);
    if !given.is_empty() {
        page.gap();
    }
    for (name, bound) in &given {
        let bar = rows::bar(bound, most, width);
        let space = " ".repeat((names + 2).saturating_sub(columns(name)));
        page.raw(vec![format!("{name}{space}{bar}")], Ink::Accent);
    }
    if !given.is_empty() {
        let legend = "█ own execution  ▒ threads of at least its priority  z asleep  b blocked  l latency  o others";
        page.text(legend, "  ", Ink::Dim);
        page.gap();
    }
    for (name, bound) in &given {
        page.text(&format!("{name}: {}", rows::sum(bound)), "  ", Ink::Plain);
    }
    for line in rows::refusals(answer) {
        page.text(&line, "  ", Ink::Warn);
    }
}
