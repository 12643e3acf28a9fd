// SPDX-License-Identifier: MIT OR Apache-2.0
//! The report of a run as text: verdict, culprit, advice, then the figures.
//!
//! Every line fits the width given, except words that are longer themselves.
//! Not here: the order of importance (`digest`), figures (`figures`).

use tailbound_core::blame::KernelKind;
use tailbound_core::units::grouped;
use tailbound_core::{Impact, Run};
use tailbound_stats::Analysis;

use super::bars::Across;
use super::ink::Ink;
use super::page::{Page, Style, outcome_ink};
use crate::escape::{repeat, terminal};
use crate::next_step::NextStep;
use crate::svg::Unit;
use crate::{digest, figures, label, precision};

/// The report of a run, ending in a newline.
#[must_use]
pub fn text(analysis: &Analysis<'_>, style: Style) -> String {
    let run = analysis.run();
    let mut page = Page::new(style);
    page.text(&digest::headline(run), "  ", outcome_ink(analysis.outcome()));
    for sentence in crate::reasons::sentences(analysis) {
        page.text(&sentence, "  ", Ink::Bold);
    }
    for f in digest::culprits(run) {
        page.text(&format!("{}: {}", impact_word(&f.impact), f.title), "  ", Ink::Warn);
    }
    for (i, remedy) in digest::advice(run).into_iter().take(3).enumerate() {
        page.text(&format!("{} {remedy}", if i == 0 { "Do:" } else { "  -" }), "    ", Ink::Plain);
    }
    page.gap();
    page.text(&digest::set_up(run), "  ", Ink::Dim);
    if let Some(words) = digest::virtual_time(run) {
        page.text(&words, "  ", Ink::Bold);
    }
    let machine = label::machine(run);
    if !machine.is_empty() {
        page.text(&machine, "  ", Ink::Dim);
    }
    page.text(&digest::filed_by(run), "  ", Ink::Dim);
    page.gap();
    let table = figures::compact(analysis).text(page.width());
    page.raw(table, Ink::Plain);
    if let Some(words) = figures::compact_needs(analysis) {
        page.text(&words, "  ", Ink::Dim);
    }
    if let Some(words) = precision::sentence(analysis) {
        page.text(&words, "  ", Ink::Dim);
    }
    if let Some(table) = crate::named::table(run) {
        page.heading("Figures of the probe");
        let table = table.text(page.width());
        page.raw(table, Ink::Plain);
    }
    for timeline in &run.timelines {
        page.heading(&format!("Task timeline: {}", timeline.title));
        let lines = super::lanes::lines(timeline, page.width().min(100));
        page.raw(lines, Ink::Plain);
        page.text(&super::lanes::legend(timeline), "  ", Ink::Dim);
    }
    histogram(run, &mut page);
    statements(run, &mut page);
    crate::rules::short(&mut page, &run.violations);
    crate::split::short(&mut page, &run.pulse_joins);
    crate::blame::short(&mut page, &run.blames);
    crate::cycles::short(&mut page, &run.cycles, KernelKind::of_facts(&run.header.machine));
    crate::paths::short(&mut page, run.paths.as_deref(), label::lab_kernel(run));
    phases(analysis, &mut page);
    crate::bound::section(&mut page, analysis);
    loads(analysis, &mut page);
    findings(run, &mut page);
    let lost = digest::losses(run);
    if !lost.is_empty() {
        page.heading("Lost or incomplete data");
        lost.iter().for_each(|l| page.text(&format!("- {l}"), "  ", Ink::Plain));
    }
    page.gap();
    // In one line, however long: two halves of a command are no command. That of a run of the lab is
    // the guest's.
    let again = match run.header.lab {
        Some(_) => "tailbound lab repeat RUN, with this run's file".to_owned(),
        None if run.header.command.is_empty() => {
            "unknown: the run file has no command line".to_owned()
        }
        None => repeat(&run.header.command),
    };
    let line = format!("Repeat: {}", terminal(&again));
    let next = format!("Next:   {}", terminal(&NextStep::of(analysis).line()));
    page.raw(vec![line, next], Ink::Dim);
    page.finish()
}

fn impact_word(i: &Impact) -> &str {
    match i {
        Impact::Unfit => "Unfit",
        Impact::Violation => "Violated",
        Impact::Doubt => "In doubt",
        Impact::Notice => "Notice",
        Impact::Unknown(word) => word.as_str(),
    }
}

/// All due activations of the judged context, small.
fn histogram(run: &Run, page: &mut Page) {
    let (_, due) = run.judged_total();
    if due.late.total() == 0 {
        return;
    }
    let deadline = run.header.plan.requirement.deadline_ns;
    let across = Across::over(&due.late, deadline, page.width().min(100));
    let (ticks, labels) = across.axis(deadline);
    let mark = if ticks.contains('┃') { "; ┃ is the deadline" } else { "" };
    page.heading(&format!(
        "{} {}s, both axes logarithmic{mark}",
        grouped(due.late.total()),
        run.header.plan.event_word()
    ));
    page.raw(across.rows(&due.late, 4), Ink::Accent);
    page.raw(vec![ticks, labels], Ink::Dim);
}

fn statements(run: &Run, page: &mut Page) {
    let shown = digest::shown(run);
    if !shown.is_empty() {
        page.heading("What this run shows");
        shown.iter().for_each(|s| page.text(&format!("- {s}"), "  ", Ink::Plain));
    }
}

fn phases(analysis: &Analysis<'_>, page: &mut Page) {
    let sentences = crate::phases::sentences(analysis);
    if !sentences.is_empty() {
        page.heading("Changes within the run");
        sentences.iter().for_each(|s| page.text(&format!("- {s}"), "  ", Ink::Plain));
    }
}

fn loads(analysis: &Analysis<'_>, page: &mut Page) {
    let loads = analysis.loads();
    if loads.is_empty() {
        return;
    }
    page.heading("Load achieved");
    for l in loads {
        let rate = |v: f64| Unit::Count.label(v.round());
        let line = format!(
            "- {}: {} {}/s, least {} {}/s",
            l.name,
            rate(l.rate_per_s),
            l.unit,
            rate(l.least_per_s),
            l.unit
        );
        page.text(&line, "  ", Ink::Plain);
    }
}

fn findings(run: &Run, page: &mut Page) {
    let all = label::findings(run);
    if all.is_empty() {
        return;
    }
    page.heading("Findings");
    for f in all {
        let ink = if f.impact == Impact::Notice { Ink::Plain } else { Ink::Warn };
        page.text(&format!("- {} [{}, {}]", f.title, f.id, f.impact), "  ", ink);
        if f.impact == Impact::Notice {
            continue;
        }
        if !f.meaning.is_empty() {
            page.text(&format!("  {}", f.meaning), "  ", Ink::Plain);
        }
        if !f.remedy.is_empty() {
            page.text(&format!("  Do: {}", f.remedy), "  ", Ink::Plain);
        }
    }
}
