// SPDX-License-Identifier: MIT OR Apache-2.0
//! `higher-priority`: other threads that may run on a measured CPU and come before, or
//! beside, the measured ones.
//!
//! Threads are scanned at the start, now and then, and at the end: one that
//! lives only between two scans is not seen. Units: ns. Source: sched(7).

use std::collections::BTreeMap;
use tailbound_core::order;

use tailbound_core::record::Fact;
use tailbound_core::units::format_ns_i64;
use tailbound_core::{Finding, Impact, Policy};

use super::{Disturbance, Look};
use crate::root::Missing;
use crate::tasks::{Class, Task};

/// Most names in one line; the rest is a number.
const NAMES_MAX: usize = 6;

/// A thread and its CPU time since it was first seen.
struct OtherThread {
    task: Task,
    used_ns: u64,
}

/// Remembers all threads that the scheduler prefers to the measured ones.
pub(crate) struct HigherPriority {
    /// By thread number and start.
    threads: BTreeMap<(u32, u64), OtherThread>,
    missing: Option<Missing>,
}

/// Does `task` run before, or in turn with, threads of `policy`?
pub(crate) fn comes_before(task: &Task, policy: Policy) -> bool {
    match (task.class, policy) {
        _ if task.is_stopper() => true,
        (Class::Deadline, _) => true,
        (_, Policy::Deadline { .. }) => false,
        (_, Policy::Fifo(p) | Policy::Rr(p)) => task.priority >= p,
        (_, Policy::Other | Policy::Batch | Policy::Idle | Policy::Unknown(_)) => true,
    }
}

/// When a thread was there for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FirstSight {
    BeforeRun,
    DuringRun,
}

impl HigherPriority {
    pub(crate) fn begin(first: &Look) -> Self {
        let mut threads = Self { threads: BTreeMap::new(), missing: None };
        threads.see(first, FirstSight::BeforeRun);
        threads
    }

    fn see(&mut self, look: &Look, new: FirstSight) {
        let tasks = match &look.tasks {
            None => return,
            Some(Err(why)) => return self.missing = Some(why.clone()),
            Some(Ok(tasks)) => tasks,
        };
        let before = tasks
            .values()
            .filter(|t| !look.plan.threads.contains(&t.tid) && comes_before(t, look.plan.policy));
        for task in before {
            let entry = self.threads.entry((task.tid, task.start)).or_insert_with(|| {
                let mut task = task.clone();
                // Created during the run: all its time counts.
                if new == FirstSight::DuringRun {
                    task.cpu_ns = task.cpu_ns.map(|_| 0);
                }
                OtherThread { task, used_ns: 0 }
            });
            let used = task.cpu_ns.zip(entry.task.cpu_ns).map_or(0, |(a, b)| a.saturating_sub(b));
            entry.used_ns = used;
        }
    }

    fn stoppers_ns(&self) -> u64 {
        self.threads
            .values()
            .filter(|r| r.task.is_stopper())
            .map(|r| r.used_ns)
            .fold(0, u64::saturating_add)
    }
}

impl Disturbance for HigherPriority {
    fn look(&mut self, look: &Look) -> Vec<Finding> {
        self.see(look, FirstSight::DuringRun);
        let mut list: Vec<&OtherThread> =
            self.threads.values().filter(|r| !r.task.is_stopper()).collect();
        if list.is_empty() {
            return Vec::new();
        }
        order::by(&mut list, |a, b| b.used_ns.cmp(&a.used_ns).then(a.task.tid.cmp(&b.task.tid)));
        let time = |ns: u64| format_ns_i64(i64::try_from(ns).unwrap_or(i64::MAX));
        let mut words: Vec<String> = list
            .iter()
            .take(NAMES_MAX)
            .map(|r| {
                let used = match r.task.cpu_ns {
                    Some(_) => format!("{} of CPU time", time(r.used_ns)),
                    None => "CPU time unknown".to_owned(),
                };
                format!("{} thread {}: {used}", r.task.label(), r.task.tid)
            })
            .collect();
        if list.len() > NAMES_MAX {
            words.push(format!("{} more", list.len().saturating_sub(NAMES_MAX)));
        }
        vec![
            Finding::listed("higher-priority", Impact::Notice, format!(
                "{} of the same or a higher priority than {} may run on the measured CPUs ({})",
                if list.len() == 1 { "1 other thread".to_owned() } else { format!("{} other threads", list.len()) },
                look.plan.policy,
                words.join("; ")
            ))
            .meaning(format!(
                "While one of them runs, a measured thread waits, and the figures include that. The kernel's stopper threads (migration/N) run before all others and used {}.",
                time(self.stoppers_ns())
            )),
        ]
    }

    fn watched(&self) -> Vec<(&'static str, Fact)> {
        let stoppers = self.threads.values().filter(|r| r.task.is_stopper()).count();
        let fact = match &self.missing {
            Some(why) => why.clone().into(),
            None => Fact::of(format!(
                "watched: {} threads of the same or a higher priority, {stoppers} of them the kernel's stopper threads",
                self.threads.len()
            )),
        };
        vec![("higher-priority", fact)]
    }
}
