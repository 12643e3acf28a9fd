// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where things lie: in the kernel's threads, by its own description; and in what the programs share with
//! this process.
//!
//! Context: SETUP. Units: bytes; times are ns of CLOCK_MONOTONIC.
//! Source: include/linux/sched.h; each field is looked up, none assumed.

use serde::{Deserialize, Serialize};
use tailbound_trace::btf::{Btf, BtfError};

/// Classes of the histogram: four for each power of two, the last one for 2^43 ns (two hours) and more.
pub(crate) const CLASSES: usize = 168;

/// By what a thread is known in one window; its number alone may be given to another one.
pub(crate) mod key {
    pub(crate) const START: i16 = 0;
    pub(crate) const TID: i16 = 8;
    /// Of which of the two halves of the table: one is filled while the other is read.
    pub(crate) const HALF: i16 = 12;
    pub(crate) const BYTES: usize = 16;
}

/// What is counted of one thread in one window.
pub(crate) mod entry {
    use super::CLASSES;

    pub(crate) const N: i16 = 0;
    pub(crate) const SUM: i16 = 8;
    pub(crate) const MAX: i16 = 16;
    /// When the longest wait ended.
    pub(crate) const MAX_AT: i16 = 24;
    pub(crate) const MAX_CPU: i16 = 32;
    /// Who had the CPU until then.
    pub(crate) const BEFORE_TID: i16 = 36;
    pub(crate) const BEFORE_COMM: i16 = 40;
    pub(crate) const BEFORE_POLICY: i16 = 56;
    pub(crate) const BEFORE_PRIORITY: i16 = 60;
    pub(crate) const COMM: i16 = 64;
    pub(crate) const POLICY: i16 = 80;
    pub(crate) const PRIORITY: i16 = 84;
    /// Where it began to run last.
    pub(crate) const CPU: i16 = 88;
    pub(crate) const FLAGS: i16 = 92;
    pub(crate) const CLASS: i16 = 96;
    pub(crate) const BYTES: usize = CLASS as usize + CLASSES * 8;
}

/// A wake-up over the threshold.
pub(crate) mod late {
    pub(crate) const T: i16 = 0;
    pub(crate) const LATENCY: i16 = 8;
    pub(crate) const TID: i16 = 16;
    pub(crate) const CPU: i16 = 20;
    pub(crate) const COMM: i16 = 24;
    pub(crate) const POLICY: i16 = 40;
    pub(crate) const PRIORITY: i16 = 44;
    pub(crate) const BEFORE_COMM: i16 = 48;
    pub(crate) const BEFORE_TID: i16 = 64;
    pub(crate) const BEFORE_POLICY: i16 = 68;
    pub(crate) const BEFORE_PRIORITY: i16 = 72;
    pub(crate) const BYTES: usize = 80;
}

/// What this process tells the programs.
pub(crate) mod settings {
    pub(crate) const HALF: i16 = 0;
    pub(crate) const THRESHOLD: i16 = 8;
    pub(crate) const BYTES: usize = 16;
}

/// What found no room.
pub(crate) mod lost {
    /// Wake-ups that were not counted.
    pub(crate) const WAKEUPS: i16 = 0;
    /// Late ones that are counted, and not told one by one.
    pub(crate) const LATE: i16 = 8;
    pub(crate) const BYTES: usize = 16;
}

/// Places in the kernel's `task_struct`, and the events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Kernel {
    pub(crate) pid: i16,
    pub(crate) start: i16,
    pub(crate) policy: i16,
    pub(crate) priority: i16,
    pub(crate) flags: i16,
    pub(crate) comm: i32,
    pub(crate) waking: u32,
    pub(crate) switch: u32,
}

impl Kernel {
    /// Looks everything up.
    ///
    /// # Errors
    /// What this kernel lacks.
    pub(crate) fn of(btf: &Btf<'_>) -> Result<Self, BtfError> {
        let far = |name: &str| Ok(btf.field("task_struct", &[name])?.offset);
        let near = |name: &str| {
            i16::try_from(far(name)?)
                .map_err(|_| BtfError::Lacking(format!("field {name} near enough")))
        };
        Ok(Self {
            pid: near("pid")?,
            start: near("start_time")?,
            policy: near("policy")?,
            priority: near("rt_priority")?,
            flags: near("flags")?,
            comm: i32::try_from(far("comm")?)
                .map_err(|_| BtfError::Lacking("field comm near enough".to_owned()))?,
            waking: btf.tracepoint("sched_waking")?.id,
            switch: btf.tracepoint("sched_switch")?.id,
        })
    }
}
