// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a run measures, as far as the eye on the machine must know.

use tailbound_core::plan::Clock;
use tailbound_core::{CpuSet, Policy};

/// What is being measured.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchPlan {
    /// Measured CPUs; empty when threads are not pinned: then all online ones count.
    pub cpus: CpuSet,
    /// Policy and priority of the measured threads.
    pub policy: Policy,
    /// The clock of the schedule.
    pub clock: Clock,
    /// The kernel's numbers (gettid(2)) of the measured threads; they belong to this process.
    pub threads: Vec<u32>,
}
