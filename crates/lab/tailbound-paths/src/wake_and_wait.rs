// SPDX-License-Identifier: MIT OR Apache-2.0
//! A measured wake-up from the due time to user mode.
//!
//! Units: ns of the guest's virtual time, by QEMU's clock.

/// A wake-up of the measured thread, by QEMU's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WakeAndWait {
    /// The kernel's thread.
    pub thread: u64,
    /// Its timer was due.
    pub due_ns: u64,
    /// Its interrupt could have come: where interrupts were disabled then, that is the due time.
    pub free_ns: u64,
    /// The thread was in user mode.
    pub user_ns: u64,
    /// As the run has it.
    pub latency_ns: i64,
}
