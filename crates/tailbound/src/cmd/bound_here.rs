// SPDX-License-Identifier: MIT OR Apache-2.0
//! `bound --theory here`: records where this machine's kernel disables interrupts and preemption, and computes the bound of each
//! CPU.
//!
//! What the machine does meanwhile is the load. Not here: what events come to (`tailbound_paths::machine`), the bound
//! (`tailbound_stats::theory`), what it takes for granted (`tailbound-rules`), its words (`tailbound-report`).

use std::time::Duration;

use tailbound_core::units::grouped;
use tailbound_host::smi;
use tailbound_host::{Cpus, Root, preemptirq};
use tailbound_paths::machine::{CpuEvents, Names};
use tailbound_record::looks::Looks;
use tailbound_record::progress_line::ProgressLine;
use tailbound_record::section_trace::{SectionEvent, SectionTrace};
use tailbound_report::theory::RecordedBound;
use tailbound_rules::{CheckScope, Machine, RecordingCounts, assumptions};
use tailbound_stats::theory::{self, Model, StatedBound, TheoreticalBound};
use tailbound_sys::{clock, sched};

use super::bound_theory::Theory;
use crate::cli_bound::BoundArgs;
use crate::flags;
use crate::say::{self, Failure};

/// How long it is recorded where nobody says.
const DURATION: Duration = Duration::from_secs(10);

/// Records.
///
/// # Errors
/// Words that are wrong; a kernel without the events, or a user who may not have them.
pub(super) fn record(args: &BoundArgs) -> Result<Theory, Failure> {
    let cannot = |e: &dyn std::fmt::Display| Failure::cannot(format!("bound --theory here: {e}"));
    let duration = args.duration.as_deref().map(flags::length).transpose()?.unwrap_or(DURATION);
    let root = Root::real();
    let machine = Cpus::read(&root).map_err(Failure::cannot)?;
    let mut notes = Vec::new();
    let chosen = chosen(args, &machine)?;
    preemptirq::needed(&root).map_err(|e| cannot(&e))?;
    let facts = Machine::read(
        &root,
        CheckScope { rt_cpus: chosen.iter().collect(), ..CheckScope::default() },
        None,
    );
    // This program shall not be among what is recorded.
    if !sched::leave(&chosen.iter().collect(), || machine.online.iter().collect()) {
        let why = "tailbound itself has no other CPU to run on: its reading of the events is a part of the load";
        notes.push(why.to_owned());
    }
    let exe = std::env::current_exe().map_err(Failure::cannot)?;
    let list: Vec<u32> = chosen.iter().collect();
    let first = list.first().copied().unwrap_or(0);
    let counts = || RecordingCounts::read(&root, smi::count(&root, first));
    let before = counts();
    let mut looks = Looks::begin(Some(duration)).map_err(Failure::cannot)?;
    let mut line = ProgressLine::new(say::progress(args.quiet));
    let mut trace = SectionTrace::begin(&root, &exe, &list).map_err(|e| cannot(&e))?;
    let begin_ns = clock::now_ns(clock::CLOCK_MONOTONIC).max(0).cast_unsigned();
    let mut all: Vec<CpuEvents> = list.iter().map(|cpu| CpuEvents::new(*cpu, begin_ns)).collect();
    looks.start();
    while looks.wait() {
        trace.poll(&mut |seen| take(&mut all, seen));
        let n = || grouped(all.iter().map(CpuEvents::events).sum());
        looks.tell(&mut line, &mut || format!("{} events", n()));
    }
    trace.stop(&mut |seen| take(&mut all, seen));
    drop(line);
    let after = counts();
    let names =
        Names { symbols: trace.symbols(), begin: trace.code_begin(), event_ns: trace.event_ns() };
    let found = tailbound_rules::preconditions(&facts);
    let events = all.iter().map(CpuEvents::events).sum();
    let span_ns = all.iter().map(CpuEvents::span_ns).max().unwrap_or(0);
    let mut cpus = Vec::new();
    for one in all {
        let cpu = one.cpu();
        let mut evidence = one.finish(&names);
        let assumed = assumptions(&found, &before, &after, cpu, trace.event_ns());
        evidence.preconditions.extend(assumed);
        let record = theory::condense(&evidence);
        let answer = theory::answer(&record);
        answer.holds(&record).map_err(|why| cannot(&format!("CPU {cpu}: {why}")))?;
        cpus.push((cpu, record, answer));
    }
    let event_ns = trace.event_ns();
    let recorded = trace.end();
    notes.extend(recorded.notes);
    notes.extend(recorded.findings.into_iter().map(|f| f.title));
    let worst = cpus.iter().max_by_key(|(_, _, answer)| latency(answer).unwrap_or(i64::MAX));
    let Some((cpu, record, answer)) = worst.cloned() else {
        return Err(cannot(&"no CPU was chosen"));
    };
    let here = RecordedBound { cpu, cpus, events, lost: recorded.lost, span_ns, event_ns, notes };
    let kernel = root.text("/proc/sys/kernel/osrelease").ok().map(|r| r.trim().to_owned());
    let bound = StatedBound { record, answer, kernel, machine: true };
    Ok(Theory { bound, here: Some(here) })
}

/// `None` where there is no bound, which is worse than any.
fn latency(answer: &TheoreticalBound) -> Option<i64> {
    answer.of(Model::Window)?.latency_ns
}

fn take(all: &mut [CpuEvents], seen: SectionEvent<'_>) {
    let cpu = match seen {
        SectionEvent::Entry(e) => e.cpu,
        SectionEvent::Lost(cpu) => cpu,
    };
    let Some(one) = all.iter_mut().find(|one| one.cpu() == cpu) else { return };
    match seen {
        SectionEvent::Entry(e) => one.add(e),
        SectionEvent::Lost(_) => one.lose(),
    }
}

fn chosen(args: &BoundArgs, machine: &Cpus) -> Result<tailbound_core::CpuSet, Failure> {
    let word = args.cpus.as_deref().unwrap_or(match machine.isolated.is_empty() {
        true => "all",
        false => "isolated",
    });
    machine.resolve(word).map_err(flags::refused("-c"))
}
