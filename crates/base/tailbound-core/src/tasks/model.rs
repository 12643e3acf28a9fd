// SPDX-License-Identifier: MIT OR Apache-2.0
//! The model of a set of threads that a response-time analysis takes, from a run or written by hand.
//!
//! Units: ns.
//! Not here: what was seen (`record`), the words of a file (`file`), the analysis (`tailbound_stats::tasks`).

use crate::policy::Policy;

use super::record::{ArrivalModel, TaskRecord};

/// How often jobs of a task can come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// At most one in each period, each up to the jitter after its time.
    Periodic {
        /// Period, or shortest time between two.
        period_ns: i64,
        /// Release jitter.
        jitter_ns: i64,
    },
    /// The shortest time from a release to the 1st, 2nd, … after it.
    Curve(Vec<i64>),
}

/// One task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its name.
    pub name: String,
    /// Policy and priority.
    pub policy: Policy,
    /// The CPUs it runs on.
    pub cpus: Vec<u32>,
    /// Its releases.
    pub arrivals: Arrivals,
    /// A period that describes them, where they have one; the analysis does not need it.
    pub period_ns: Option<i64>,
    /// How much later than its due time a job may be released.
    pub jitter_ns: i64,
    /// The most execution time of 1, 2, … successive jobs.
    pub execution_ns: Vec<i64>,
    /// The most execution time of one job without the interrupts that hit it, where that is known.
    pub own_execution_ns: Option<i64>,
    /// The most time asleep of 1, 2, … successive jobs; empty: none, as with the lists that follow.
    pub suspension_ns: Vec<i64>,
    /// The most sleeps within a job, for whatever.
    pub suspensions: u32,
    /// The most time of successive jobs asleep for locks that a thread of lower priority held.
    pub blocking_ns: Vec<i64>,
    /// How long one section of a thread of lower priority with a lock can hold it up, once in a busy
    /// window and once more for each sleep: the B of textbooks.
    pub blocking_once_ns: i64,
    /// The most time of successive jobs ready while a thread of lower priority, or none, had the CPU.
    pub latency_ns: Vec<i64>,
    /// The longest single stretch of that.
    pub section_ns: i64,
    /// The most time of successive jobs ready behind threads that are not in the model.
    pub unwatched_ns: Vec<i64>,
    /// The longest stretch for which it does not let itself be preempted.
    pub non_preemptible_ns: i64,
    /// When its jobs must be done, since they fell due.
    pub deadline_ns: Option<i64>,
    /// The longest response that was seen.
    pub observed_ns: Option<i64>,
    /// Jobs that this rests on; `None`: it was written by hand.
    pub jobs: Option<u64>,
}

/// A set of tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Model {
    /// In the order of the file.
    pub tasks: Vec<Task>,
    /// How long they were watched; `None`: written by hand.
    pub watched_ns: Option<i64>,
}

impl Task {
    /// A task of one job at a time with nothing but its execution; the rest is nothing.
    #[must_use]
    pub fn new(
        name: &str,
        policy: Policy,
        cpu: u32,
        arrivals: Arrivals,
        execution_ns: i64,
    ) -> Self {
        let (period_ns, jitter_ns) = match &arrivals {
            Arrivals::Periodic { period_ns, jitter_ns } => (Some(*period_ns), *jitter_ns),
            Arrivals::Curve(_) => (None, 0),
        };
        Self {
            name: name.to_owned(),
            policy,
            cpus: vec![cpu],
            arrivals,
            period_ns,
            jitter_ns,
            execution_ns: vec![execution_ns],
            own_execution_ns: None,
            suspension_ns: Vec::new(),
            suspensions: 0,
            blocking_ns: Vec::new(),
            blocking_once_ns: 0,
            latency_ns: Vec::new(),
            section_ns: 0,
            unwatched_ns: Vec::new(),
            non_preemptible_ns: 0,
            deadline_ns: None,
            observed_ns: None,
            jobs: None,
        }
    }

    /// The one CPU it runs on, if it is one.
    #[must_use]
    pub fn cpu(&self) -> Option<u32> {
        match self.cpus.as_slice() {
            [cpu] => Some(*cpu),
            _ => None,
        }
    }

    /// Its priority, where the policy gives it a fixed one.
    #[must_use]
    pub fn fixed_priority(&self) -> Option<u8> {
        match self.policy {
            Policy::Fifo(p) | Policy::Rr(p) => Some(p),
            _ => None,
        }
    }
}

impl From<&TaskRecord> for Task {
    fn from(r: &TaskRecord) -> Self {
        let periodic = r.arrival.model == ArrivalModel::Periodic;
        Self {
            name: r.name.clone(),
            policy: r.policy,
            cpus: r.cpus.clone(),
            // The curve holds for what was seen whether the grid was found or not.
            arrivals: Arrivals::Curve(r.distance_min_ns.clone()),
            period_ns: r.arrival.period_ns.filter(|_| periodic),
            jitter_ns: r.arrival.jitter_ns.filter(|_| periodic).unwrap_or(0),
            execution_ns: r.execution_max_ns.clone(),
            own_execution_ns: None,
            suspension_ns: r.suspension_max_ns.clone(),
            suspensions: r.suspensions,
            blocking_ns: r.blocked_max_ns.clone(),
            blocking_once_ns: 0,
            latency_ns: r.latency_max_ns.clone(),
            section_ns: r.section.ns,
            unwatched_ns: r.unwatched_max_ns.clone(),
            non_preemptible_ns: 0,
            deadline_ns: None,
            observed_ns: Some(r.response.ns),
            jobs: Some(r.jobs),
        }
    }
}

impl Model {
    /// The model of what a run's lines `task` hold. Threads of one name are told apart by their numbers:
    /// `name-4711`.
    #[must_use]
    pub fn of(records: &[TaskRecord]) -> Self {
        let from = records.iter().map(|r| r.from_ns).min();
        let to = records.iter().map(|r| r.to_ns).max();
        let watched_ns = from.zip(to).map(|(from, to)| to.saturating_sub(from).max(0));
        let named = |r: &TaskRecord| {
            let alone = records.iter().filter(|other| other.name == r.name).count() == 1;
            let number = r.tid.filter(|_| !alone).map(|tid| format!("{}-{tid}", r.name));
            Task { name: number.unwrap_or_else(|| r.name.clone()), ..Task::from(r) }
        };
        Self { tasks: records.iter().map(named).collect(), watched_ns }
    }

    /// The same with a bound on the scheduling latency: each wait of a job for its CPU, at its release and after each
    /// sleep, takes as long as the bound, or as was seen where that is more. Tasks without a fixed priority stay as they are.
    #[must_use]
    pub fn with_latency_bound(mut self, bound_ns: i64) -> Self {
        for task in self.tasks.iter_mut().filter(|t| t.fixed_priority().is_some()) {
            let waits = i64::from(task.suspensions).saturating_add(1);
            let each = bound_ns.max(0).saturating_mul(waits);
            let jobs = task.execution_ns.len().max(task.latency_ns.len());
            let mut sum = 0i64;
            let mut seen = task.latency_ns.iter();
            let mut latency = Vec::with_capacity(jobs);
            for _ in 0..jobs {
                sum = sum.saturating_add(each);
                latency.push(seen.next().map_or(sum, |seen| sum.max(*seen)));
            }
            task.latency_ns = latency;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wait_takes_the_bound_or_what_was_seen() {
        let sporadic = Arrivals::Periodic { period_ns: 1000, jitter_ns: 0 };
        let task = |policy| Task {
            suspensions: 1,
            execution_ns: vec![10, 20, 30],
            latency_ns: vec![100, 110],
            ..Task::new("a", policy, 0, sporadic.clone(), 10)
        };
        let tasks = vec![task(Policy::Fifo(10)), task(Policy::Other)];
        let model = Model { tasks, watched_ns: None }.with_latency_bound(40);
        let latencies: Vec<&[i64]> = model.tasks.iter().map(|t| t.latency_ns.as_slice()).collect();
        assert_eq!(latencies, [&[100, 160, 240][..], &[100, 110][..]]);
    }
}
