// SPDX-License-Identifier: MIT OR Apache-2.0
//! The periods of a run's exceedances: thread by thread, from those kept one by one, or from those that were taken
//! apart, with who made them late where that is known.
//!
//! Units: ns; times are those at which the activations fell due, which the schedule makes exact.

use std::collections::{BTreeMap, BTreeSet};
use tailbound_core::order;

use serde::Serialize;
use tailbound_core::Run;
use tailbound_core::blame::{BlameRecord, Cause};
use tailbound_core::plan::Means;
use tailbound_core::recurring::{Recurring, RecurringKind};

use super::{ExceedancePeriod, period};

/// Most threads of which a period is looked for.
const THREADS_MAX: usize = 64;
/// Most that are told to have the same period.
const SAME_MAX: usize = 4;

/// The period of one thread's exceedances.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ThreadPeriod {
    /// Which thread.
    pub thread: u32,
    /// Its own name, where it is no thread of tailbound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The period.
    #[serde(flatten)]
    pub period: ExceedancePeriod,
    /// Who made most of those late that keep it and were taken apart.
    pub culprit: Option<PeriodCulprit>,
    /// What came with the same period while the run went on; that it made anything late is not known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub same: Vec<SamePeriod>,
}

/// Something that has the period of exceedances.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SamePeriod {
    /// What kind.
    pub kind: RecurringKind,
    /// Its name.
    pub name: String,
}

/// Who made exceedances of a period late.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PeriodCulprit {
    /// The cause.
    pub cause: Cause,
    /// Who, as the kernel names it; empty where there is nobody.
    pub who: String,
    /// So many of them.
    pub count: usize,
    /// Of how many that were taken apart.
    pub of: usize,
}

/// A thread of tailbound by its number, another one also by its name.
type Key = (u32, String);

/// What times can be.
#[derive(Clone, Copy)]
enum Grid {
    /// Anything.
    Free,
    /// Multiples of an interval.
    Interval(i64),
    /// Multiples of something unknown: any period could be its own.
    Unknown,
}

/// The periods in `run`, the one that explains most exceedances first.
#[must_use]
pub fn of_run(run: &Run) -> Vec<ThreadPeriod> {
    let mut blames: BTreeMap<Key, Vec<&BlameRecord>> = BTreeMap::new();
    for blame in run.blames.iter().filter(|b| !b.near) {
        blames.entry((blame.thread, blame.name.clone())).or_default().push(blame);
    }
    let mut times = exceedances(run);
    let kept: BTreeSet<u32> = times.keys().map(|(thread, _)| *thread).collect();
    for (key, of) in blames.iter().filter(|(key, _)| !kept.contains(&key.0)) {
        times.insert(key.clone(), of.iter().map(|b| b.t_ns).collect());
    }
    let recurring = Recurring::of_facts(&run.after);
    let families = times.len().min(THREADS_MAX);
    let mut out: Vec<ThreadPeriod> = times
        .iter()
        .take(THREADS_MAX)
        .filter_map(|(key, times)| {
            let period = match Grid::of(run, key) {
                Grid::Free => period(times, 0, families)?,
                Grid::Interval(ns) => period(&multiples(times, ns), ns, families)?,
                Grid::Unknown => return None,
            };
            // Taken apart are wake-ups of one name; those kept one by one have none.
            let same = |k: &Key| k.0 == key.0 && (key.1.is_empty() || k.1 == key.1);
            let of: Vec<&BlameRecord> =
                blames.iter().filter(|(k, _)| same(k)).flat_map(|(_, of)| of).copied().collect();
            let culprit = culprit(&of, &period);
            let name = Some(key.1.clone()).filter(|n| !n.is_empty());
            let same = same_period(run, key.0, &recurring, &period);
            Some(ThreadPeriod { thread: key.0, name, period, culprit, same })
        })
        .collect();
    order::by_key(&mut out, |p| std::cmp::Reverse(p.period.count));
    out
}

impl Grid {
    fn of(run: &Run, (_, name): &Key) -> Self {
        let plan = &run.header.plan;
        let paced = || {
            let cycle = run.cycles.iter().find(|c| !name.is_empty() && c.name == *name)?;
            cycle.pace.period_ns.filter(|ns| *ns > 0)
        };
        match (plan.interval(), plan.means) {
            (Some(_), _) if plan.spread.is_some() => Self::Free,
            (Some(ns), _) => Self::Interval(ns),
            (None, Means::Polling) => Self::Free,
            (None, _) => paced().map_or(Self::Unknown, Self::Interval),
        }
    }
}

/// The multiples of `interval_ns`, from the first of `times` on, that are next to each.
fn multiples(times: &[i64], interval_ns: i64) -> Vec<i64> {
    let first = times.iter().copied().min().unwrap_or(0);
    let next = |t: &i64| {
        let whole = t.saturating_sub(first).saturating_add(interval_ns / 2) / interval_ns;
        first.saturating_add(whole.saturating_mul(interval_ns))
    };
    times.iter().map(next).collect()
}

/// When the exceedances of each judged thread fell due.
fn exceedances(run: &Run) -> BTreeMap<Key, Vec<i64>> {
    let judged = run.judged_context();
    let threads: BTreeSet<u32> =
        run.threads.iter().filter(|t| Some(t.context) == judged).map(|t| t.thread).collect();
    let mut times: BTreeMap<Key, Vec<i64>> = BTreeMap::new();
    for e in run.exceedances.iter().filter(|e| threads.is_empty() || threads.contains(&e.thread)) {
        let due_ns = e.t_ns.saturating_sub(e.error_ns);
        times.entry((e.thread, String::new())).or_default().push(due_ns);
    }
    times
}

/// Those of `all` that have the period, on the CPU of the thread or on any.
fn same_period(
    run: &Run,
    thread: u32,
    all: &[Recurring],
    period: &ExceedancePeriod,
) -> Vec<SamePeriod> {
    let cpu = run.threads.iter().find(|t| t.thread == thread).and_then(|t| t.cpu);
    let here = |r: &&Recurring| r.cpu.is_none() || cpu.is_none() || r.cpu == cpu;
    all.iter()
        .filter(here)
        .filter(|r| r.has_period(period.period_ns, period.error_ns))
        .take(SAME_MAX)
        .map(|r| SamePeriod { kind: r.kind, name: r.name.clone() })
        .collect()
}

/// Who made more than half of those late that keep the period and were taken apart.
fn culprit(blames: &[&BlameRecord], period: &ExceedancePeriod) -> Option<PeriodCulprit> {
    let keeps = |t_ns: i64| {
        let at = period.times_ns.partition_point(|t| *t < t_ns.saturating_sub(period.error_ns / 2));
        period.times_ns.get(at).is_some_and(|t| *t <= t_ns.saturating_add(period.error_ns / 2))
    };
    let of: Vec<(Cause, &str)> =
        blames.iter().filter(|b| keeps(b.t_ns)).map(|b| b.culprit()).collect();
    let mut counts: Vec<(Cause, String, usize)> = Vec::new();
    for (cause, who) in &of {
        let who = tailbound_core::blame::without_numbers(who);
        match counts.iter_mut().find(|(c, w, _)| c == cause && *w == who) {
            Some((.., n)) => *n += 1,
            None => counts.push((*cause, who, 1)),
        }
    }
    let (cause, who, count) = counts.into_iter().max_by_key(|(.., n)| *n)?;
    (count >= 2 && count * 2 > of.len()).then_some(PeriodCulprit {
        cause,
        who,
        count,
        of: of.len(),
    })
}
