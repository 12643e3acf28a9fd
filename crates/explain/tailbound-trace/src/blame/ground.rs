// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an explanation stands on beside the events: the machine's properties, and differences of times.
//!
//! Units: ns.

/// What is known of the machine beside its events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ground {
    /// Does a hypervisor lie beneath?
    pub virtual_machine: Option<bool>,
    /// Time counts executed instructions: nobody can take the CPU.
    pub virtual_time: bool,
    /// Did firmware interrupts happen, where they are counted?
    pub firmware: Option<bool>,
    /// Events of this time were lost.
    pub lost: bool,
    /// What recording one event costs.
    pub event_ns: i64,
}

/// A time as the records have it.
pub(super) fn signed(t: u64) -> i64 {
    i64::try_from(t).unwrap_or(i64::MAX)
}

/// From one time to another, whichever comes first.
pub(crate) fn since(t: u64, from: u64) -> i64 {
    signed(t).saturating_sub(signed(from))
}

/// The sum of lengths.
pub(crate) fn total(lengths: impl Iterator<Item = i64>) -> i64 {
    lengths.fold(0, i64::saturating_add)
}
