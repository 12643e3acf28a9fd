// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a verdict is about, counted: due activations, those beyond the requirement, where the
//! worst one was, and how many seconds of the schedule held one.
//!
//! Units: ns; `t_s` in seconds of the schedule.
//! One context is judged: [`Context::judged`].
//! Not here: what follows from it ([`crate::verdict`]).

use std::collections::{BTreeMap, BTreeSet};

use tailbound_core::context::Context;
use tailbound_core::number::Real as _;
use tailbound_core::record::{SecondRecord, ThreadRecord};
use tailbound_core::run::contexts;
use tailbound_core::{Distribution, Plan, Requirement};

use crate::exceed::{self, Exceedances};
use crate::rates::BLOCK_NS;

/// The counts of one run in the judged context.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tally {
    pub(crate) context: Context,
    /// Kinds of records, with the one that is judged.
    pub(crate) contexts: usize,
    /// What was due, in the singular.
    pub(crate) event: String,
    pub(crate) threads: usize,
    /// The CPUs, if every thread had one of its own.
    pub(crate) cpus: Option<BTreeSet<u32>>,
    /// Threads that recorded nothing, and planned CPUs without a thread, in words.
    pub(crate) silent: Vec<String>,
    /// All due activations together.
    pub(crate) due: Distribution,
    pub(crate) missed: u64,
    pub(crate) found: Exceedances,
    pub(crate) latest: Option<Extreme>,
    /// The same without what was missed.
    pub(crate) latest_tried_ns: Option<i64>,
    pub(crate) earliest: Option<Extreme>,
    pub(crate) blocks: Blocks,
}

/// Where the latest or the earliest activation was.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Extreme {
    pub(crate) error_ns: i64,
    pub(crate) cpu: Option<u32>,
    pub(crate) t_s: Option<f64>,
}

/// Seconds of the schedule, and how many of them held an activation beyond the requirement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Blocks {
    pub(crate) seconds: u64,
    pub(crate) hits_min: u64,
    pub(crate) hits_max: u64,
}

/// Counts the judged context of a run.
pub(crate) fn tally(
    plan: &Plan,
    threads: &[ThreadRecord],
    seconds: &[SecondRecord],
    measured_ns: i64,
) -> Tally {
    let requirement = &plan.requirement;
    let contexts = contexts(threads);
    let context = Context::judged(&contexts).unwrap_or_default();
    let judged: Vec<&ThreadRecord> = threads.iter().filter(|t| t.context == context).collect();
    let (mut due, mut found, mut missed) = (Distribution::default(), Exceedances::default(), 0u64);
    for t in &judged {
        // One by one: the exact extremes of each decide more than those of all together.
        for d in [&t.wakeup, &t.missed] {
            due.merge(d);
            found = found.plus(exceed::count(d, requirement.deadline_ns, requirement.early_ns));
        }
        missed = missed.saturating_add(t.missed.n);
    }
    let ids: BTreeSet<u32> = judged.iter().map(|t| t.thread).collect();
    let seconds: Vec<&SecondRecord> = seconds.iter().filter(|s| ids.contains(&s.thread)).collect();
    let cpus: Option<BTreeSet<u32>> = judged.iter().map(|t| t.cpu).collect();
    Tally {
        silent: silent(plan, &judged, cpus.as_ref()),
        latest: latest(plan, &judged, &seconds),
        latest_tried_ns: judged.iter().filter_map(|t| t.wakeup.max_ns).max(),
        earliest: earliest(&judged),
        blocks: blocks(requirement, &judged, &seconds, found, measured_ns),
        threads: judged.len(),
        cpus,
        context,
        contexts: contexts.len(),
        event: plan.event_word().to_owned(),
        due,
        missed,
        found,
    }
}

fn silent(plan: &Plan, judged: &[&ThreadRecord], cpus: Option<&BTreeSet<u32>>) -> Vec<String> {
    let name = |t: &ThreadRecord| {
        t.cpu.map_or_else(|| format!("thread {}", t.thread), |c| format!("CPU {c}"))
    };
    let empty = judged.iter().filter(|t| t.wakeup.n == 0 && t.missed.n == 0).map(|t| name(t));
    let absent = plan
        .cpus
        .iter()
        // Other probes have other record slots than one per CPU, and records of each.
        .filter(|_| plan.event.is_none())
        .filter(|c| cpus.is_some_and(|known| !known.contains(c)))
        .map(|c| format!("CPU {c}"));
    empty.chain(absent).collect()
}

fn latest(plan: &Plan, judged: &[&ThreadRecord], seconds: &[&SecondRecord]) -> Option<Extreme> {
    let (max_ns, t) = judged
        .iter()
        .filter_map(|t| t.wakeup.max_ns.max(t.missed.max_ns).map(|max| (max, *t)))
        .max_by_key(|(max, _)| *max)?;
    let t_s = seconds
        .iter()
        .find(|s| s.thread == t.thread && s.n > 0 && s.max_ns == max_ns)
        .zip(plan.interval())
        .map(|(s, interval_ns)| s.argmax.real() * interval_ns.real() / 1e9);
    Some(Extreme { error_ns: max_ns, cpu: t.cpu, t_s })
}

fn earliest(judged: &[&ThreadRecord]) -> Option<Extreme> {
    let (min_ns, t) = judged
        .iter()
        .filter_map(|t| t.wakeup.min_ns.map(|min| (min, *t)))
        .min_by_key(|(min, _)| *min)?;
    Some(Extreme { error_ns: min_ns, cpu: t.cpu, t_s: None })
}

fn blocks(
    requirement: &Requirement,
    judged: &[&ThreadRecord],
    seconds: &[&SecondRecord],
    found: Exceedances,
    measured_ns: i64,
) -> Blocks {
    let whole = u64::try_from(measured_ns / BLOCK_NS).unwrap_or(0);
    let most = found.beyond().saturating_add(found.unknown);
    if most == 0 {
        return Blocks { seconds: whole, hits_min: 0, hits_max: 0 };
    }
    let step = judged.iter().map(|t| t.wakeup.resolution_ns).max().unwrap_or(1).saturating_sub(1);
    let step = i64::try_from(step).unwrap_or(i64::MAX);
    let beyond = |s: &SecondRecord, step: i64| {
        let late = |limit| s.max_ns.saturating_add(step) > limit;
        let early = |limit: i64| s.min_ns.saturating_sub(step) < limit.saturating_neg();
        s.n > 0
            && (requirement.deadline_ns.is_some_and(late)
                || requirement.early_ns.is_some_and(early))
    };
    let distinct = |step: i64| {
        let hit: BTreeSet<u64> =
            seconds.iter().filter(|s| beyond(s, step)).map(|s| s.second).collect();
        hit.len() as u64
    };
    let hits_min = distinct(0).max(u64::from(found.beyond() > 0));
    let hits_max = distinct(step).saturating_add(unrecorded(judged, seconds, whole)).min(most);
    let hits_max = hits_max.max(hits_min);
    // What came in the last, partial second counts, and that second with it.
    Blocks { seconds: whole.max(hits_max), hits_min, hits_max }
}

/// Seconds of which at least one thread has no record, or not all of it.
fn unrecorded(judged: &[&ThreadRecord], seconds: &[&SecondRecord], whole: u64) -> u64 {
    let mut of: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for s in seconds {
        let (n, count) = of.entry(s.thread).or_default();
        *n = n.saturating_add(s.n);
        *count += 1;
    }
    judged
        .iter()
        .map(|t| match of.get(&t.thread) {
            Some((n, _)) if *n >= t.wakeup.n => 0,
            // The last, broken second is one more.
            Some((_, count)) => (whole + 1).saturating_sub(*count).max(1),
            None => whole + 1,
        })
        .fold(0, u64::max)
}
