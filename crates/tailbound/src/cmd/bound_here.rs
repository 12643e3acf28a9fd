// SPDX-License-Identifier: MIT OR Apache-2.0
//! `bound --theory here`: records where this machine's kernel disables interrupts and preemption, and computes the bound of each
//! CPU.
//!
//! What the machine does meanwhile is the load. Not here: what events come to (`tailbound_paths::machine`), the bound
//! (`tailbound_stats::theory`).

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use tailbound_core::theory::{Holds, Precondition, TheoryRecord};
use tailbound_core::units::{format_ns_i64, grouped};
use tailbound_host::procstat::{self, Ticks};
use tailbound_host::smi;
use tailbound_host::{Cpus, Root, preemptirq};
use tailbound_paths::machine::{CpuEvents, Names};
use tailbound_record::section_trace::{SectionEvent, SectionTrace};
use tailbound_report::text::Style;
use tailbound_report::theory::{self as words, OfCpu};
use tailbound_rules::{CheckScope, Machine, Precondition as Checked};
use tailbound_stats::theory::{self, Model, TheoreticalBound};
use tailbound_sys::{clock, sched};

use super::bound_theory::Theory;
use crate::cli_bound::BoundArgs;
use crate::looking::{self, Looking};
use crate::say::Failure;

/// How long it is recorded where nobody says.
const DURATION: Duration = Duration::from_secs(10);

/// What was recorded, beside the bound of the CPU that has the greatest.
#[derive(Debug)]
pub(super) struct Here {
    /// The CPU of the bound.
    cpu: u32,
    cpus: Vec<(u32, TheoryRecord, TheoreticalBound)>,
    events: u64,
    lost: u64,
    span_ns: i64,
    event_ns: Option<i64>,
    notes: Vec<String>,
}

/// What counts up on its own, before and after.
struct Counts {
    ticks: Option<Ticks>,
    smis: Result<u64, String>,
}

impl Counts {
    fn read(root: &Root, cpu: u32) -> Self {
        let smis = smi::count(root, cpu).map_err(|e| e.to_string());
        Self { ticks: procstat::read(root).ok(), smis }
    }
}

/// Records.
///
/// # Errors
/// Words that are wrong; a kernel without the events, or a user who may not have them.
pub(super) fn record(args: &BoundArgs) -> Result<Theory, Failure> {
    let cannot = |e: &dyn std::fmt::Display| Failure::cannot(format!("bound --theory here: {e}"));
    let duration = args.duration.as_deref().map(looking::length).transpose()?.unwrap_or(DURATION);
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
    move_away(&chosen, &machine, &mut notes);
    let exe = std::env::current_exe().map_err(Failure::cannot)?;
    let list: Vec<u32> = chosen.iter().collect();
    let first = list.first().copied().unwrap_or(0);
    let before = Counts::read(&root, first);
    let mut looking = Looking::begin(Some(duration))?;
    let mut trace = SectionTrace::begin(&root, &exe, &list).map_err(|e| cannot(&e))?;
    let begin_ns = clock::now_ns(clock::CLOCK_MONOTONIC).max(0).cast_unsigned();
    let mut all: Vec<CpuEvents> = list.iter().map(|cpu| CpuEvents::new(*cpu, begin_ns)).collect();
    looking.start();
    while looking.next() {
        trace.poll(&mut |seen| take(&mut all, seen));
        if !args.quiet {
            looking.say(|| format!("{} events", grouped(all.iter().map(CpuEvents::events).sum())));
        }
    }
    trace.stop(&mut |seen| take(&mut all, seen));
    drop(looking);
    let after = Counts::read(&root, first);
    let names =
        Names { symbols: trace.symbols(), begin: trace.code_begin(), event_ns: trace.event_ns() };
    let found = tailbound_rules::preconditions(&facts);
    let settings = settings(&found);
    let events = all.iter().map(CpuEvents::events).sum();
    let span_ns = all.iter().map(CpuEvents::span_ns).max().unwrap_or(0);
    let mut cpus = Vec::new();
    for one in all {
        let cpu = one.cpu();
        let mut evidence = one.finish(&names);
        evidence.preconditions.extend(settings.iter().cloned());
        evidence.preconditions.extend(counted(&before, &after, cpu, &found));
        evidence.preconditions.extend(always(trace.event_ns()));
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
    let here = Here { cpu, cpus, events, lost: recorded.lost, span_ns, event_ns, notes };
    let kernel = root.text("/proc/sys/kernel/osrelease").ok().map(|r| r.trim().to_owned());
    Ok(Theory { record, answer, kernel, machine: true, here: Some(here) })
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
    machine.resolve(word).map_err(|e| Failure::usage(format!("-c: {e}")))
}

/// This program shall not be among what is recorded.
fn move_away(chosen: &tailbound_core::CpuSet, machine: &Cpus, notes: &mut Vec<String>) {
    let allowed = sched::affinity(0).unwrap_or_else(|_| machine.online.iter().collect());
    let chosen: BTreeSet<u32> = chosen.iter().collect();
    let others: Vec<u32> = allowed.into_iter().filter(|c| !chosen.contains(c)).collect();
    if others.is_empty() || sched::set_affinity(0, &others).is_err() {
        let why = "tailbound itself has no other CPU to run on: its reading of the events is a part of the load";
        notes.push(why.to_owned());
    }
}

fn named(name: &str, holds: Holds, why: String) -> Precondition {
    Precondition { name: name.to_owned(), holds, why }
}

/// What `check` says of settings. One that lets something happen which did not happen is an assumption: the trace
/// tells what did.
fn settings(found: &[Checked]) -> Vec<Precondition> {
    let wanted = [
        ("no-fair-server", "fair server"),
        ("no-throttling", "throttling of real-time threads"),
        ("no-deadline-task", "deadline tasks later"),
    ];
    let one = |(id, name): (&str, &str)| {
        let p = found.iter().find(|p| p.name == id)?;
        Some(match p.holds {
            Some(true) => named(name, Holds::Yes, p.evidence.clone()),
            Some(false) => named(
                name,
                Holds::Unknown,
                format!(
                    "{}: while it was recorded that did nothing unless it says so above",
                    p.evidence
                ),
            ),
            None => named(name, Holds::Unknown, p.evidence.clone()),
        })
    };
    wanted.into_iter().filter_map(one).collect()
}

/// What counts tell of the time in between.
fn counted(before: &Counts, after: &Counts, cpu: u32, found: &[Checked]) -> Vec<Precondition> {
    let by_check = |id: &str| found.iter().find(|p| p.name == id);
    let ticks = |c: &Counts| c.ticks.as_ref().and_then(|t| t.get(&cpu)).and_then(|t| t.steal);
    let steal = match (ticks(before), ticks(after)) {
        (Some(b), Some(a)) if a > b => {
            (Holds::No, format!("the host took {} ticks of CPU {cpu} while it was recorded", a - b))
        }
        _ => match by_check("no-steal") {
            Some(p) if p.holds == Some(true) => (Holds::Yes, p.evidence.clone()),
            Some(p) => (
                Holds::Unknown,
                format!(
                    "{}; none is counted for the time of the recording, and less than a tick would not be",
                    p.evidence
                ),
            ),
            None => (Holds::Unknown, "no check tells".to_owned()),
        },
    };
    let smi = match (&before.smis, &after.smis) {
        (Ok(b), Ok(a)) if a > b => {
            (Holds::No, format!("the firmware interrupted {} times while it was recorded", a - b))
        }
        (Ok(_), Ok(_)) => (Holds::Yes, "the CPU counted none while it was recorded".to_owned()),
        (Err(why), _) | (_, Err(why)) => match by_check("no-smi") {
            Some(p) if p.holds == Some(true) => (Holds::Yes, p.evidence.clone()),
            Some(p) => (Holds::Unknown, format!("{} ({why})", p.evidence)),
            None => (Holds::Unknown, why.clone()),
        },
    };
    vec![named("steal", steal.0, steal.1), named("firmware (SMI)", smi.0, smi.1)]
}

/// What holds for every machine.
fn always(event_ns: Option<i64>) -> Vec<Precondition> {
    let cost = event_ns.map_or_else(
        || "what one event costs could not be measured".to_owned(),
        |ns| format!("about {} for each event", format_ns_i64(ns)),
    );
    vec![
        named(
            "recording",
            Holds::Unknown,
            format!("it lengthens what it records, {cost}: the bound is that of a machine that is recorded, and nothing is taken off"),
        ),
        named(
            "hardware",
            Holds::Unknown,
            "from an interrupt's being raised to the kernel's first event, and the way out of an idle state before that, are not seen".to_owned(),
        ),
    ]
}

impl Here {
    /// Whose bound it is.
    pub(super) fn name(&self) -> String {
        let of = self.cpus.len();
        if of == 1 {
            return format!("CPU {}", self.cpu);
        }
        format!("CPU {}, which has the greatest bound of {of}", self.cpu)
    }

    /// CPUs side by side, and what recording them took.
    pub(super) fn text(&self, style: Style) -> String {
        let cpus: Vec<OfCpu<'_>> = (self.cpus.iter())
            .map(|(cpu, record, answer)| OfCpu { cpu: *cpu, record, answer })
            .collect();
        let mut notes = vec![self.cost()];
        notes.extend(self.notes.iter().cloned());
        words::of_cpus(&cpus, &notes, style)
    }

    fn cost(&self) -> String {
        let per_cpu = self.events / (self.cpus.len() as u64).max(1);
        let share = self.event_ns.filter(|_| self.span_ns > 0).map(|ns| {
            let took = i128::from(ns) * i128::from(per_cpu) * 1000 / i128::from(self.span_ns);
            format!(", about {}.{} % of a CPU's time", took / 10, took % 10)
        });
        let lost = if self.lost > 0 {
            format!("; {} more were lost before they were read", grouped(self.lost))
        } else {
            "; none was lost".to_owned()
        };
        format!(
            "{} events in {}{}{lost}",
            grouped(self.events),
            format_ns_i64(self.span_ns),
            share.unwrap_or_default()
        )
    }

    /// For scripts.
    pub(super) fn json(&self) -> Value {
        let cpus: Vec<Value> = (self.cpus.iter())
            .map(|(cpu, record, answer)| json!({ "cpu": cpu, "record": record, "answer": answer }))
            .collect();
        json!({
            "cpu": self.cpu,
            "cpus": cpus,
            "events": self.events,
            "lost": self.lost,
            "event_ns": self.event_ns,
            "span_ns": self.span_ns,
            "notes": self.notes,
        })
    }
}
