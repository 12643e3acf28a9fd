// SPDX-License-Identifier: MIT OR Apache-2.0
//! The real-time threads of the machine that may run on given CPUs, and how much CPU time
//! they have used.
//!
//! Reads a few files per thread of the machine, so it is done seldom.
//! Units: ns. Source: proc_pid_stat(5), sched(7), Documentation/scheduler/sched-stats.rst.

use std::collections::BTreeMap;

use tailbound_core::CpuSet;
use tailbound_sys::hostinfo;

use crate::root::{Found, Missing, Root};
use crate::schedstat::Schedstat;
use crate::stat::Stat;
use crate::threads;

/// A scheduling class above SCHED_OTHER.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// SCHED_FIFO.
    Fifo,
    /// SCHED_RR.
    Rr,
    /// SCHED_DEADLINE.
    Deadline,
}

/// One real-time thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Task {
    /// Its number.
    pub(crate) tid: u32,
    /// Its folder in /proc.
    pub(crate) dir: String,
    /// Tells a reused number from the same thread.
    pub(crate) start: u64,
    /// Its name.
    pub(crate) name: String,
    /// A thread of the kernel.
    pub(crate) kernel: bool,
    /// Its class.
    pub(crate) class: Class,
    /// 1 to 99; 0 for SCHED_DEADLINE.
    pub(crate) priority: u8,
    /// The CPU it ran on last.
    pub(crate) last_cpu: u32,
    /// Where it may run; all CPUs where that could not be read.
    pub(crate) allowed: Option<CpuSet>,
    /// CPU time so far.
    pub(crate) cpu_ns: Option<u64>,
}

impl Task {
    /// The kernel's per-CPU stopper: above every policy, and no one can be without it.
    pub(crate) fn is_stopper(&self) -> bool {
        self.kernel && self.name.starts_with("migration/")
    }

    /// `name (fifo:50)`
    pub(crate) fn label(&self) -> String {
        let policy = match self.class {
            Class::Fifo => format!("fifo:{}", self.priority),
            Class::Rr => format!("rr:{}", self.priority),
            Class::Deadline => "deadline".to_owned(),
        };
        format!("{} ({policy})", self.name)
    }
}

/// Every real-time thread that may run on one of `cpus`, by number.
pub(crate) fn scan(root: &Root, cpus: &CpuSet) -> Found<BTreeMap<u32, Task>> {
    let mut tasks = BTreeMap::new();
    let mut seen = 0u32;
    for pid in &threads::processes(root)? {
        // A process may end between any two reads: its threads are then no longer of interest.
        for dir in threads::folders(root, pid) {
            let Ok(stat) = root.text(&format!("{dir}/stat")) else { continue };
            seen = seen.saturating_add(1);
            let Some(mut task) = realtime(&stat) else { continue };
            task.allowed = allowed(root, &dir).ok();
            if task.allowed.as_ref().is_some_and(|a| a.and(cpus).is_empty()) {
                continue;
            }
            if let Some(ns) = exact_cpu_ns(root, &dir) {
                task.cpu_ns = Some(ns);
            }
            task.dir = dir;
            tasks.insert(task.tid, task);
        }
    }
    if seen == 0 {
        return Err(Missing::Unknown("/proc shows no thread at all".to_owned()));
    }
    Ok(tasks)
}

/// Where the thread of `/proc/PID/task/TID` may run.
pub(crate) fn allowed(root: &Root, dir: &str) -> Found<CpuSet> {
    threads::Status::read(root, dir)?.allowed()
}

/// The CPU that the thread of `/proc/PID/task/TID` ran on last.
pub(crate) fn last_cpu(root: &Root, dir: &str) -> Option<u32> {
    Stat::parse(&root.text(&format!("{dir}/stat")).ok()?)?.last_cpu()
}

/// CPU time to the ns, where the kernel keeps it.
fn exact_cpu_ns(root: &Root, dir: &str) -> Option<u64> {
    Schedstat::read(root, dir).ok().map(|s| s.run_ns)
}

/// The thread of a line of /proc/PID/stat if it is a real-time one.
fn realtime(line: &str) -> Option<Task> {
    let stat = Stat::parse(line)?;
    let (number, priority) = stat.policy()?;
    let class = match number {
        1 => Class::Fifo,
        2 => Class::Rr,
        6 => Class::Deadline,
        _ => return None,
    };
    let ticks = stat.number(14)?.saturating_add(stat.number(15)?);
    Some(Task {
        tid: stat.tid,
        dir: String::new(),
        start: stat.start_ticks()?,
        name: stat.name.to_owned(),
        kernel: stat.is_kernel()?,
        class,
        priority,
        last_cpu: stat.last_cpu()?,
        allowed: None,
        cpu_ns: 1_000_000_000u64
            .checked_div(hostinfo::ticks_per_second())
            .and_then(|tick_ns| ticks.checked_mul(tick_ns)),
    })
}

/// CPU time of real-time threads on each CPU between two scans: each thread's time counts for
/// the CPU it ran on last, so a thread that moves about blurs it.
pub(crate) fn used_by_cpu(
    before: &BTreeMap<u32, Task>,
    after: &BTreeMap<u32, Task>,
) -> BTreeMap<u32, u64> {
    let mut used = BTreeMap::new();
    for task in after.values() {
        let earlier = before.get(&task.tid).filter(|t| t.start == task.start);
        let ns = task
            .cpu_ns
            .zip(earlier.map_or(Some(0), |t| t.cpu_ns))
            .map_or(0, |(a, b)| a.saturating_sub(b));
        let sum = used.entry(task.last_cpu).or_insert(0u64);
        *sum = sum.saturating_add(ns);
    }
    used
}

#[cfg(test)]
mod tests {
    use super::*;

    const STOPPER: &str = "14 (migration/0) S 2 0 0 0 -1 69238848 0 0 0 0 0 3 0 0 -100 0 1 0 12 0 0 18446744073709551615 0 0 0 0 0 0 0 2147483647 0 0 0 0 17 0 99 1 0 0 0 0 0 0 0 0 0 0 0";

    #[test]
    fn reads_a_line_with_an_awkward_name() {
        let task = realtime(STOPPER);
        assert_eq!(task.as_ref().map(Task::label).as_deref(), Some("migration/0 (fifo:99)"));
        assert_eq!(task.as_ref().map(|t| (t.tid, t.start, t.last_cpu)), Some((14, 12, 0)));
        assert!(task.is_some_and(|t| t.is_stopper()));
        let odd = STOPPER.replace("migration/0", "a) R 1 (b");
        assert_eq!(realtime(&odd).map(|t| t.name).as_deref(), Some("a) R 1 (b"));
        let other = STOPPER.replace(" 99 1 0 0", " 0 0 0 0");
        assert_eq!(realtime(&other), None);
        for cut in 0..STOPPER.len() {
            let _ = realtime(STOPPER.get(..cut).unwrap_or_default());
        }
    }

    #[test]
    fn a_reused_number_is_another_thread() {
        let mut a = realtime(STOPPER);
        let (mut before, mut after) = (BTreeMap::new(), BTreeMap::new());
        if let Some(t) = &mut a {
            t.cpu_ns = Some(500);
            before.insert(14, t.clone());
            t.cpu_ns = Some(700);
            after.insert(14, t.clone());
        }
        assert_eq!(used_by_cpu(&before, &after), BTreeMap::from([(0, 200)]));
        if let Some(t) = after.get_mut(&14) {
            t.start = 99;
        }
        assert_eq!(used_by_cpu(&before, &after), BTreeMap::from([(0, 700)]));
    }
}
