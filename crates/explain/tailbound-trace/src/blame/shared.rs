// SPDX-License-Identifier: MIT OR Apache-2.0
//! An ordinary thread that is ready and has no CPU: others like it have their turn, or the CPU quota of its control group
//! is used up. Neither is code that cannot be preempted.
//!
//! Units: ns. That a group has used up its quota is in no event. What shows it: the wait ends where the
//! timer runs that gives groups new quota; and until then the CPU may even be idle, which it never is beside a thread that
//! may run.
//! Source: kernel/sched/fair.c (`throttle_cfs_rq`, `do_sched_cfs_period_timer`), Documentation/scheduler/sched-bwc.rst.

use tailbound_core::blame::{Cause, Phase, Sureness};

use super::charge::{Charge, SegmentContext};
use super::cpu::{CpuActivity, Segment};
use super::engine::{Engine, Mark};
use super::thread::ORDINARY;

/// The timers that give groups new quota.
const REFILLS: [&str; 2] = ["sched_cfs_period_timer", "sched_cfs_slack_timer"];
/// How soon after that the thread has its CPU, where only it was waited for.
const REFILL_NEAR_NS: u64 = 300_000;
/// A CPU that is idle for less is on its way to the next thread.
const IDLE_MIN_NS: i64 = 50_000;

impl Engine {
    /// Why an ordinary thread waits while `s` goes on, and another ordinary thread of this name, or nobody, has the CPU.
    pub(super) fn shares(
        &self,
        place: &SegmentContext,
        s: &Segment,
        who: String,
    ) -> Option<Charge> {
        let waits = place.prio >= ORDINARY
            && matches!(place.phase, Phase::Switch | Phase::Preempted)
            && place.ready.is_some_and(|ready| ready <= s.from);
        if !waits {
            return None;
        }
        let idle = matches!(s.what, CpuActivity::Idle(_));
        let since = if idle { s.from } else { place.to.saturating_sub(REFILL_NEAR_NS).max(s.from) };
        let refilled = self.marked(since, place.to.saturating_add(1), |_, m| match m {
            Mark::Timer(function) => {
                self.symbols.name(*function).is_some_and(|name| REFILLS.contains(&name))
            }
            _ => false,
        });
        if refilled && (!idle || s.ns() >= IDLE_MIN_NS) {
            let sureness = if idle { Sureness::Sure } else { Sureness::Likely };
            return Some(Charge { cause: Cause::Throttled, who: String::new(), sureness });
        }
        let ordinary = self.threads.get(&s.pid).is_some_and(|t| t.prio >= ORDINARY);
        if idle || !ordinary {
            return None;
        }
        // Asked to leave, it stayed: that may be the kernel's code.
        let sureness = if s.need_resched { Sureness::Likely } else { Sureness::Sure };
        Some(Charge { cause: Cause::FairShare, who, sureness })
    }
}
