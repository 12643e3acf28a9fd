// SPDX-License-Identifier: MIT OR Apache-2.0
//! What took time from chosen CPUs, and who sent them interrupts: data only.
//!
//! Units: ns; counts.
//! Not here: how it is counted (`tailbound-trace`), how it is shown (`tailbound-report`).

use std::collections::BTreeMap;

use super::Activity;

/// How often and how long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeTotals {
    /// Occurrences that came to their end.
    pub count: u64,
    /// The time of all together.
    pub ns: u64,
    /// The longest.
    pub ns_max: u64,
}

/// One CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OnCpu {
    /// From the first to the last record of it.
    pub span_ns: u64,
    /// Of that it was idle.
    pub idle_ns: u64,
    /// Of that nothing is known: events were lost.
    pub unknown_ns: u64,
    /// By kind and name, without the numbers of threads.
    pub taken: BTreeMap<(Activity, String), TimeTotals>,
}

/// Who sends interrupts to the chosen CPUs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sender {
    /// The thread's name.
    pub who: String,
    /// The kernel's function that sent them.
    pub callsite: String,
    /// The function that the other CPU is to run; empty where none is named.
    pub callback: String,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interrupted {
    /// By CPU.
    pub cpus: BTreeMap<u32, OnCpu>,
    /// How many interrupts each sent; one for several CPUs counts for each of the chosen ones.
    pub senders: BTreeMap<Sender, u64>,
    /// Events that were read.
    pub events: u64,
}
