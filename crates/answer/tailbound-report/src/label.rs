// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names that readers see: of threads, quantiles, outcomes and impacts; who the culprit is.
//!
//! Not here: numbers with units (`tailbound_core::units`).

use tailbound_core::order;
use tailbound_core::record::ThreadRecord;
use tailbound_core::{Context, Finding, Impact, Outcome, Run};
use tailbound_stats::Analysis;

/// The kernel of a run in the lab, as `-k` was given it; else nothing.
#[must_use]
pub fn lab_kernel(run: &Run) -> &str {
    run.header.lab.as_deref().map_or("", |lab| lab.kernel.name.as_str())
}

/// The name of a thread: its own, where it has one; else by its CPU where it was pinned, with its context where a run has several.
#[must_use]
pub fn thread(run: &Run, t: &ThreadRecord) -> String {
    if let Some(name) = &t.name {
        return name.clone();
    }
    let same_place = |o: &&ThreadRecord| o.cpu == t.cpu && o.context == t.context;
    let base = match t.cpu {
        Some(cpu) if run.threads.iter().filter(same_place).count() > 1 => {
            format!("CPU {cpu} thread {}", t.thread)
        }
        Some(cpu) => format!("CPU {cpu}"),
        None => format!("thread {}", t.thread),
    };
    if run.contexts().len() > 1 { format!("{base} {}", t.context) } else { base }
}

/// The name of thread number `id`, as far as the run knows it.
#[must_use]
pub fn thread_id(run: &Run, id: u32) -> String {
    let of: Vec<&ThreadRecord> = run.threads.iter().filter(|t| t.thread == id).collect();
    match of.as_slice() {
        // A record slot of its own; several contexts of one number are what the kernel saw of one thread.
        [t] => thread(run, t),
        [t, ..] => t.cpu.map_or_else(|| format!("thread {id}"), |cpu| format!("CPU {cpu}")),
        [] => {
            // Cut off before the threads' own lines: the plan still tells the CPU.
            let cpu = run.header.plan.cpus.iter().nth(id as usize);
            cpu.map_or_else(|| format!("thread {id}"), |cpu| format!("CPU {cpu}"))
        }
    }
}

/// The name of all threads of one context together.
#[must_use]
pub fn total(run: &Run, context: Context) -> String {
    if run.contexts().len() > 1 { format!("all, {context}") } else { "all".to_owned() }
}

/// An impact as a class of a style sheet: one of ours, whatever the file says.
#[must_use]
pub fn impact_class(i: Impact) -> &'static str {
    match i {
        Impact::Notice => "notice",
        Impact::Doubt | Impact::Unknown(_) => "doubt",
        Impact::Violation => "violation",
        Impact::Unfit => "unfit",
    }
}

/// What an impact does, for people.
#[must_use]
pub fn impact_meaning(i: Impact) -> &'static str {
    match i {
        Impact::Notice => "worth knowing; the figures stand",
        Impact::Doubt => "the figures stand, but \"met\" cannot be claimed on them",
        Impact::Violation => "the kernel did what it must not",
        Impact::Unfit => "the figures do not describe this machine",
        Impact::Unknown(_) => "this version does not know the word; \"met\" cannot be claimed",
    }
}

/// The word for an outcome as a class of a style sheet.
#[must_use]
pub fn outcome_class(o: Outcome) -> &'static str {
    match o {
        Outcome::Measured => "measured",
        Outcome::Met => "met",
        Outcome::NotMet => "not-met",
        Outcome::Unfit => "unfit",
        Outcome::Undecided | Outcome::Unknown(_) => "undecided",
    }
}

/// The findings, gravest first; of equal impact in the order of the run file.
#[must_use]
pub fn findings(run: &Run) -> Vec<&Finding> {
    let mut all: Vec<&Finding> = run.findings.iter().collect();
    order::by_key(&mut all, |f| std::cmp::Reverse(f.impact));
    all
}

/// The verdict's sentence, or why there is none.
#[must_use]
pub fn sentence(run: &Run) -> String {
    match (&run.verdict, &run.end) {
        (Some(v), _) => v.sentence.clone(),
        (None, None) => {
            "Undecided: the run file was cut off before its verdict; what follows is what it still holds."
                .to_owned()
        }
        (None, Some(e)) => format!("Undecided: the run ended ({}) without a verdict.", e.reason),
    }
}

/// The outcome; without a verdict, undecided.
#[must_use]
pub fn outcome(run: &Run) -> Outcome {
    Analysis::of(run).outcome()
}

/// A short name of the machine: what is known of model and kernel.
#[must_use]
pub fn machine(run: &Run) -> String {
    let fact = |name: &str| run.header.machine.get(name).and_then(|f| f.as_str());
    let parts: Vec<&str> =
        ["host.name", "cpu.model", "kernel.release"].into_iter().filter_map(fact).collect();
    parts.join(", ")
}
