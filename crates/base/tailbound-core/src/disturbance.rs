// SPDX-License-Identifier: MIT OR Apache-2.0
//! What disturbances took of the measured CPUs, and what else the supervisor read, between two looks.
//!
//! Units: ns; of /proc/stat in steps of the kernel's accounting (10 ms on nearly every machine). What is 0 is left
//! out: nothing was taken, or the machine has no such reading (facts `watch.*` say which). A reading that was there
//! before and failed at this look is named in `unread`.
//! Not here: reading them (`tailbound-host`), whether the late activations come with them (`tailbound-stats`).

use serde::{Deserialize, Serialize};

use crate::words::open_words;

open_words! {
    /// What can come with late activations.
    DisturbanceKind {
        /// Taken by the hypervisor.
        Steal = "steal",
        /// Taken by the firmware: system management interrupts.
        Firmware = "firmware",
        /// Taken by interrupts.
        Interrupt = "interrupt",
        /// Taken by soft interrupts.
        Softirq = "softirq",
        /// Used by real-time threads that the scheduler prefers.
        RanAbove = "ran-above",
        /// A CPU quota held the control group back.
        Quota = "quota",
        /// The CPU was slow.
        Frequency = "frequency",
        /// Tasks waited for interrupts to end.
        IrqPressure = "irq-pressure",
        /// Tasks waited for memory.
        MemoryPressure = "memory-pressure",
        /// Tasks waited for a disk.
        IoPressure = "io-pressure",
        /// Tasks waited for a CPU.
        CpuPressure = "cpu-pressure",
        /// The measured thread was ready and waited.
        Waited = "waited",
    }
}

impl DisturbanceKind {
    /// Those that are looked at, what is nearest to a cause first.
    pub const ALL: [Self; 12] = [
        Self::Steal,
        Self::Firmware,
        Self::Interrupt,
        Self::Softirq,
        Self::RanAbove,
        Self::Quota,
        Self::Frequency,
        Self::IrqPressure,
        Self::MemoryPressure,
        Self::IoPressure,
        Self::CpuPressure,
        Self::Waited,
    ];

    /// Is it the lateness itself, seen from the scheduler? Then any cause that is shown says more.
    #[must_use]
    pub fn is_symptom(self) -> bool {
        matches!(self, Self::CpuPressure | Self::Waited)
    }
}

/// What was taken between two looks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DisturbanceRecord {
    /// The later look.
    pub t_ns: i64,
    /// The time since the earlier one.
    pub span_ns: i64,
    /// The measured CPUs of which something was taken.
    pub cpus: Vec<CpuTaken>,
    /// Of the machine as a whole, and of our control group.
    #[serde(default, skip_serializing_if = "MachineTaken::is_nothing")]
    pub machine: MachineTaken,
    /// Real-time threads that ran on measured CPUs and come before the measured ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub above: Vec<RanAbove>,
    /// What could not be read this time, but before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<DisturbanceKind>,
}

impl DisturbanceRecord {
    /// Nothing was taken, and nothing failed.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.cpus.is_empty()
            && self.machine.is_nothing()
            && self.above.is_empty()
            && self.unread.is_empty()
    }
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
    /// The measured threads pinned to it were ready, and others ran.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub waited_ns: i64,
    /// Its frequency at the look, where that is another than at the look before.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub frequency_khz: i64,
}

impl CpuTaken {
    /// Nothing was.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self { cpu: self.cpu, ..Self::default() }
    }
}

/// What was taken of all CPUs together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineTaken {
    /// For so long a CPU quota held back our control group, or one around it; all its CPUs together.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub quota_ns: i64,
    /// System management interrupts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub smis: i64,
    /// For so long at least one task waited for a CPU.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cpu_pressure_ns: i64,
    /// For a disk.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub io_pressure_ns: i64,
    /// For memory.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub memory_pressure_ns: i64,
    /// For interrupts to end.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub irq_pressure_ns: i64,
}

impl MachineTaken {
    /// Nothing was.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// A real-time thread that the scheduler does not put behind the measured ones, and that ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RanAbove {
    /// Where: its CPU, or the one on which it was last.
    pub cpu: u32,
    /// Its name and policy.
    pub thread: String,
    /// For so long.
    pub ns: i64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(n: &i64) -> bool {
    *n == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_looked_at_and_a_line_keeps_what_it_has() {
        let words: Vec<String> = DisturbanceKind::ALL.iter().map(ToString::to_string).collect();
        assert_eq!(words, DisturbanceKind::WORDS);
        let record = DisturbanceRecord {
            t_ns: 2,
            span_ns: 1,
            cpus: vec![CpuTaken {
                cpu: 1,
                waited_ns: 5,
                frequency_khz: 800_000,
                ..CpuTaken::default()
            }],
            machine: MachineTaken { smis: 3, io_pressure_ns: 7, ..MachineTaken::default() },
            above: vec![RanAbove { cpu: 1, thread: "irq/9 (fifo:90)".to_owned(), ns: 4 }],
            unread: vec![DisturbanceKind::Quota, DisturbanceKind::of("from-later")],
        };
        let text = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<DisturbanceRecord>(&text).unwrap(), record);
        // As it was before there was more than the kernel's accounting.
        let old: DisturbanceRecord = serde_json::from_str(
            "{\"t_ns\":2,\"span_ns\":1,\"cpus\":[{\"cpu\":1,\"steal_ns\":9}]}",
        )
        .unwrap();
        assert!(old.machine.is_nothing() && old.unread.is_empty() && !old.is_nothing());
        let quiet = DisturbanceRecord { t_ns: 2, span_ns: 1, ..DisturbanceRecord::default() };
        assert_eq!(
            serde_json::to_string(&quiet).unwrap(),
            "{\"t_ns\":2,\"span_ns\":1,\"cpus\":[]}"
        );
    }
}
