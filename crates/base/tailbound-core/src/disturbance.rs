// SPDX-License-Identifier: MIT OR Apache-2.0
//! What disturbances took of the measured CPUs between two looks of the supervisor.
//!
//! Units: ns, in steps of the kernel's accounting (10 ms on nearly every machine).
//! Not here: reading them (`tailbound-host`), whether the late activations come with them (`tailbound-stats`).

use serde::{Deserialize, Serialize};

/// What was taken between two looks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DisturbanceRecord {
    /// The later look.
    pub t_ns: i64,
    /// The time since the earlier one.
    pub span_ns: i64,
    /// The measured CPUs of which something was taken.
    pub cpus: Vec<CpuTaken>,
}

/// What was taken of one CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTaken {
    /// Which.
    pub cpu: u32,
    /// By the hypervisor.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub steal_ns: i64,
    /// By interrupts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub interrupt_ns: i64,
    /// By soft interrupts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub softirq_ns: i64,
}

impl CpuTaken {
    /// Nothing was.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self { cpu: self.cpu, ..Self::default() }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(n: &i64) -> bool {
    *n == 0
}
