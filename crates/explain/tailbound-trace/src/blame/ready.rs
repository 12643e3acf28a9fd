// SPDX-License-Identifier: MIT OR Apache-2.0
//! Real-time threads that are ready and have no CPU, by CPU: an ordinary thread that gets a CPU beside one of
//! them got it from a limit of the scheduler (fair server, RT throttling), not from the order of priorities.
//!
//! Units: ns. Which threads are ready follows from the events; what was lost is found again by the
//! next switch, and what is on the list for longer than any limit lasts does not count.
//! Source: sched(7), kernel/sched/rt.c (`sched_rt_runtime_exceeded`), kernel/sched/deadline.c (`dl_server`).

use super::engine::Engine;
use super::thread::{ORDINARY, State};

/// A thread that was woken this moment is perhaps still on its way to its CPU's list.
const SETTLED_NS: u64 = 20_000;
/// The period of RT throttling, by which a throttled thread has run again, twice.
const STALE_NS: u64 = 2_000_000_000;

impl Engine {
    /// `pid` is ready on `cpu` from `t_ns` on, and does not have it.
    pub(super) fn is_ready_on(&mut self, cpu: u32, pid: i32, t_ns: u64) {
        self.is_ready_nowhere(pid);
        if let Some(c) = self.cpus.get_mut(&cpu) {
            c.ready.push((pid, t_ns));
        }
    }

    /// It runs, or sleeps.
    pub(super) fn is_ready_nowhere(&mut self, pid: i32) {
        for c in self.cpus.values_mut().filter(|c| !c.ready.is_empty()) {
            c.ready.retain(|(p, _)| *p != pid);
        }
    }

    /// It was moved to the list of another CPU.
    pub(super) fn is_ready_elsewhere(&mut self, cpu: u32, pid: i32, t_ns: u64) {
        let on_a_list = self.cpus.values().any(|c| c.ready.iter().any(|(p, _)| *p == pid));
        if on_a_list {
            self.is_ready_on(cpu, pid, t_ns);
        }
    }

    /// Another thread gets `cpu`, whose priority is not real-time: is a real-time thread left waiting there?
    pub(super) fn leaves_waiting(&self, cpu: u32, next: i32, t_ns: u64) -> bool {
        let Some(c) = self.cpus.get(&cpu) else { return false };
        c.ready.iter().any(|(pid, since)| {
            let thread = self.threads.get(pid);
            let waits = thread.is_some_and(|t| {
                t.prio < ORDINARY && t.prio >= 0 && matches!(t.state, State::Ready(_))
            });
            let for_ns = t_ns.saturating_sub(*since);
            waits && *pid != next && (SETTLED_NS..STALE_NS).contains(&for_ns)
        })
    }
}
