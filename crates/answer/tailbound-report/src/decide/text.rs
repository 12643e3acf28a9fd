// SPDX-License-Identifier: MIT OR Apache-2.0
//! A choice as text: the recommendation first, then what it rests on.

use tailbound_stats::decide::flow::{FlowAnswer, Path, Step};
use tailbound_stats::decide::{Advice, Choice};

use super::tables;
use crate::text::Style;
use crate::text::ink::Ink;
use crate::text::page::Page;

/// The whole choice.
#[must_use]
pub fn text(choice: &Choice, style: Style) -> String {
    let mut page = Page::new(style);
    page.text(&headline(&choice.path), "  ", Ink::Bold);
    page.text(&choice.path.because, "  ", Ink::Plain);
    page.text(
        &format!("Real time: {}. Real fast: {}.", choice.real.name, choice.fast.name),
        "  ",
        Ink::Dim,
    );
    page.heading("Questions");
    for step in &choice.path.steps {
        page.text(&step_words(step), "    ", if step.taken { Ink::Plain } else { Ink::Dim });
    }
    if !choice.path.would_change.is_empty() {
        page.heading("What would change the recommendation");
        for words in &choice.path.would_change {
            page.text(&format!("- {words}"), "  ", Ink::Plain);
        }
    }
    if !choice.benchmarks.is_empty() {
        page.heading("Throughput");
        for w in &choice.benchmarks {
            page.text(&tables::sentence(w, choice), "  ", Ink::Plain);
        }
    }
    for w in &choice.benchmarks {
        page.heading(&w.spec);
        let table = tables::benchmark(w, choice).text(page.width());
        page.raw(table, Ink::Plain);
    }
    if choice.real.latency.is_some() || choice.fast.latency.is_some() {
        page.heading("Start latency");
        let table = tables::latency(choice).text(page.width());
        page.raw(table, Ink::Plain);
        for side in [&choice.fast, &choice.real] {
            if let Some(l) = &side.latency {
                page.text(&format!("{}: intervals {}.", side.name, l.intervals), "  ", Ink::Dim);
            }
        }
    }
    if choice.benchmarks.iter().any(|w| !w.delays.is_empty()) {
        page.heading(
            "Break-even: length of a work item from which the real-fast system finishes first",
        );
        let table = tables::breakeven(choice).text(page.width());
        page.raw(table, Ink::Plain);
        page.text(INTERVALS, "  ", Ink::Dim);
    }
    numbers(choice, &mut page);
    for note in &choice.notes {
        page.text(note, "  ", Ink::Warn);
    }
    page.finish()
}

/// What the intervals of a break-even are.
pub(super) const INTERVALS: &str = "Intervals are those that the 95 % intervals of both latencies and of the throughput span together: at least 85 %. The worst is taken as seen.";

fn numbers(choice: &Choice, page: &mut Page) {
    if let Some(figure) = super::rates::figure(choice) {
        page.heading("Benchmark rate over time");
        let table = figure.table.text(page.width());
        page.raw(table, Ink::Plain);
    }
    if let Some(figure) = super::sleepers::figure(choice) {
        page.heading("Parallel sleepers");
        let table = figure.table.text(page.width());
        page.raw(table, Ink::Plain);
    }
}

/// `Recommendation: real time, unless an open question turns out otherwise.`
#[must_use]
pub fn headline(path: &Path) -> String {
    let unless = if path.certain { "" } else { ", as far as the questions were answered" };
    format!("Recommendation: {}{unless}.", capital(path.advice))
}

fn capital(advice: Advice) -> String {
    advice.words().to_owned()
}

/// A question with its answer and where that comes from.
#[must_use]
pub fn step_words(step: &Step) -> String {
    let answer = match (step.taken, step.known.answer) {
        (false, _) => "not asked",
        (true, FlowAnswer::Yes) => "yes",
        (true, FlowAnswer::No) => "no",
        (true, FlowAnswer::Unknown) => "unknown",
    };
    let from = if step.taken && !step.known.from.is_empty() {
        format!(" ({})", step.known.from)
    } else {
        String::new()
    };
    let end = step.ends_in.map(|a| format!(" → {}", a.words())).unwrap_or_default();
    format!("{} {answer}{from}{end}", step.question)
}
