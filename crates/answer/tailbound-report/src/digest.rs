// SPDX-License-Identifier: MIT OR Apache-2.0
//! What every rendering says in the same words: headline, set-up, and what was lost on the way.
//!
//! Not here: figures of distributions (`tailbound-stats`), layout.

use tailbound_core::occurrence::Occurrence;
use tailbound_core::plan::Means;
use tailbound_core::record::WAKEUPS_NOT_SEEN;
pub use tailbound_core::units::spaced as exactly;
use tailbound_core::units::{format_ns_i64, format_span, grouped};
use tailbound_core::{EndReason, Impact, Outcome, Run, ThreadEnd};

use crate::label;

/// The verdict's sentence, led by the outcome in words even if the sentence is not.
#[must_use]
pub fn headline(run: &Run) -> String {
    let (sentence, outcome) = (label::sentence(run), label::outcome(run));
    let word = outcome.word();
    if sentence.to_lowercase().starts_with(word) {
        return sentence;
    }
    let mut letters = word.chars();
    let first = letters.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}: {sentence}", letters.as_str())
}

/// What a person, or else the campaign, calls the run.
#[must_use]
pub fn title(run: &Run) -> Option<&str> {
    let stated = run.header.purpose.as_ref().and_then(|p| p.title.as_deref());
    stated.or(run.header.plan.name.as_deref())
}

/// What a report is filed by, each with its name: title, begin, machine, who measured, requirement.
#[must_use]
pub fn head(run: &Run) -> [(&'static str, String); 5] {
    let purpose = run.header.purpose.as_deref();
    let stated = |text: Option<&str>| text.map_or_else(|| "not stated".to_owned(), str::to_owned);
    let machine = match label::machine(run) {
        none if none.is_empty() => "not recorded".to_owned(),
        known => known,
    };
    [
        ("Title", stated(title(run))),
        ("Started", started(run)),
        ("Machine", machine),
        ("Measured by", stated(purpose.and_then(|p| p.operator.as_deref()))),
        ("Requirement", stated(purpose.and_then(|p| p.requirement.as_deref()))),
    ]
}

/// When the run began; an imported file may not tell.
fn started(run: &Run) -> String {
    match run.header.started.as_str() {
        "" => "not recorded".to_owned(),
        at if at.ends_with('Z') => format!("{at} (UTC)"),
        words => words.to_owned(),
    }
}

/// The begin of the run and what persons stated about it, in one line of a terminal.
#[must_use]
pub fn filed_by(run: &Run) -> String {
    let mut parts = vec![format!("started: {}", started(run))];
    if let Some(p) = run.header.purpose.as_deref() {
        let stated =
            [("title", &p.title), ("measured by", &p.operator), ("requirement", &p.requirement)];
        let known = stated.into_iter().filter_map(|(what, text)| Some((what, text.as_ref()?)));
        parts.extend(known.map(|(what, text)| format!("{what}: {text}")));
    }
    parts.join("; ")
}

/// What was measured and how, in one line.
#[must_use]
pub fn set_up(run: &Run) -> String {
    let plan = &run.header.plan;
    let place = match plan.cpus.len() {
        0 => "threads not pinned".to_owned(),
        1 => format!("CPU {}", plan.cpus),
        _ => format!("CPUs {}", plan.cpus),
    };
    let loads: Vec<String> = plan.loads.iter().map(ToString::to_string).collect();
    let load = if loads.is_empty() {
        "no load by Tailbound".to_owned()
    } else {
        format!("load: {}", loads.join(" + "))
    };
    let deadline = plan
        .requirement
        .deadline_ns
        .map_or_else(|| "no deadline".to_owned(), |d| format!("deadline {}", exactly(d)));
    // The way of sleeping is that of `cyclic`; other probes have options instead.
    let means =
        if plan.event.is_none() { format!(", {}", plan.means_words()) } else { String::new() };
    let spread = plan.spread.map_or_else(String::new, |s| {
        format!(" (spread by {} %)", crate::svg::scale::trimmed(s.share * 100.0, 2))
    });
    let slack = plan
        .timer_slack_ns
        .map_or_else(String::new, |ns| format!(" with timer slack {}", exactly(ns)));
    let every = plan.every();
    let length = run
        .known_length_ns()
        .map_or_else(|| ", duration unknown".to_owned(), |ns| format!(" for {}", format_span(ns)));
    // What polls has no schedule, hence no clock of one.
    let clock = match plan.means {
        Means::Polling => String::new(),
        _ => format!(" on clock {}", plan.clock),
    };
    format!(
        "{}, {place}, {every}{spread}{length}, {}{means}{slack}{clock}; {load}; {deadline}",
        plan.probe_words(),
        plan.policy,
    )
}

/// For a run of the lab: what its times are, and what they are not.
#[must_use]
pub fn virtual_time(run: &Run) -> Option<String> {
    let lab = run.header.lab.as_ref()?;
    Some(match lab.accelerator.as_str() {
        "tcg" => instruction(lab.shift),
        other => format!(
            "made in a virtual machine ({other}): its times are those of a noisy host, not virtual time"
        ),
    })
}

/// What an instruction stands for in virtual time of `shift`.
fn instruction(shift: u8) -> String {
    let ns = 1u64.checked_shl(shift.into()).unwrap_or(u64::MAX);
    format!(
        "virtual time: 1 executed instruction = {} ns; path length, not caches, buses or firmware",
        grouped(ns)
    )
}

/// Loads of the plan that left no record.
#[must_use]
pub fn silent_loads(run: &Run) -> Vec<String> {
    let seen = |i: usize| run.loads.iter().any(|l| usize::try_from(l.load) == Ok(i));
    let all = run.header.plan.loads.iter().enumerate();
    all.filter(|(i, _)| !seen(*i)).map(|(_, l)| l.to_string()).collect()
}

/// What the run shows, a sentence each: first how its rule (`--until`) came out, where it had one.
#[must_use]
pub fn shown(run: &Run) -> Vec<String> {
    let rule = run.events.iter().rev().find_map(|e| match Occurrence::of(e) {
        Occurrence::Until { why } => Some(format!("Stopping rule: {why}.")),
        _ => None,
    });
    let statements = run.verdict.iter().flat_map(|v| v.statements.iter().cloned());
    rule.into_iter().chain(statements).collect()
}

/// What is missing from the figures, or known only in part: a sentence each.
#[must_use]
pub fn losses(run: &Run) -> Vec<String> {
    let mut out = Vec::new();
    if let Some(source) = &run.header.source {
        out.extend(source.lost.iter().map(|l| format!("{} ({}): {l}", source.tool, source.format)));
    }
    let unknown = run.unknown_words();
    if !unknown.is_empty() {
        out.push(format!(
            "The file is of a newer tailbound ({}): this version does not know {}.",
            run.header.tool,
            unknown.join(", ")
        ));
    }
    match &run.end {
        None => out.push(
            "The run file was cut off: everything after its last whole line is missing.".to_owned(),
        ),
        // The plan's own rule is no loss (shown with what the run shows).
        Some(e) if !e.reason.is_as_planned() => out.push(format!(
            "The run ended early ({}): {} of {} were measured.",
            e.reason,
            format_span(e.measured_ns),
            run.header.plan.duration_words()
        )),
        Some(_) => {}
    }
    if run.threads.is_empty() {
        out.push("No thread left its histogram: there are no distributions to show.".to_owned());
    }
    for t in &run.threads {
        let name = label::thread(run, t);
        for (what, n) in t.dropped.iter().filter(|(_, n)| **n > 0) {
            let (n, all) = (grouped(*n), grouped(t.wakeup.n.saturating_add(*n)));
            out.push(match what.as_str() {
                WAKEUPS_NOT_SEEN => format!(
                    "{name}: {n} of {all} wake-ups are not in its figures: the kernel's trace did not have them."
                ),
                "trace_events" => format!(
                    "{name}: {n} trace events of its CPU were overwritten before they were read; its figures lack them."
                ),
                _ => format!(
                    "{name}: {n} records of `{what}` did not fit into the ring; counts, extremes and histogram have them."
                ),
            });
        }
        let due = t.due();
        if due.over_range > 0 {
            out.push(format!(
                "{name}: {} activations were 17.2 s late or more and share the top bucket; the latest is exact.",
                grouped(due.over_range)
            ));
        }
        if due.unbinned > 0 {
            let from =
                due.unbinned_from_ns.map_or_else(|| "an unknown value".to_owned(), format_ns_i64);
            out.push(format!(
                "{name}: {} values are in no bucket of the source; they are {from} or more.",
                grouped(due.unbinned)
            ));
        }
        if let Some(clamped) = due.sums.map(|s| s.clamped).filter(|c| *c > 0) {
            out.push(format!(
                "{name}: {} values are longer than 2.1 s: mean and standard deviation come from the histogram, \
                 whose buckets are 0.1 % wide; skewness and kurtosis are left out.",
                grouped(clamped)
            ));
        }
        let by_rule = run.end_reason() == EndReason::Rule && t.ended == ThreadEnd::Stopped;
        if !by_rule && !t.ended.is_as_planned() {
            out.push(format!("{name}: its loop ended with `{}`.", t.ended));
        }
    }
    for load in silent_loads(run) {
        out.push(format!("Load `{load}`: no record of what it achieved."));
    }
    out
}

/// What the discarded warm-up saw, one line per thread.
#[must_use]
pub fn warm_up(run: &Run) -> Vec<String> {
    let one = |t: &tailbound_core::record::ThreadRecord| {
        let name = label::thread(run, t);
        match &t.warm_up {
            Some(w) => format!(
                "{name}: {} wake-ups and {} missed activations discarded, the latest {}",
                grouped(w.n),
                grouped(w.missed),
                w.max_ns.map_or_else(|| "unknown: there was none".to_owned(), format_ns_i64)
            ),
            None => format!("{name}: unknown: the run file has no record of a warm-up"),
        }
    };
    run.threads.iter().map(one).collect()
}

/// The findings that touch the verdict, gravest first; without one, none is to blame.
#[must_use]
pub fn culprits(run: &Run) -> Vec<&tailbound_core::Finding> {
    label::findings(run).into_iter().filter(|f| f.impact > Impact::Notice).collect()
}

/// Notices that may be what made a run miss its deadline.
const DELAYS: [&str; 6] =
    ["higher-priority", "steal-time", "frequency", "thermal", "smt-sibling", "idle-states"];

/// Every distinct remedy worth a place beside the verdict, those of the gravest findings first:
/// what makes the figures unreliable, and after a miss also what may have caused it.
#[must_use]
pub fn advice(run: &Run) -> Vec<&str> {
    let missed = label::outcome(run) == Outcome::NotMet;
    let mut out: Vec<&str> = Vec::new();
    // Whoever stopped the measurement made all of it late: nothing else is known of the machine.
    let findings = label::findings(run);
    let stopped = findings.iter().any(|f| f.id == "stopped");
    for f in findings.into_iter().filter(|f| !stopped || f.id == "stopped") {
        let worth = f.impact > Impact::Notice || (missed && DELAYS.contains(&f.id.as_str()));
        if worth && !f.remedy.is_empty() && !out.contains(&f.remedy.as_str()) {
            out.push(&f.remedy);
        }
    }
    out
}
