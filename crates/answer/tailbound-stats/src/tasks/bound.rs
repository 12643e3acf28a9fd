// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bounds of response times under preemptive fixed priorities, each thread on one CPU.
//!
//! Units: ns. The fixed point is that of the library; what counts as demand is decided
//! here, in two ways that both hold, of which the smaller bound is told:
//! - *all*: every instant of a busy window of threads of at least this priority goes to one of their jobs,
//!   to its execution or to its being asleep, blocked or late. Sleep counts as execution.
//! - *own*: every instant while this thread has a job goes to that job, or to the execution of another
//!   thread's job that was released no earlier than that thread's bound before.
//!
//! A thread of equal priority counts as higher: it may go before.
//! Not here: the model (`tailbound_core::tasks`), demand (`demand`), the parts (`terms`).
//! Source: Joseph and Pandya 1986; Lehoczky 1990 (busy windows); Audsley et al. 1993 (blocking, jitter);
//! Bozhko and Brandenburg 2020, "Abstract response-time analysis", which the library implements;
//! Chen et al. 2019, "Many suspensions, many problems", on what holds with self-suspension.

use std::cell::Cell;

use response_time_analysis::fixed_priority::floating_nonpreemptive::{
    TaskUnderAnalysis, dedicated_uniproc_rta,
};
use response_time_analysis::time::{Duration, Service};
use tailbound_core::policy::Policy;
use tailbound_core::tasks::{Model, Task};

use super::answer::{Bound, NoBound, ResponseTimes, Thread};
use super::demand::{Demand, JobDemand, load};
use super::terms;

/// How far a fixed point is looked for.
const LIMIT_NS: u64 = 1_000_000_000_000;
/// Steps for one bound.
const STEPS: u64 = 3_000_000;

/// The bound of every thread of a model, or why it has none.
#[must_use]
pub fn analyse(model: &Model) -> ResponseTimes {
    let tasks = &model.tasks;
    let all: Vec<Result<Bound, NoBound>> =
        (0..tasks.len()).map(|k| Problem::of(tasks, k)?.all()).collect();
    let mut best = all.clone();
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|k| std::cmp::Reverse(tasks.get(*k).and_then(Task::fixed_priority)));
    for k in order {
        let Ok(problem) = Problem::of(tasks, k) else { continue };
        let own = problem.own(|i| {
            // Of those of equal priority none is first: their bound is the one that needs no other's.
            let equal =
                tasks.get(i).map(Task::fixed_priority) == Some(problem.task.fixed_priority());
            let known = if equal { all.get(i) } else { best.get(i) };
            known.and_then(|b| b.as_ref().ok()).map(|b| b.ns)
        });
        if let (Some(own), Some(slot)) = (own, best.get_mut(k))
            && slot.as_ref().map_or(true, |b| own.ns < b.ns)
        {
            *slot = Ok(own);
        }
    }
    let threads = tasks.iter().zip(best).map(|(task, bound)| Thread {
        name: task.name.clone(),
        policy: task.policy,
        cpus: task.cpus.clone(),
        load: load(task),
        observed_ns: task.observed_ns,
        jitter_ns: task.jitter_ns,
        deadline_ns: task.deadline_ns,
        bound,
    });
    ResponseTimes { threads: threads.collect(), watched_ns: model.watched_ns }
}

/// One thread and those that may go before it.
pub(super) struct Problem<'a> {
    pub(super) task: &'a Task,
    /// With their places in the model.
    pub(super) higher: Vec<(usize, &'a Task)>,
    pub(super) cpu: u32,
    /// How long one thread of lower priority can hold this one up: a lock, or a stretch for which it does
    /// not let itself be preempted.
    pub(super) stretch_ns: i64,
    /// The longest section that any thread met on this CPU.
    pub(super) section_ns: i64,
}

impl<'a> Problem<'a> {
    fn of(tasks: &'a [Task], k: usize) -> Result<Self, NoBound> {
        let task = tasks.get(k).ok_or(NoBound::Policy(Policy::Other))?;
        let priority = task.fixed_priority().ok_or(NoBound::Policy(task.policy))?;
        let cpu = task.cpu().ok_or_else(|| match task.cpus.is_empty() {
            true => NoBound::FewJobs { name: task.name.clone(), jobs: 0 },
            false => NoBound::Moves(task.cpus.clone()),
        })?;
        let here = || tasks.iter().enumerate().filter(|(i, t)| *i != k && t.cpus.contains(&cpu));
        if let Some((_, t)) = here().find(|(_, t)| matches!(t.policy, Policy::Deadline { .. })) {
            return Err(NoBound::DeadlineThread { name: t.name.clone(), cpu });
        }
        let above = |t: &Task| t.fixed_priority().is_some_and(|p| p >= priority);
        let higher: Vec<(usize, &Task)> = here().filter(|(_, t)| above(t)).collect();
        if let Some((_, t)) = higher.iter().find(|(_, t)| t.cpu().is_none()) {
            return Err(NoBound::OtherMoves { name: t.name.clone(), cpus: t.cpus.clone(), cpu });
        }
        let lower = here().filter(|(_, t)| !above(t)).map(|(_, t)| t.non_preemptible_ns);
        let sections = here().map(|(_, t)| t.section_ns);
        Ok(Self {
            task,
            higher,
            cpu,
            stretch_ns: lower.max().unwrap_or(0).saturating_add(task.blocking_once_ns),
            section_ns: sections.chain([task.section_ns]).max().unwrap_or(0),
        })
    }

    /// How long stretches of lower threads can hold up one job: each sleep lets one begin.
    pub(super) fn stretches_ns(&self, task: &Task) -> i64 {
        self.stretch_ns.saturating_mul(i64::from(task.suspensions))
    }

    /// Everything that jobs of `task` ask for. Of latency at least the longest section that any thread met
    /// on this CPU, since that can meet this one too.
    fn everything<'t>(&self, task: &'t Task) -> JobDemand<'t> {
        JobDemand {
            lists: vec![
                &task.execution_ns,
                &task.suspension_ns,
                &task.blocking_ns,
                &task.unwatched_ns,
                &task.latency_ns,
            ],
            each_ns: self.stretches_ns(task),
            last_least_ns: self.section_ns,
        }
    }

    fn all(&self) -> Result<Bound, NoBound> {
        let left = Cell::new(STEPS);
        let demand = |t: &Task| Demand::new(t, 0, &self.everything(t), &left);
        let own = demand(self.task)?;
        let higher: Vec<Demand<'_>> =
            self.higher.iter().map(|(_, t)| demand(t)).collect::<Result<_, _>>()?;
        self.solve(&own, &higher).ok_or_else(|| NoBound::NoFixedPoint {
            limit_ns: i64::try_from(LIMIT_NS).unwrap_or(i64::MAX),
            load: self.higher.iter().map(|(_, t)| *t).chain([self.task]).filter_map(load).sum(),
            cpu: self.cpu,
        })
    }

    /// `None`: there is no such bound, as one of theirs is not known.
    fn own(&self, bound_of: impl Fn(usize) -> Option<i64>) -> Option<Bound> {
        let left = Cell::new(STEPS);
        let own = Demand::new(self.task, 0, &self.everything(self.task), &left).ok()?;
        let higher: Vec<Demand<'_>> = (self.higher.iter())
            .map(|(i, t)| {
                let lists = vec![t.execution_ns.as_slice()];
                let execution = JobDemand { lists, each_ns: 0, last_least_ns: 0 };
                Demand::new(t, bound_of(*i)?, &execution, &left).ok()
            })
            .collect::<Option<_>>()?;
        self.solve(&own, &higher)
    }

    fn solve(&self, own: &Demand<'_>, higher: &[Demand<'_>]) -> Option<Bound> {
        let once = Service::from(self.stretch_ns.max(0).unsigned_abs());
        let task = TaskUnderAnalysis { rbf: own, blocking_bound: once };
        let refs: Vec<&Demand<'_>> = higher.iter().collect();
        let found = dedicated_uniproc_rta(&task, &refs, Duration::from(LIMIT_NS)).ok()?;
        terms::of(self, own, higher, once, found)
    }

    /// See [`LIMIT_NS`].
    pub(super) fn limit() -> Duration {
        Duration::from(LIMIT_NS)
    }
}
