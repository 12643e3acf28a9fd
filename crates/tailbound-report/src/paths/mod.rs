// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exact paths for people and scripts: a sentence, the longest sections, the way of the latest wake-ups, the curve.
//!
//! Context: COLD. Units: ns.
//! JSON, schema `tailbound-paths/1` (members are added, never renamed or removed): `schema`, `kernel`, and the members
//! of [`PathsRecord`].

mod grown;
mod remedy;

use serde_json::{Value, json};
use tailbound_core::paths::{PathsRecord, SectionKind, SectionRecord, TreeLine, WakeUpRecord};
use tailbound_core::units::{format_ns_i64, grouped};

pub use self::grown::{Grown, grown};
use crate::table::Table;
use crate::text::Style;
use crate::text::ink::Ink;
use crate::text::report::Page;

/// Version of the JSON answer.
pub const SCHEMA: &str = "tailbound-paths/1";
/// Rows of a table of sections, lines of a tree, points of the curve.
const ROWS: usize = 5;
const LINES: usize = 24;
const POINTS: usize = 12;

pub(crate) fn title(kind: SectionKind) -> &'static str {
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
        Some(format!("{} with {what} ({})", format_ns_i64(s.longest_ns), place(&s.from, &s.to)))
    });
    format!(
        "The latest of {} wake-ups took {}{most}. The longest sections: {}.",
        grouped(paths.checks.samples),
        format_ns_i64(latest.latency_ns),
        sections.collect::<Vec<_>>().join(", ")
    )
}

pub(crate) fn place(from: &str, to: &str) -> String {
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
            place(&s.from, &s.to),
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

#[cfg(test)]
mod tests {
    use tailbound_core::paths::{Behind, CurvePoint, Leg, PathsChecks};

    use super::*;

    fn record() -> PathsRecord {
        let line = |depth, name: &str| TreeLine {
            depth,
            name: name.to_owned(),
            calls: 1,
            total_ns: 300,
            own_ns: 100,
        };
        let leg = |name: &str, ns| Leg { name: name.to_owned(), ns };
        PathsRecord {
            window_ns: 999_000_000,
            checks: PathsChecks {
                same_bytes: true,
                samples: 1000,
                delayed: 3,
                ..PathsChecks::default()
            },
            totals: Vec::new(),
            sections: vec![SectionRecord {
                kind: SectionKind::InterruptsOff,
                from: "spin_lock\u{1b}[31m".to_owned(),
                to: "spin_unlock".to_owned(),
                n: 7,
                mean_ns: 100,
                longest_ns: 4000,
                at_ns: 1,
                tree: Vec::new(),
            }],
            wakeups: vec![WakeUpRecord {
                activation: 12,
                latency_ns: 5000,
                legs: vec![leg("due to interrupt", 3900), leg("entry", 1100)],
                behind: Some(Behind { from: "a".to_owned(), to: "b".to_owned(), ns: 4000 }),
                tree: vec![line(0, "schedule"), line(1, "get_random_u16")],
            }],
            curve: vec![CurvePoint { ns: 1000, samples: 0.5, instants: 0.25 }],
        }
    }

    #[test]
    fn the_sentence_names_what_took_most_and_the_longest_sections() {
        let said = sentence(&record());
        assert!(
            said.starts_with("The latest of 1,000 wake-ups took 5.00 µs: 3.90 µs of it from due to interrupt, behind a section with interrupts disabled in a to b."),
            "{said}"
        );
        assert!(said.contains("4.00 µs with interrupts disabled"), "{said}");
    }

    #[test]
    fn a_page_has_legs_tree_curve_and_remedy_and_no_colour_of_a_name() {
        let text = text(&record(), "debian:6.12", Style::default());
        for part in [
            "due to interrupt",
            "  get_random_u16",
            "2.5e-1",
            "randomize_kstack_offset=off",
            "same bytes",
        ] {
            assert!(text.contains(part), "no {part} in {text}");
        }
        assert!(!text.contains('\u{1b}'), "{text}");
        let json = json(&record(), "debian:6.12");
        assert_eq!(
            (json["schema"].as_str(), json["checks"]["delayed"].as_u64()),
            (Some(SCHEMA), Some(3))
        );
    }
}
