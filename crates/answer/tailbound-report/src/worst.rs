// SPDX-License-Identifier: MIT OR Apache-2.0
//! The latest wake-ups of a run, one by one: when, which, where, and beside which load.
//!
//! Units: ns. Known one by one are the recorded exceedances and the latest wake-up of
//! each thread and second; another one of the same second is in the histogram only.
//! Not here: what made them late.

use std::collections::BTreeSet;
use tailbound_core::order;

use serde_json::{Value, json};
use tailbound_core::occurrence::Occurrence;
use tailbound_core::record::{Clocks, Event};
use tailbound_core::units::{format_ns_i64, grouped};
use tailbound_core::{Run, utc};

use crate::label;
use crate::table::{Table, wrap};
use crate::text::Style;

/// Version of the JSON answer.
pub const SCHEMA: &str = "tailbound-worst/1";

/// One late wake-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Late {
    /// Number of its thread.
    pub thread: u32,
    /// Number of its activation.
    pub activation: u64,
    /// How late.
    pub error_ns: i64,
    /// When it woke, from the first due activation.
    pub t_ns: i64,
    /// `t_ns` was recorded; otherwise it follows from the activation's number, to an interval.
    pub t_recorded: bool,
    /// Activations that fell due meanwhile, where that was recorded.
    pub missed: Option<u64>,
    /// The loads that ran then.
    pub loads: Vec<String>,
}

/// The `most` latest wake-ups that `run` knows one by one, the latest first.
#[must_use]
pub fn worst(run: &Run, most: usize) -> Vec<Late> {
    let judged: BTreeSet<u32> = run
        .threads
        .iter()
        .filter(|t| Some(t.context) == run.judged_context())
        .map(|t| t.thread)
        .collect();
    let mut all: Vec<Late> = run
        .exceedances
        .iter()
        .map(|e| Late {
            thread: e.thread,
            activation: e.activation,
            error_ns: e.error_ns,
            t_ns: e.t_ns,
            t_recorded: true,
            missed: Some(e.missed),
            loads: Vec::new(),
        })
        .collect();
    let recorded: BTreeSet<(u32, u64)> = all.iter().map(|l| (l.thread, l.activation)).collect();
    all.extend(
        run.seconds.iter().filter(|s| s.n > 0 && !recorded.contains(&(s.thread, s.argmax))).map(
            |s| Late {
                thread: s.thread,
                activation: s.argmax,
                error_ns: s.max_ns,
                t_ns: due_ns(run, s.argmax).saturating_add(s.max_ns),
                t_recorded: false,
                missed: None,
                loads: Vec::new(),
            },
        ),
    );
    // Cut off before its threads' records, a run does not say which context is judged.
    all.retain(|l| judged.is_empty() || judged.contains(&l.thread));
    order::by_key(&mut all, |l| (std::cmp::Reverse(l.error_ns), l.t_ns, l.thread));
    all.truncate(most);
    for late in &mut all {
        late.loads = loads_at(run, late.t_ns);
    }
    all
}

/// What the clocks of the system read at the first due activation; older files and those of other
/// tools do not hold it.
#[must_use]
pub fn clocks(run: &Run) -> Option<Clocks> {
    let began = |e: &&Event| matches!(Occurrence::of(e), Occurrence::WarmUpOver { .. });
    run.events.iter().find(|e| e.t_ns == 0 && began(e)).and_then(|e| e.clocks)
}

fn due_ns(run: &Run, activation: u64) -> i64 {
    i64::try_from(activation).unwrap_or(i64::MAX).saturating_mul(run.header.plan.interval_ns)
}

/// The loads that ran at `t_ns`: those of the plan, but those between `load-paused` and `load-began`.
fn loads_at(run: &Run, t_ns: i64) -> Vec<String> {
    let running = |spec: &String| {
        let runs = |e: &Event| match Occurrence::of(e) {
            Occurrence::LoadBegan { load } if load == spec => Some((e.t_ns, true)),
            Occurrence::LoadPaused { load } if load == spec => Some((e.t_ns, false)),
            _ => None,
        };
        let mut phases = run.events.iter().rev().filter_map(runs);
        match phases.clone().find(|(at_ns, _)| *at_ns <= t_ns) {
            Some((_, began)) => began,
            // A load with phases pauses until the first of them begins.
            None => phases.next().is_none(),
        }
    };
    run.header.plan.loads.iter().map(ToString::to_string).filter(running).collect()
}

/// What is not in the list, in sentences.
#[must_use]
pub fn notes(run: &Run) -> Vec<String> {
    let mut out = vec![format!(
        "Known one by one: {} recorded exceedances, and the latest wake-up of each thread and \
         second. Another one of the same second is in the histogram only.",
        grouped(run.exceedances.len() as u64)
    )];
    let dropped: u64 = run
        .threads
        .iter()
        .filter_map(|t| t.dropped.get("exceedances"))
        .fold(0, |a, b| a.saturating_add(*b));
    if dropped > 0 {
        out.push(format!(
            "{} more exceedances were dropped: their ring was full.",
            grouped(dropped)
        ));
    }
    if clocks(run).is_none() {
        out.push(
            "Time of day and trace clock are unknown: the file does not hold them.".to_owned(),
        );
    }
    out
}

/// For people.
#[must_use]
pub fn text(run: &Run, most: usize, style: Style) -> String {
    let all = worst(run, most);
    let clocks = clocks(run);
    let mut head = vec!["late", "thread", "activation", "after", "missed"];
    if clocks.is_some() {
        head.extend(["time of day (UTC)", "mono clock"]);
    }
    let paused = |e: &Event| matches!(Occurrence::of(e), Occurrence::LoadPaused { .. });
    let phased = run.events.iter().any(paused);
    if phased {
        head.push("loads then");
    }
    let words: Vec<usize> = [1, 7].into_iter().filter(|i| *i < head.len()).collect();
    let mut table = Table::new(&head).with_words(&words);
    for l in &all {
        let about = if l.t_recorded { "" } else { "~" };
        let mut row = vec![
            format_ns_i64(l.error_ns),
            label::thread_id(run, l.thread),
            grouped(l.activation),
            format!("{about}{}", seconds(l.t_ns, 3)),
            l.missed.map_or_else(|| "unknown".to_owned(), grouped),
        ];
        if let Some(c) = clocks {
            row.push(format!("{about}{}", utc::with_us(c.realtime_ns.saturating_add(l.t_ns))));
            row.push(format!("{about}{}", seconds(c.monotonic_ns.saturating_add(l.t_ns), 6)));
        }
        if phased {
            row.push(if l.loads.is_empty() { "none".to_owned() } else { l.loads.join(" + ") });
        }
        table.row(row);
    }
    let mut out = String::new();
    if all.is_empty() {
        out.push_str("No wake-up is known one by one in this run.\n");
    } else {
        let n = all.len();
        out.push_str(&format!("The {n} latest wake-ups that are known one by one\n\n"));
        for line in table.text(style.width) {
            out.push_str(&line);
            out.push('\n');
        }
        if all.iter().any(|l| !l.t_recorded) {
            out.push_str("\n~ from the number of the activation: known to one interval\n");
        }
    }
    for note in notes(run) {
        out.push('\n');
        out.push_str(&wrap(&note, style.width, "  ").join("\n"));
    }
    out.push('\n');
    out
}

/// For scripts.
#[must_use]
pub fn json(run: &Run, most: usize) -> Value {
    let clocks = clocks(run);
    let one = |l: &Late| {
        let on = |at: fn(&Clocks) -> i64| clocks.as_ref().map(|c| at(c).saturating_add(l.t_ns));
        json!({
            "thread": l.thread,
            "name": label::thread_id(run, l.thread),
            "activation": l.activation,
            "error_ns": l.error_ns,
            "t_ns": l.t_ns,
            "t_recorded": l.t_recorded,
            "missed": l.missed,
            "realtime_ns": on(|c| c.realtime_ns),
            "monotonic_ns": on(|c| c.monotonic_ns),
            "boottime_ns": on(|c| c.boottime_ns),
            "loads": l.loads,
        })
    };
    let all: Vec<Value> = worst(run, most).iter().map(one).collect();
    json!({"schema": SCHEMA, "run": run.header.id, "worst": all, "notes": notes(run)})
}

/// Seconds with `decimals`, as the kernel's trace prints its clock.
pub(crate) fn seconds(ns: i64, decimals: usize) -> String {
    let (s, rest) = (ns.div_euclid(1_000_000_000), ns.rem_euclid(1_000_000_000));
    let digits = format!("{rest:09}");
    let shown: String = digits.chars().take(decimals).collect();
    format!("{s}.{shown}")
}
