// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exact paths for people and scripts: a sentence, the longest sections, the way of the latest wake-ups, the curve.
//!
//! Context: COLD. Units: ns.
//! JSON, schema `tailbound-paths/1` (members are added, never renamed or removed): `schema`, `kernel`, and the members
//! of [`PathsRecord`].

mod remedy;

use serde_json::{Value, json};
use tailbound_core::paths::{PathsRecord, SectionKind, SectionRecord, TreeLine, WakeUpRecord};
use tailbound_core::units::{format_ns_i64, grouped};

use crate::table::Table;
use crate::text::Style;
use crate::text::ink::Ink;
use crate::text::report::Page;

/// Version of the JSON answer.
pub const SCHEMA: &str = "tailbound-paths/1";
/// Rows of a table of sections, lines of a tree, points of the curve.
const ROWS: usize = 5;
const LINES: usize = 16;
const POINTS: usize = 12;

fn title(kind: SectionKind) -> &'static str {
    match kind {
        SectionKind::InterruptsOff => "Interrupts disabled",
        SectionKind::PreemptionOff => "Preemption disabled",
        SectionKind::NotPreemptible => "Not preemptible (either)",
        SectionKind::ReschedPending => "To be rescheduled, and not yet",
    }
}

fn longest(paths: &PathsRecord, kind: SectionKind) -> Option<&SectionRecord> {
    paths.sections.iter().find(|s| s.kind == kind)
}

fn between(s: &SectionRecord) -> String {
    if s.from == s.to { s.from.clone() } else { format!("{} to {}", s.from, s.to) }
}

fn share(p: f64) -> String {
    if p == 0.0 { "0".to_owned() } else { format!("{p:.1e}") }
}

/// What a reader wants to know first.
#[must_use]
pub fn sentence(paths: &PathsRecord) -> String {
    let Some(latest) = paths.wakeups.first() else {
        return "No wake-up was watched.".to_owned();
    };
    let most = latest.legs.iter().max_by_key(|leg| leg.ns);
    let most = most.map_or_else(String::new, |leg| {
        let behind = latest.behind.as_ref().filter(|_| leg.name == "due to interrupt");
        let behind = behind.map_or_else(String::new, |b| {
            format!(", behind a section with interrupts disabled in {}", place(&b.from, &b.to))
        });
        format!(": {} of it from {}{behind}", format_ns_i64(leg.ns), leg.name)
    });
    let sections = SectionKind::ALL.iter().filter_map(|kind| {
        let what = match kind {
            SectionKind::InterruptsOff => "interrupts disabled",
            SectionKind::PreemptionOff => "preemption disabled",
            SectionKind::ReschedPending => "a thread to be rescheduled",
            SectionKind::NotPreemptible => return None,
        };
        let s = longest(paths, *kind)?;
        Some(format!("{} with {what} ({})", format_ns_i64(s.longest_ns), between(s)))
    });
    format!(
        "The latest of {} wake-ups took {}{most}. The longest sections: {}.",
        grouped(paths.checks.samples),
        format_ns_i64(latest.latency_ns),
        sections.collect::<Vec<_>>().join(", ")
    )
}

fn place(from: &str, to: &str) -> String {
    if from == to { from.to_owned() } else { format!("{from} to {to}") }
}

fn sections(paths: &PathsRecord, kind: SectionKind) -> Table {
    let mut table = Table::new(&["longest", "mean", "count", "from", "to"]).with_words(&[3, 4]);
    for s in paths.sections.iter().filter(|s| s.kind == kind).take(ROWS) {
        table.row(vec![
            format_ns_i64(s.longest_ns),
            format_ns_i64(s.mean_ns),
            grouped(s.n),
            s.from.clone(),
            s.to.clone(),
        ]);
    }
    table
}

fn wakeups(paths: &PathsRecord) -> Table {
    let mut head = vec!["activation", "latency"];
    head.extend(paths.wakeups.iter().take(1).flat_map(|w| w.legs.iter().map(|l| l.name.as_str())));
    let mut table = Table::new(&head);
    for w in &paths.wakeups {
        let mut row = vec![grouped(w.activation), format_ns_i64(w.latency_ns)];
        row.extend(w.legs.iter().map(|leg| format_ns_i64(leg.ns)));
        table.row(row);
    }
    table.transposed()
}

fn tree(lines: &[TreeLine]) -> Table {
    let mut table = Table::new(&["total", "itself", "calls", "function"]).with_words(&[3]);
    for line in lines.iter().take(LINES) {
        let indent = "  ".repeat(usize::from(line.depth));
        table.row(vec![
            format_ns_i64(line.total_ns),
            format_ns_i64(line.own_ns),
            grouped(line.calls),
            format!("{indent}{}", line.name),
        ]);
    }
    table
}

fn curve(paths: &PathsRecord) -> Table {
    let mut table = Table::new(&["later than", "samples", "any instant (estimate)"]);
    let every = paths.curve.len().div_ceil(POINTS).max(1);
    for point in paths.curve.iter().step_by(every) {
        table.row(vec![format_ns_i64(point.ns), share(point.samples), share(point.instants)]);
    }
    table
}

fn checks(paths: &PathsRecord) -> String {
    let c = &paths.checks;
    format!(
        "Checked: the run has the same bytes without being watched; all {} samples are what was watched, by one constant; each of {} late interrupts was taken where interrupts were enabled again. Window: {}. One instruction is the unit of time: caches and memory take none (docs/virtual-time.md).",
        grouped(c.samples),
        grouped(c.delayed),
        format_ns_i64(paths.window_ns)
    )
}

fn behind(w: &WakeUpRecord) -> Option<String> {
    let b = w.behind.as_ref()?;
    Some(format!(
        "Activation {}: its interrupt waited for {}, a section of {} with interrupts disabled.",
        grouped(w.activation),
        place(&b.from, &b.to),
        format_ns_i64(b.ns)
    ))
}

/// For a terminal; ends in a newline. `again` repeats it, with more words for the kernel.
#[must_use]
pub fn text(paths: &PathsRecord, kernel: &str, style: Style) -> String {
    let mut page = Page::new(style);
    page.text(&sentence(paths), "  ", Ink::Bold);
    page.heading("Latest wake-ups");
    let lines = crate::blame::hanging(&wakeups(paths), page.width());
    page.raw(lines, Ink::Plain);
    paths.wakeups.iter().filter_map(behind).for_each(|line| page.text(&line, "  ", Ink::Plain));
    if let Some(latest) = paths.wakeups.first().filter(|w| !w.tree.is_empty()) {
        page.heading(&format!(
            "What activation {} executed from its due time on",
            grouped(latest.activation)
        ));
        let lines = crate::blame::hanging(&tree(&latest.tree), page.width());
        page.raw(lines, Ink::Plain);
    }
    for kind in SectionKind::ALL {
        if longest(paths, kind).is_none() {
            continue;
        }
        page.heading(title(kind));
        let lines = crate::blame::hanging(&sections(paths, kind), page.width());
        page.raw(lines, Ink::Plain);
    }
    let whole = longest(paths, SectionKind::NotPreemptible).filter(|s| !s.tree.is_empty());
    if let Some(s) = whole {
        page.heading(&format!(
            "What the longest one executed ({}, {})",
            between(s),
            format_ns_i64(s.longest_ns)
        ));
        let lines = crate::blame::hanging(&tree(&s.tree), page.width());
        page.raw(lines, Ink::Plain);
    }
    page.heading("How likely a wake-up is later");
    let lines = crate::blame::hanging(&curve(paths), page.width());
    page.raw(lines, Ink::Plain);
    page.text("Any instant: had the timer fallen due at any instant of the window, estimated from the sections. No bound.", "  ", Ink::Dim);
    let remedies = remedy::all(paths, kernel);
    if !remedies.is_empty() {
        page.heading("What to do");
        remedies.iter().for_each(|r| page.text(r, "- ", Ink::Plain));
    }
    page.text(&checks(paths), "  ", Ink::Dim);
    page.finish()
}

/// For scripts.
#[must_use]
pub fn json(paths: &PathsRecord, kernel: &str) -> Value {
    let mut value = json!(paths);
    if let Some(members) = value.as_object_mut() {
        members.insert("schema".to_owned(), json!(SCHEMA));
        members.insert("kernel".to_owned(), json!(kernel));
        members.insert("remedies".to_owned(), json!(remedy::all(paths, kernel)));
    }
    value
}
