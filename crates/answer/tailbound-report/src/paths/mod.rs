// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exact paths for people and scripts: a sentence, the longest sections, the way of the latest wake-ups, the curve.
//!
//! Units: ns.
//! JSON, schema `tailbound-paths/1` (members are added, never renamed or removed): `schema`, `kernel`, and the members
//! of [`PathsRecord`].

mod grown;
mod html;
mod picture;
mod remedy;
mod tables;
mod text;

pub use grown::{Compared, Grown, grown};
pub(crate) use grown::{section as grown_section, text as grown_text};
pub(crate) use html::section;
pub(crate) use text::short;
pub use text::text;

use serde_json::{Value, json};
use tailbound_core::paths::{
    FROM_STAMP, PathsCpu, PathsRecord, SENDERS_CALL, SectionKind, SectionRecord, TreeLine,
    WakeUpRecord,
};
use tailbound_core::units::{format_ns_i64, grouped};

/// Version of the JSON answer.
pub const SCHEMA: &str = "tailbound-paths/1";

pub(crate) fn title(kind: SectionKind) -> &'static str {
    match kind {
        SectionKind::InterruptsOff => "Interrupts disabled",
        SectionKind::PreemptionOff => "Preemption disabled",
        SectionKind::NotPreemptible => "Not preemptible (either)",
        SectionKind::ReschedPending => "To be rescheduled, and not yet",
        SectionKind::Unknown(_) => "Of a kind that this version does not know",
    }
}

/// A tree of calls for a terminal.
pub(crate) fn tree_table(lines: &[tailbound_core::paths::TreeLine]) -> crate::table::Table {
    tables::tree(lines, "  ")
}

fn longest(paths: &PathsRecord, kind: SectionKind) -> Option<&SectionRecord> {
    paths.sections.iter().find(|s| s.kind == kind)
}

/// The CPUs that tables are told of: none where there is one.
fn cpus(paths: &PathsRecord) -> Vec<Option<u32>> {
    let all: Vec<Option<u32>> = paths.cpus.iter().map(|c| Some(c.cpu)).collect();
    if all.is_empty() { vec![None] } else { all }
}

/// A heading of one of these CPUs, with its share.
fn heading(paths: &PathsRecord, what: &str, cpu: Option<u32>) -> String {
    let of = paths.cpus.iter().find(|c| Some(c.cpu) == cpu);
    of.map_or_else(|| what.to_owned(), |c| format!("{what}, {}", shared(c)))
}

/// A CPU and its share.
fn shared(c: &PathsCpu) -> String {
    let share = c.share_permille.map(|share| format!(" (share {}.{} %)", share / 10, share % 10));
    format!("CPU {}{}", c.cpu, share.unwrap_or_default())
}

/// A length, and how much of it the CPU executed itself.
pub(crate) fn length(ns: i64, own_ns: Option<i64>) -> String {
    let own = own_ns.filter(|own| *own != ns);
    let own = own.map(|own| format!(" ({} of its own)", format_ns_i64(own)));
    format!("{}{}", format_ns_i64(ns), own.unwrap_or_default())
}

/// What there is to say of the CPUs, where there are several.
fn several(paths: &PathsRecord) -> Option<String> {
    let checks = paths.checks.several?;
    let first = paths.cpus.first()?;
    let each: Vec<String> = paths
        .cpus
        .iter()
        .map(|c| format!("{} executed {}", shared(c), format_ns_i64(c.executed_ns)))
        .collect();
    let unexplained = match checks.unexplained {
        0 => String::new(),
        n => format!(" Of {} of these the signal to the thread's CPU was not seen.", grouped(n)),
    };
    Some(format!(
        "CPUs execute one after the other, and time goes on for all. Of the window's {} {}. The thread is on CPU {}; {} of its {} wake-ups had their timer on another CPU, which handed them over.{unexplained}",
        format_ns_i64(paths.window_ns),
        each.join(", "),
        first.cpu,
        grouped(checks.handed_over),
        grouped(paths.checks.samples),
    ))
}

fn handed_over(w: &WakeUpRecord) -> Option<String> {
    let over = w.handed_over.as_ref()?;
    let by = over.by.as_ref().map_or_else(
        || "the signal to the thread's CPU was not seen".to_owned(),
        |by| format!("{by} signalled the thread's CPU"),
    );
    let n = grouped(w.activation);
    Some(format!("Activation {n}: its timer was on CPU {}; {by}.", over.cpu))
}

/// What the latest wake-up's timer executed elsewhere.
fn elsewhere(paths: &PathsRecord) -> Option<(String, &[TreeLine])> {
    let latest = paths.wakeups.first()?;
    let over = latest.handed_over.as_ref().filter(|over| !over.tree.is_empty())?;
    let n = grouped(latest.activation);
    let heading =
        format!("What CPU {} executed for activation {n} before it handed over", over.cpu);
    Some((heading, &over.tree))
}

/// What the kernel did for that long on the way to the thread.
fn spent(leg: &str, length: &str) -> String {
    let what = match leg {
        "due to interrupt" => "the timer's interrupt had not come",
        "entry" => "the CPU entered the interrupt",
        "timers" => "the kernel expired timers",
        "wake-up" => "the kernel woke the thread",
        "to the scheduler" => "the kernel had not yet called the scheduler",
        "scheduler" => "the scheduler ran",
        "switch to user mode" => "the kernel returned to user mode",
        "reading the clock" => "the thread read its clock",
        FROM_STAMP => "the interrupt's thread had not begun",
        "to the answering thread" => "the answering thread was not in user mode",
        "to the output" => "the thread was on its way to the output",
        "the output" => "the output was set",
        other => return format!("{length} of it for {other}"),
    };
    format!("for {length} of it {what}")
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
        format!(": {}{behind}", spent(&leg.name, &length(leg.ns, leg.own_ns)))
    });
    let sections = SectionKind::ALL.iter().filter_map(|kind| {
        let what = match kind {
            SectionKind::InterruptsOff => "interrupts disabled",
            SectionKind::PreemptionOff => "preemption disabled",
            SectionKind::ReschedPending => "a thread to be rescheduled",
            SectionKind::NotPreemptible | SectionKind::Unknown(_) => return None,
        };
        let s = longest(paths, *kind)?;
        Some(format!("{} with {what} ({})", length(s.longest_ns, s.own_ns), place(&s.from, &s.to)))
    });
    let second = if paths.second_kernel {
        " The thread is a second kernel's: it waits where interrupts are disabled, and nowhere else."
    } else {
        ""
    };
    format!(
        "The latest of {} {} took {}{most}. The longest sections: {}.{second}",
        grouped(paths.checks.samples),
        if paths.split.is_empty() { "wake-ups" } else { "answers" },
        format_ns_i64(latest.latency_ns),
        sections.collect::<Vec<_>>().join(", ")
    )
}

pub(crate) fn place(from: &str, to: &str) -> String {
    if from == to { from.to_owned() } else { format!("{from} to {to}") }
}

fn checks(paths: &PathsRecord) -> String {
    let c = &paths.checks;
    let several = c.several.map_or_else(String::new, |several| {
        format!(
            " Each of {} turns of CPUs began where the one before had ended, or when all halted; {} interrupts were late only because it was not their CPU's turn, when they were due or when their timer was set.",
            grouped(several.turns),
            grouped(several.out_of_turn)
        )
    });
    let set_late = match c.set_late {
        0 => String::new(),
        n => format!(
            ", {} of them a moment later: their timer was due already when the kernel set it, at the end of an interrupt or in the scheduler",
            grouped(n)
        ),
    };
    format!(
        "Checked: the run has the same bytes without being watched; all {} samples are what was watched, by one constant; each of {} late interrupts was taken where interrupts were enabled again{set_late}.{several} Window: {}. One instruction is the unit of time: caches and memory take none (docs/virtual-time.md).",
        grouped(c.samples),
        grouped(c.delayed),
        format_ns_i64(paths.window_ns)
    )
}

/// Over the table of parts.
const SPLIT: &str = "Each part of the answers";
/// Where there is no curve.
const NOT_ESTIMATED: &str = "Not estimated: another CPU served the timers of some wake-ups, and they waited for sections of both.";
/// What the curve is, and is not.
const ESTIMATE: &str = "Any instant: had the timer fallen due at any instant of the window, estimated from the sections. No bound.";

/// Where its wake-ups begin.
fn begin(paths: &PathsRecord) -> &'static str {
    let first = paths.wakeups.first().and_then(|w| w.legs.first());
    match first.map_or("", |leg| leg.name.as_str()) {
        SENDERS_CALL => SENDERS_CALL,
        FROM_STAMP => "the stamp of its edge",
        _ => "its due time",
    }
}

fn behind(w: &WakeUpRecord) -> Option<String> {
    let b = w.behind.as_ref()?;
    Some(format!(
        "Activation {}: its interrupt waited for {}, a section of {} with interrupts disabled.",
        grouped(w.activation),
        place(&b.from, &b.to),
        length(b.ns, b.own_ns)
    ))
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
    use tailbound_core::paths::{
        Behind, CurvePoint, HandedOver, Leg, PathsChecks, SeveralChecks, SplitPart, TreeLine,
    };

    use super::*;
    use crate::text::Style;

    fn record() -> PathsRecord {
        let line = |depth, name: &str| TreeLine {
            depth,
            name: name.to_owned(),
            calls: 1,
            total_ns: 300,
            own_ns: 100,
        };
        let leg = |name: &str, ns| Leg { name: name.to_owned(), ns, own_ns: None };
        PathsRecord {
            window_ns: 999_000_000,
            second_kernel: false,
            checks: PathsChecks {
                same_bytes: true,
                samples: 1000,
                delayed: 3,
                ..PathsChecks::default()
            },
            cpus: Vec::new(),
            split: Vec::new(),
            totals: Vec::new(),
            sections: vec![SectionRecord {
                kind: SectionKind::InterruptsOff,
                cpu: None,
                from: "spin_lock\u{1b}[31m".to_owned(),
                to: "spin_unlock".to_owned(),
                n: 7,
                mean_ns: 100,
                longest_ns: 4000,
                own_ns: None,
                at_ns: 1,
                tree: Vec::new(),
            }],
            wakeups: vec![WakeUpRecord {
                activation: 12,
                latency_ns: 5000,
                legs: vec![leg("due to interrupt", 3900), leg("entry", 1100)],
                behind: Some(Behind {
                    from: "a".to_owned(),
                    to: "b".to_owned(),
                    ns: 4000,
                    own_ns: None,
                }),
                handed_over: None,
                tree: vec![line(0, "schedule"), line(1, "get_random_u16")],
            }],
            curve: vec![CurvePoint { ns: 1000, samples: 0.5, instants: 0.25 }],
            theory: None,
        }
    }

    #[test]
    fn the_sentence_names_what_took_most_and_the_longest_sections() {
        let said = sentence(&record());
        assert!(
            said.starts_with("The latest of 1,000 wake-ups took 5.00 µs: for 3.90 µs of it the timer's interrupt had not come, behind a section with interrupts disabled in a to b."),
            "{said}"
        );
        assert!(said.contains("4.00 µs with interrupts disabled"), "{said}");
    }

    #[test]
    fn a_hand_over_begins_with_the_call_and_has_no_curve() {
        let mut record = record();
        record.curve.clear();
        for leg in record.wakeups.iter_mut().flat_map(|w| w.legs.iter_mut().take(1)) {
            leg.name = SENDERS_CALL.to_owned();
        }
        let text = text(&record, None, "debian:6.12", Style::default());
        assert!(text.contains("executed from the sender's call on"), "{text}");
        assert!(!text.contains("How likely a wake-up is later"), "{text}");
    }

    #[test]
    fn an_answer_begins_with_its_stamp_and_has_the_split_of_all() {
        let mut record = record();
        for leg in record.wakeups.iter_mut().flat_map(|w| w.legs.iter_mut().take(1)) {
            leg.name = FROM_STAMP.to_owned();
        }
        let part =
            |name: &str| SplitPart { name: name.to_owned(), mean_ns: 777, ..SplitPart::default() };
        record.split = vec![part("line to interrupt"), part(FROM_STAMP)];
        let text = text(&record, None, "build:gpiosim", Style::default());
        assert!(text.contains("executed from the stamp of its edge on"), "{text}");
        assert!(text.contains("The latest of 1,000 answers"), "{text}");
        assert!(text.contains("line to interrupt") && text.contains("777 ns"), "{text}");
    }

    #[test]
    fn page_lists_are_named_where_they_are_most_of_the_latest() {
        let mut record = record();
        let advised = |record: &PathsRecord| {
            let all = remedy::all(record, "debian:6.12");
            all.iter().any(|r| r.contains("percpu_pagelist_high_fraction"))
        };
        let lines = record.wakeups.iter_mut().flat_map(|w| w.tree.iter_mut().take(1));
        lines.for_each(|line| line.name = "free_pcppages_bulk".to_owned());
        assert!(!advised(&record));
        let lines = record.wakeups.iter_mut().flat_map(|w| w.tree.iter_mut().take(1));
        lines.for_each(|line| line.total_ns = 4_500);
        assert!(advised(&record));
    }

    #[test]
    fn of_several_cpus_a_page_has_each_its_share_and_what_it_executed_itself() {
        let mut several = record();
        let share = |cpu, executed_ns, permille| PathsCpu {
            cpu,
            executed_ns,
            share_permille: Some(permille),
        };
        several.cpus = vec![share(1, 200, 375), share(0, 800, 625)];
        several.checks.several =
            Some(SeveralChecks { turns: 90, out_of_turn: 4, handed_over: 2, unexplained: 1 });
        several.sections[0].cpu = Some(1);
        several.sections[0].own_ns = Some(1500);
        several.wakeups[0].legs[0].own_ns = Some(2900);
        several.wakeups[0].handed_over =
            Some(HandedOver { cpu: 0, by: Some("ipi".to_owned()), tree: Vec::new() });
        several.curve.clear();
        let text = text(&several, None, "debian:6.12", Style::default());
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "Interrupts disabled, CPU 1 (share 37.5 %)",
            "3.90 µs (2.90 µs)",
            "4.00 µs (1.50 µs of its own) with interrupts disabled",
            "its timer was on CPU 0; ipi signalled the thread's CPU",
            "2 of its 1,000 wake-ups",
            "Of 1 of these the signal to",
            "Not estimated",
            "timer_migration=0",
            "90 turns",
        ] {
            assert!(text.contains(part), "no {part} in {text}");
        }
    }

    #[test]
    fn a_page_has_legs_tree_curve_and_remedy_and_no_colour_of_a_name() {
        let text = text(&record(), None, "debian:6.12", Style::default());
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
