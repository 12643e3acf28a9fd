// SPDX-License-Identifier: MIT OR Apache-2.0
//! The supervisor's own priority while it watches over a measurement.
//!
//! Context: SETUP.
//! Among ordinary tasks the supervisor has only its fair share, and some loads leave less: beside
//! interrupts, changes of CPU and packets it was seen to wait for two of four seconds. So it takes
//! the lowest real-time priority, above every ordinary task and below every measured thread. It is
//! not taken where a measured thread would be delayed by it. What is started meanwhile does not
//! inherit it.
//! Source: sched(7), SCHED_FLAG_RESET_ON_FORK.

use tailbound_core::policy::Policy;
use tailbound_sys::sched::{self, Attributes, SCHED_FIFO};

const LOWEST: u8 = 1;

/// Above ordinary tasks until it is dropped, where this user may.
#[derive(Debug)]
pub(crate) struct Urgent {
    before: Option<Attributes>,
}

impl Urgent {
    /// For the calling thread, beside measured threads of `policy`.
    pub(crate) fn beside(policy: Policy) -> Self {
        let before = sched::get(0).ok().filter(|_| may_preempt_ordinary(policy));
        let own =
            Attributes { policy: SCHED_FIFO, priority: LOWEST.into(), ..Attributes::default() };
        Self { before: before.filter(|_| sched::set_without_children(0, &own).is_ok()) }
    }
}

impl Drop for Urgent {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // From real time to an ordinary policy: every user may.
            drop(sched::set_without_children(0, before));
        }
    }
}

/// Is every measured thread more urgent than the lowest real-time priority?
fn may_preempt_ordinary(policy: Policy) -> bool {
    match policy {
        Policy::Fifo(p) | Policy::Rr(p) => p > LOWEST,
        Policy::Deadline { .. } => true,
        Policy::Other | Policy::Batch | Policy::Idle | Policy::Unknown(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_never_as_urgent_as_what_is_measured() {
        assert!(may_preempt_ordinary(Policy::Fifo(95)) && may_preempt_ordinary(Policy::Rr(2)));
        for policy in [Policy::Other, Policy::Batch, Policy::Idle, Policy::Fifo(1), Policy::Rr(1)] {
            assert!(!may_preempt_ordinary(policy), "{policy}");
        }
    }

    #[test]
    fn the_policy_of_before_comes_back() {
        // On a thread of its own: others of this process keep theirs.
        let thread = std::thread::spawn(|| {
            let before = sched::get(0).expect("its own");
            let urgent = Urgent::beside(Policy::Fifo(95));
            if urgent.before.is_some() {
                assert_eq!(sched::get(0).map(|a| (a.policy, a.priority)), Ok((SCHED_FIFO, 1)));
                let child = std::thread::spawn(|| sched::get(0).map(|a| a.policy));
                assert_eq!(child.join().expect("ends"), Ok(before.policy), "not inherited");
            }
            drop(urgent);
            assert_eq!(sched::get(0), Ok(before));
        });
        thread.join().expect("ends");
    }
}
