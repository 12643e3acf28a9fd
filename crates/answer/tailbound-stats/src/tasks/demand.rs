// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much processor time a task can ask for in an interval, in the terms of the library that finds
//! the bounds.
//!
//! Units: ns. The library computes with unchecked 64-bit numbers: times are bounded to a
//! day here, demand to [`CEILING`], and the work by a count of steps; beyond them the answer is
//! "no fixed point", never an overflow or an endless search.
//! Not here: the analysis (`bound`).

use std::cell::Cell;

use response_time_analysis::arrival::{ArrivalBound, Curve, Sporadic};
use response_time_analysis::demand::RequestBound;
use response_time_analysis::time::{Duration, Service};
use response_time_analysis::wcet::{self, JobCostModel as _};
use tailbound_core::number::Real as _;
use tailbound_core::tasks::{Arrivals, Task};

use super::answer::NoBound;

/// Longest time of a task: a day.
const TIME_MAX_NS: i64 = 86_400_000_000_000;
/// More demand than is ever looked for; so low that that of 16,384 tasks can be added up.
const CEILING: u64 = 1 << 44;
/// Distances to which a short curve is continued by what it implies.
const CONTINUED: usize = 64;

/// Steps that an analysis may still take.
pub(super) type Steps<'a> = &'a Cell<u64>;

/// The demand of one task.
pub(super) struct Demand<'a> {
    arrivals: Box<dyn ArrivalBound>,
    /// Of the first, the first two, … successive jobs.
    cost: wcet::Curve,
    /// Of the longest list of them, to tell before whether a product is too large.
    most: u64,
    left: Steps<'a>,
}

/// What successive jobs ask for: the sum of lists, and of something that each job adds.
pub(super) struct JobDemand<'t> {
    pub(super) lists: Vec<&'t [i64]>,
    pub(super) each_ns: i64,
    /// At least this of the last list.
    pub(super) last_least_ns: i64,
}

impl JobDemand<'_> {
    /// Of so many jobs.
    fn of(&self, jobs: usize) -> i64 {
        let last = self.lists.len().saturating_sub(1);
        let lists = self.lists.iter().enumerate().map(|(i, list)| {
            let ns = successive(list, jobs);
            if i == last { ns.max(self.last_least_ns) } else { ns }
        });
        let each = self.each_ns.saturating_mul(i64::try_from(jobs).unwrap_or(i64::MAX));
        lists.fold(each, i64::saturating_add)
    }
}

/// What a list says of so many successive jobs: more than it has are several runs of those it has. A list
/// of which a long entry was seen in another stretch than a short one need not rise by itself.
pub(super) fn successive(list: &[i64], jobs: usize) -> i64 {
    if list.is_empty() {
        return 0;
    }
    let up_to = |n: usize| list.iter().take(n).copied().max().unwrap_or(0).max(0);
    let runs = i64::try_from(jobs / list.len()).unwrap_or(i64::MAX);
    up_to(list.len()).saturating_mul(runs).saturating_add(up_to(jobs % list.len()))
}

impl<'a> Demand<'a> {
    /// That of `task` whose releases are seen with `jitter_ns` more, its jobs asking for `asked`.
    ///
    /// # Errors
    /// Too few jobs, or times that are none.
    pub(super) fn new(
        task: &Task,
        jitter_ns: i64,
        asked: &JobDemand<'_>,
        left: Steps<'a>,
    ) -> Result<Self, NoBound> {
        let name = || task.name.clone();
        let beyond = |ns: &i64| !(0..=TIME_MAX_NS).contains(ns);
        let lists = asked.lists.iter().flat_map(|l| l.iter());
        if lists.chain([&asked.each_ns, &jitter_ns]).any(beyond) {
            return Err(NoBound::OutOfRange { name: name() });
        }
        if task.execution_ns.is_empty() {
            return Err(NoBound::FewJobs { name: name(), jobs: task.jobs.unwrap_or(0) });
        }
        let longest = asked.lists.iter().map(|l| l.len()).max().unwrap_or(1).max(1);
        let cost: Vec<u64> = (1..=longest).map(|n| asked.of(n).max(0).unsigned_abs()).collect();
        let most = cost.last().copied().unwrap_or(1).max(1);
        let arrivals = arrivals(task)?;
        let jitter = Duration::from(jitter_ns.unsigned_abs());
        let arrivals = if jitter_ns > 0 { arrivals.clone_with_jitter(jitter) } else { arrivals };
        let cost = wcet::Curve::new(cost.into_iter().map(Service::from).collect());
        Ok(Self { arrivals, cost, most, left })
    }

    /// The most jobs that are released within `delta`.
    pub(super) fn jobs(&self, delta: Duration) -> u64 {
        u64::try_from(self.arrivals.number_arrivals(delta)).unwrap_or(u64::MAX)
    }

    /// All that so many jobs ask for.
    pub(super) fn of_jobs(&self, jobs: u64) -> u64 {
        match usize::try_from(jobs) {
            Ok(n) if jobs <= CEILING / self.most => {
                u64::from(self.cost.cost_of_jobs(n)).min(CEILING)
            }
            _ => CEILING,
        }
    }
}

impl RequestBound for Demand<'_> {
    fn service_needed(&self, delta: Duration) -> Service {
        match self.left.get().checked_sub(1) {
            Some(left) => {
                self.left.set(left);
                Service::from(self.of_jobs(self.jobs(delta)))
            }
            None => Service::from(CEILING),
        }
    }

    fn least_wcet_in_interval(&self, delta: Duration) -> Service {
        self.cost.least_wcet(self.arrivals.number_arrivals(delta))
    }

    fn steps_iter<'b>(&'b self) -> Box<dyn Iterator<Item = Duration> + 'b> {
        self.arrivals.steps_iter()
    }

    fn job_cost_iter<'b>(&'b self, delta: Duration) -> Box<dyn Iterator<Item = Service> + 'b> {
        let of = |n: u64| self.of_jobs(n);
        Box::new(
            (1..=self.jobs(delta)).map(move |n| Service::from(of(n).saturating_sub(of(n - 1)))),
        )
    }
}

fn arrivals(task: &Task) -> Result<Box<dyn ArrivalBound>, NoBound> {
    let name = || task.name.clone();
    match &task.arrivals {
        Arrivals::Periodic { period_ns, jitter_ns } => {
            if *period_ns <= 0 || *period_ns > TIME_MAX_NS || !(0..=TIME_MAX_NS).contains(jitter_ns)
            {
                return Err(NoBound::OutOfRange { name: name() });
            }
            let period = Duration::from(period_ns.unsigned_abs());
            let jitter = Duration::from(jitter_ns.unsigned_abs());
            Ok(Box::new(Sporadic::new(period, jitter)))
        }
        Arrivals::Curve(distances) => {
            let mut shortest = 0;
            // Those of a file may fall, or be beyond a day: shorter is safe.
            let mut known: Vec<i64> = distances
                .iter()
                .rev()
                .scan(TIME_MAX_NS, |least, ns| {
                    *least = (*ns).clamp(0, *least);
                    Some(*least)
                })
                .collect();
            known.reverse();
            let known: Vec<Duration> = known
                .iter()
                .map(|ns| {
                    shortest = *ns;
                    Duration::from(ns.unsigned_abs())
                })
                .collect();
            if known.is_empty() {
                return Err(NoBound::FewJobs { name: name(), jobs: task.jobs.unwrap_or(1) });
            }
            if shortest == 0 {
                return Err(NoBound::AtOnce { name: name() });
            }
            let mut curve = Curve::new(known);
            curve.extrapolate_steps(CONTINUED);
            Ok(Box::new(curve))
        }
    }
}

/// The share of a CPU that a task can take for long.
pub(super) fn load(task: &Task) -> Option<f64> {
    let jobs = task.execution_ns.len();
    let each = task.execution_ns.last()?.real() / jobs.max(1).real();
    let apart = match &task.arrivals {
        Arrivals::Periodic { period_ns, .. } => period_ns.real(),
        Arrivals::Curve(distances) => distances.last()?.real() / distances.len().real(),
    };
    (apart > 0.0).then(|| each / apart)
}
