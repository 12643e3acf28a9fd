// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a stretch of a thread's own time went to: while it had the CPU, and while it was ready and
//! something else had it.
//!
//! Units: ns; `from_ns` of a part counts from the begin of the stretch. Parts adjoin and
//! their sum is the stretch.
//! Not here: the way to its CPU after a wake-up (`explain`), what it waits for (`crate::cycle`).

use tailbound_core::blame::{BlamePart, Cause, Phase, Sureness};

use super::charge::{Charge, SegmentContext};
use super::cpu::{CpuActivity, Segment};
use super::engine::Engine;
use super::explain::{join, part};
use super::ground::Ground;
use super::thread::ORDINARY;

/// A stretch of a thread's time in one state, on one CPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    pub(crate) phase: Phase,
    pub(crate) cpu: u32,
    pub(crate) pid: i32,
    pub(crate) from: u64,
    pub(crate) to: u64,
}

impl Engine {
    /// What the stretch went to.
    pub(crate) fn stretch(&self, s: &Stretch, ground: &Ground) -> Vec<BlamePart> {
        let prio = self.prio(s.pid);
        let mut parts = Vec::new();
        for segment in self.on(s.cpu, s.from, s.to) {
            let charge = match s.phase {
                Phase::Running => self.running(s, &segment),
                _ => self.preempted(s, &segment, prio, ground),
            };
            let from_ns = i64::try_from(segment.from.saturating_sub(s.from)).unwrap_or(i64::MAX);
            let part = part(s.phase, from_ns, segment.ns(), charge);
            join(&mut parts, part);
        }
        parts
    }

    /// The kernel's priority of a thread.
    pub(crate) fn prio(&self, pid: i32) -> i32 {
        self.threads.get(&pid).map_or(ORDINARY + 20, |t| t.prio)
    }

    /// Who got a contended lock of the kernel last.
    pub(crate) fn last_owner(&self, lock: u64) -> Option<i32> {
        self.owners.get(&lock).copied()
    }

    /// Records of a CPU between two times.
    pub(crate) fn records_of(&self, cpu: u32, from: u64, to: u64) -> usize {
        self.cpus.get(&cpu).map_or(0, |c| c.records_between(from, to))
    }

    fn running(&self, s: &Stretch, segment: &Segment) -> Charge {
        let who = self.who(s.cpu, segment);
        let sure = |cause, who| Charge { cause, who, sureness: Sureness::Sure };
        match segment.what {
            CpuActivity::Irq(_) | CpuActivity::Vector(_) => sure(Cause::Interrupt, who),
            CpuActivity::Timer(_) => sure(Cause::TimerInterrupt, who),
            CpuActivity::Ipi(..) => sure(Cause::Ipi, who),
            CpuActivity::Softirq(_) => sure(Cause::Softirq, who),
            CpuActivity::Nmi(_) => sure(Cause::Nmi, who),
            CpuActivity::Spin(_) if segment.pid == s.pid => {
                sure(Cause::LockSpin, self.with_owner(segment, String::new()))
            }
            CpuActivity::Thread | CpuActivity::Work(_) if segment.pid == s.pid => {
                sure(Cause::Own, String::new())
            }
            _ => sure(Cause::Unexplained, "events are missing".to_owned()),
        }
    }

    fn preempted(&self, s: &Stretch, segment: &Segment, prio: i32, ground: &Ground) -> Charge {
        let length = i64::try_from(s.to.saturating_sub(s.from)).unwrap_or(i64::MAX);
        let place = SegmentContext {
            phase: s.phase,
            cpu: s.cpu,
            pid: s.pid,
            prio,
            latency_ns: length,
            to: s.to,
            ready: Some(s.from),
            ours: false,
            woken: true,
            crowded: false,
        };
        self.charge(&place, segment, ground)
    }
}
