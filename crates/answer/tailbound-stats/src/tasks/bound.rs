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
use tailbound_core::order;

use response_time_analysis::fixed_priority::floating_nonpreemptive::{
    TaskUnderAnalysis, dedicated_uniproc_rta,
};
use response_time_analysis::time::{Duration, Service};
use tailbound_core::tasks::{Model, Task};

use super::answer::{Bound, NoBound, ResponseTimes, Thread};
use super::demand::{Demand, JobDemand, load};
use super::problem::{LIMIT_NS, Problem};
use super::terms;

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
    order::by_key(&mut order, |k| std::cmp::Reverse(tasks.get(*k).and_then(Task::fixed_priority)));
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

impl Problem<'_> {
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
}
