// SPDX-License-Identifier: MIT OR Apache-2.0
//! A policy in words as the kernel takes it.
//!
//! Context: SETUP. Units: ns. Source: sched(7), sched_setattr(2).

use tailbound_core::Policy;
use tailbound_sys::sched::{self, Attributes};

/// The kernel's parameters of a policy; one that is not known is SCHED_OTHER.
#[must_use]
pub fn attributes(policy: Policy) -> Attributes {
    let none = Attributes::default();
    match policy {
        Policy::Other | Policy::Unknown(_) => Attributes { policy: sched::SCHED_OTHER, ..none },
        Policy::Batch => Attributes { policy: sched::SCHED_BATCH, ..none },
        Policy::Idle => Attributes { policy: sched::SCHED_IDLE, ..none },
        Policy::Fifo(p) => Attributes { policy: sched::SCHED_FIFO, priority: u32::from(p), ..none },
        Policy::Rr(p) => Attributes { policy: sched::SCHED_RR, priority: u32::from(p), ..none },
        Policy::Deadline { runtime_ns, period_ns } => Attributes {
            policy: sched::SCHED_DEADLINE,
            runtime_ns,
            deadline_ns: period_ns,
            period_ns,
            ..none
        },
    }
}
