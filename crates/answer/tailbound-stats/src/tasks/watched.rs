// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was seen of one thread's jobs, taken one by one: distances of releases, execution of
//! successive jobs, the largest of everything else with when it was.
//!
//! Units: ns. Memory: the last [`WINDOW`] jobs and eight lists of that length, however
//! long a thread is watched. Where events were lost ([`JobHistory::gap`]) no list counts across.
//! Not here: the grid (`period`), what follows (`bound`).
//! Source: the shortest windows of n releases are the "delta-min" curves of real-time calculus;
//! Quinton, Hanke and Ernst 2012 on obtaining them from traces.

use std::collections::VecDeque;

use tailbound_core::policy::Policy;
use tailbound_core::tasks::{Job, Observed, TaskRecord};

use super::period::Grid;

/// The most successive jobs of which distances and execution times are kept.
pub const WINDOW: usize = 64;

/// Execution, and time asleep, blocked, late and behind threads that are not watched, of all jobs so far.
type Sums = [i64; 5];

/// One thread's jobs so far.
#[derive(Clone, Debug)]
pub struct JobHistory {
    record: TaskRecord,
    /// Release and [`Sums`] up to before it, of the last jobs.
    recent: VecDeque<(i64, Sums)>,
    sums: Sums,
    grid: Grid,
}

impl JobHistory {
    /// Nothing seen yet of thread number `thread` of those watched.
    #[must_use]
    pub fn new(thread: u32, name: &str, tid: Option<u32>, policy: Policy) -> Self {
        let none = Observed::default();
        Self {
            record: TaskRecord {
                thread,
                name: name.to_owned(),
                tid,
                policy,
                cpus: Vec::new(),
                jobs: 0,
                lost: 0,
                from_ns: 0,
                to_ns: 0,
                arrival: tailbound_core::tasks::Arrival::default(),
                distance_min_ns: Vec::new(),
                distance_max_ns: Vec::new(),
                execution_max_ns: Vec::new(),
                execution_min_ns: Vec::new(),
                suspension_max_ns: Vec::new(),
                blocked_max_ns: Vec::new(),
                latency_max_ns: Vec::new(),
                unwatched_max_ns: Vec::new(),
                response: none,
                suspension: none,
                suspensions: 0,
                blocked: none,
                latency: none,
                section: none,
                unwatched: none,
            },
            recent: VecDeque::new(),
            sums: [0; 5],
            grid: Grid::default(),
        }
    }

    /// The thread's policy, if it was not known before.
    pub fn set_policy(&mut self, policy: Policy) {
        self.record.policy = policy;
    }

    /// One more job, released after the one before. One that was not, or ends before its release, is
    /// counted as lost.
    pub fn job(&mut self, job: &Job) {
        let before = self.recent.back().map(|(release, _)| *release);
        if before.is_some_and(|t| job.release_ns < t) || job.response_ns() < 0 {
            self.gap(1);
            return;
        }
        let r = &mut self.record;
        if r.jobs == 0 {
            r.from_ns = job.release_ns;
        }
        r.jobs += 1;
        r.to_ns = r.to_ns.max(job.end_ns);
        r.suspensions = r.suspensions.max(job.suspensions);
        if !r.cpus.contains(&job.cpu) && r.cpus.len() < tailbound_core::limits::TASK_LIST_MAX {
            r.cpus.push(job.cpu);
            r.cpus.sort_unstable();
        }
        for (seen, ns) in [
            (&mut r.response, job.response_ns()),
            (&mut r.suspension, job.suspension_ns),
            (&mut r.blocked, job.blocked_ns),
            (&mut r.latency, job.latency_ns),
            (&mut r.section, job.section_ns),
            (&mut r.unwatched, job.unwatched_ns),
        ] {
            if r.jobs == 1 || ns > seen.ns {
                *seen = Observed { ns, t_ns: job.release_ns };
            }
        }
        self.grid.release(job.release_ns);
        self.successive(job);
    }

    fn successive(&mut self, job: &Job) {
        let r = &mut self.record;
        for (i, (release, _)) in self.recent.iter().rev().take(WINDOW - 1).enumerate() {
            let distance = job.release_ns.saturating_sub(*release);
            lower(&mut r.distance_min_ns, i, distance);
            raise(&mut r.distance_max_ns, i, distance);
        }
        self.recent.push_back((job.release_ns, self.sums));
        let of =
            [job.execution_ns, job.suspension_ns, job.blocked_ns, job.latency_ns, job.unwatched_ns];
        for (sum, ns) in self.sums.iter_mut().zip(of) {
            *sum = sum.saturating_add(ns.max(0));
        }
        if self.recent.len() > WINDOW {
            self.recent.pop_front();
        }
        for (i, (_, before)) in self.recent.iter().rev().enumerate() {
            let [execution, asleep, blocked, late, behind] = since(&self.sums, before);
            raise(&mut r.execution_max_ns, i, execution);
            lower(&mut r.execution_min_ns, i, execution);
            raise(&mut r.suspension_max_ns, i, asleep);
            raise(&mut r.blocked_max_ns, i, blocked);
            raise(&mut r.latency_max_ns, i, late);
            raise(&mut r.unwatched_max_ns, i, behind);
        }
    }

    /// `jobs` were not seen, or not whole, as events were lost: nothing is counted across.
    pub fn gap(&mut self, jobs: u64) {
        self.record.lost = self.record.lost.saturating_add(jobs);
        self.recent.clear();
        self.grid.gap();
    }

    /// Jobs so far.
    #[must_use]
    pub fn jobs(&self) -> u64 {
        self.record.jobs
    }

    /// What was seen so far.
    #[must_use]
    pub fn record(&self) -> TaskRecord {
        let mut record = TaskRecord { arrival: self.grid.arrival(), ..self.record.clone() };
        for list in [
            &mut record.suspension_max_ns,
            &mut record.blocked_max_ns,
            &mut record.latency_max_ns,
            &mut record.unwatched_max_ns,
        ] {
            if list.iter().all(|ns| *ns == 0) {
                list.clear();
            }
        }
        record
    }
}

fn since(now: &Sums, before: &Sums) -> Sums {
    let mut out = *now;
    out.iter_mut().zip(before).for_each(|(sum, old)| *sum = sum.saturating_sub(*old));
    out
}

fn lower(list: &mut Vec<i64>, i: usize, value: i64) {
    match list.get_mut(i) {
        Some(old) => *old = value.min(*old),
        None => list.push(value),
    }
}

fn raise(list: &mut Vec<i64>, i: usize, value: i64) {
    match list.get_mut(i) {
        Some(old) => *old = value.max(*old),
        None => list.push(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(release_ns: i64, execution_ns: i64) -> Job {
        Job { release_ns, end_ns: release_ns + execution_ns, execution_ns, ..Job::default() }
    }

    fn watched(jobs: &[(i64, i64)]) -> JobHistory {
        let mut w = JobHistory::new(0, "w", None, Policy::Fifo(1));
        jobs.iter().for_each(|(t, ns)| w.job(&job(*t, *ns)));
        w
    }

    #[test]
    fn lists_are_of_successive_jobs() {
        let r = watched(&[(0, 5), (10, 1), (30, 7), (35, 6)]).record();
        assert_eq!(r.distance_min_ns, [5, 25, 35]);
        assert_eq!(r.distance_max_ns, [20, 30, 35]);
        assert_eq!(r.execution_max_ns, [7, 13, 14, 19]);
        assert_eq!(r.execution_min_ns, [1, 6, 13, 19]);
        assert_eq!((r.response, r.jobs), (Observed { ns: 7, t_ns: 30 }, 4));
        assert_eq!((r.from_ns, r.to_ns), (0, 41));
    }

    #[test]
    fn nothing_is_counted_across_lost_events_and_backwards() {
        let mut w = watched(&[(0, 5), (10, 1)]);
        w.gap(3);
        w.job(&job(500, 2));
        w.job(&job(400, 2));
        w.job(&job(600, 2));
        let r = w.record();
        assert_eq!((r.distance_max_ns.as_slice(), r.jobs, r.lost), ([10].as_slice(), 4, 4));
        assert_eq!(r.execution_max_ns, [5, 6]);
    }

    #[test]
    fn memory_is_bounded_and_the_lists_are_those_of_every_window() {
        let jobs: Vec<(i64, i64)> =
            (0..3000).map(|k: i64| (k * 1000 + k * 7919 % 400, 100 + k * 104_729 % 300)).collect();
        let w = watched(&jobs);
        let r = w.record();
        assert_eq!((w.recent.len(), r.execution_max_ns.len()), (WINDOW, WINDOW));
        assert_eq!(r.distance_min_ns.len(), WINDOW - 1);
        for n in [1, 2, 17, WINDOW - 1] {
            let all = jobs.windows(n + 1).map(|w| w.last().unwrap().0 - w.first().unwrap().0);
            assert_eq!(r.distance_min_ns.get(n - 1).copied(), all.min());
            let all = jobs.windows(n).map(|w| w.iter().map(|j| j.1).sum::<i64>());
            assert_eq!(r.execution_max_ns.get(n - 1).copied(), all.max());
        }
    }
}
