// SPDX-License-Identifier: MIT OR Apache-2.0
//! Watched threads as tasks: their jobs go by one by one while they are watched, and become lines
//! `task` of the run file.
//!
//! Units: ns. Memory is that of the lists of a thread, however long it is watched.
//! Not here: finding jobs (`tailbound_trace::cycle`), the lists (`tailbound_stats::tasks`).

use std::collections::BTreeMap;

use tailbound_core::policy::Policy;
use tailbound_core::tasks::{Job, TaskRecord};
use tailbound_record::watched::WatchedThread;
use tailbound_stats::tasks::JobHistory;

/// The threads so far.
#[derive(Clone, Debug, Default)]
pub struct TaskModels {
    threads: BTreeMap<i32, JobHistory>,
    /// Where the run's clock reads 0.
    begin_ns: i64,
}

impl TaskModels {
    /// None so far; the run's times count from `begin_ns` of the trace's clock.
    #[must_use]
    pub fn new(begin_ns: i64) -> Self {
        Self { threads: BTreeMap::new(), begin_ns }
    }

    /// Jobs of threads, each in the order of time; `None`: one that was not seen whole.
    pub fn jobs(&mut self, jobs: impl IntoIterator<Item = (i32, Option<Job>)>) {
        for (tid, job) in jobs {
            let thread = self
                .threads
                .entry(tid)
                .or_insert_with(|| JobHistory::new(0, "", u32::try_from(tid).ok(), Policy::Other));
            let Some(job) = job else {
                thread.gap(1);
                continue;
            };
            let since = |t: i64| t.saturating_sub(self.begin_ns);
            thread.job(&Job {
                release_ns: since(job.release_ns),
                start_ns: since(job.start_ns),
                end_ns: since(job.end_ns),
                ..job
            });
        }
    }

    /// A line for each thread whose jobs were seen, and for each without that delayed a watched one: how much
    /// it delays others is not known then, and must not be passed over.
    #[must_use]
    pub fn records(&self, threads: &[WatchedThread]) -> Vec<TaskRecord> {
        let line = |t: &WatchedThread| {
            let c = &t.cycles;
            let record = match self.threads.get(&c.tid).filter(|w| w.jobs() > 0) {
                Some(watched) => watched.record(),
                None if t.delayed_on.is_empty() => return None,
                None => {
                    let none = JobHistory::new(0, "", u32::try_from(c.tid).ok(), c.policy);
                    TaskRecord { cpus: t.delayed_on.clone(), ..none.record() }
                }
            };
            Some(TaskRecord { thread: c.thread, name: c.name.clone(), policy: c.policy, ..record })
        };
        threads.iter().filter_map(line).collect()
    }
}
