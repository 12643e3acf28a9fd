// SPDX-License-Identifier: MIT OR Apache-2.0
//! A loop as a run: what `tailbound show`, `report`, `compare` and `bound` read.
//!
//! Units: ns. The two latencies are contexts of their own, `start` (thread 0) and
//! `completion` (thread 1); each is judged by its own limits, and the graver verdict is the run's.
//! What the library cannot know (how the loop sleeps, what else ran) stands in `source.lost`.

use tailbound_core::Run;
use tailbound_core::occurrence::Occurrence;
use tailbound_core::plan::{Clock, Means};
use tailbound_core::record::{End, Event, Facts, Header, SCHEMA, Source, ThreadRecord};
use tailbound_core::units::{exact, grouped};
use tailbound_core::utc;
use tailbound_core::{CpuSet, EndReason, Finding, Impact, Plan, Policy, Requirement, ThreadEnd};
use tailbound_rt::jobs::Progress;
use tailbound_sys::clock;

use crate::collected::{Collected, Side};

/// Everything known of the loop so far.
pub(crate) fn of(kept: &mut Collected, machine: Facts) -> Run {
    let progress = kept.collect();
    let plan = plan(kept, &progress);
    let measured_ns = plan.duration_ns();
    let mut run = Run::new(header(kept, plan, machine));
    run.events = events(kept, &progress);
    for side in kept.sides() {
        run.seconds.extend(side.seconds.iter().cloned());
        run.exceedances.extend(side.exceedances.iter().cloned());
        let mut record = thread(side, kept.setup.cpu, &progress);
        record.requirement = Some(Box::new(requirement(side, kept.setup.confidence)));
        run.threads.push(record);
    }
    // What is judged is the outermost latency, and a stretch does not say of which it is.
    run.blocks.clone_from(&outermost(kept).blocks);
    run.seconds.sort_by_key(|s| (s.second, s.thread));
    run.exceedances.sort_by_key(|e| e.t_ns);
    run.self_cost = kept.setup.self_cost.clone();
    run.findings = findings(&progress);
    let reason = if progress.finished { EndReason::Complete } else { EndReason::Interrupted };
    run.end = Some(End { reason, measured_ns, lines: 0 });
    tailbound_stats::judge(&mut run);
    run
}

fn requirement(side: &Side, confidence: f64) -> Requirement {
    Requirement {
        deadline_ns: side.limits.late_ns,
        early_ns: side.limits.early_ns,
        confidence,
        ..Requirement::default()
    }
}

/// The latency that readers of a run judge, and whose limits the plan names.
fn outermost(kept: &Collected) -> &Side {
    kept.sides().last().copied().unwrap_or(&kept.start)
}

fn plan(kept: &Collected, progress: &Progress) -> Plan {
    let setup = &kept.setup;
    Plan {
        name: Some(setup.name.clone()),
        probe: "library".to_owned(),
        options: std::collections::BTreeMap::new(),
        event: None,
        property: None,
        interval_ns: setup.period_ns,
        activations: progress.activations,
        warm_up_ns: 0,
        cpus: setup.cpu.into_iter().collect::<CpuSet>(),
        policy: setup.policy.unwrap_or(Policy::Other),
        clock: match setup.clock {
            clock::CLOCK_TAI => Clock::Tai,
            clock::CLOCK_BOOTTIME => Clock::Boottime,
            clock::CLOCK_REALTIME => Clock::Realtime,
            _ => Clock::Monotonic,
        },
        means: Means::Nanosleep,
        loads: Vec::new(),
        requirement: requirement(outermost(kept), setup.confidence),
        cpu_dma_latency_us: None,
        raw: false,
        paranoid: false,
        observe: None,
        blame: None,
        tasks: None,
        spread: None,
        timer_slack_ns: None,
        tune: None,
        work: None,
        until: None,
    }
}

fn header(kept: &Collected, plan: Plan, machine: Facts) -> Header {
    let setup = &kept.setup;
    let started = utc::from_ns(setup.opened_realtime_ns);
    let letters = |text: &str| -> String {
        let tame = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        text.chars().map(tame).take(32).collect()
    };
    let compact: String = started.chars().filter(char::is_ascii_alphanumeric).collect();
    let command: Vec<String> =
        std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect();
    let program = command.first().map_or("the program", |c| c.rsplit('/').next().unwrap_or(c));
    let mut lost = vec![
        "How the loop sleeps is not known to the library; `nanosleep` stands for it.".to_owned(),
        "What else ran on the machine is not known: no load was started by the tool.".to_owned(),
        "The library does not watch for disturbances (throttling, stolen time, frequency)."
            .to_owned(),
    ];
    lost.push(match setup.policy {
        None => "The program did not state the scheduling policy of its loop; `other` is assumed."
            .to_owned(),
        Some(_) => "The scheduling policy is the one the program declared.".to_owned(),
    });
    Header {
        schema: SCHEMA.to_owned(),
        tool: concat!("libtailbound ", env!("CARGO_PKG_VERSION")).to_owned(),
        id: format!("{compact}-{}-{}", letters(&setup.name), std::process::id()),
        started,
        source: Some(Source {
            tool: concat!("libtailbound ", env!("CARGO_PKG_VERSION")).to_owned(),
            format: "a program's own loop".to_owned(),
            file: program.to_owned(),
            lost,
        }),
        command,
        plan,
        machine,
        lab: None,
        round: None,
        purpose: None,
    }
}

fn events(kept: &Collected, progress: &Progress) -> Vec<Event> {
    let mut out = Vec::new();
    if let Some(at_ns) = progress.first_due_ns {
        out.push(Occurrence::ClockStart { at_ns }.at(0));
    }
    for side in kept.sides() {
        let limit = |ns: Option<i64>, what: &str| ns.map(|ns| format!("{} {what}", exact(ns)));
        let words: Vec<String> = [
            limit(side.limits.late_ns, "after the due time"),
            limit(side.limits.early_ns, "before it"),
        ]
        .into_iter()
        .flatten()
        .collect();
        let words = if words.is_empty() { "none".to_owned() } else { words.join(", ") };
        out.push(Event::new(0, "limits", format!("{}: {words}", side.context)));
    }
    out.extend(kept.events.iter().cloned());
    out
}

fn thread(side: &Side, cpu: Option<u32>, progress: &Progress) -> ThreadRecord {
    let (wakeup, missed) = side.distributions();
    let (exceedances, seconds, _) = side.recorder.dropped();
    let dropped = [("exceedances", exceedances), ("seconds", seconds)];
    ThreadRecord {
        thread: side.thread,
        cpu,
        context: side.context,
        wakeup,
        missed,
        dropped: dropped
            .into_iter()
            .filter(|(_, n)| *n > 0)
            .map(|(name, n)| (name.to_owned(), n))
            .collect(),
        ended: if progress.finished { ThreadEnd::Complete } else { ThreadEnd::Running },
        ..ThreadRecord::default()
    }
}

fn findings(progress: &Progress) -> Vec<Finding> {
    let mut out = Vec::new();
    if progress.unended > 0 {
        let title = format!(
            "{} of {} cycles were started and never ended",
            grouped(progress.unended),
            grouped(progress.activations)
        );
        out.push(Finding::listed("cycles-not-ended", Impact::Doubt, title));
    }
    if progress.refused > 0 {
        let title = format!("{} calls of the loop were refused", grouped(progress.refused));
        out.push(Finding::listed("calls-refused", Impact::Doubt, title));
    }
    out
}
