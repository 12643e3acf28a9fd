// SPDX-License-Identifier: MIT OR Apache-2.0
//! A measured thread, as those know it who record beside it.
//!
//! Units: ns. Not here: the thread itself (`tailbound-probe`).

use tailbound_core::Context;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasuredThread {
    /// Its number within the run.
    pub thread: u32,
    /// The kernel's number of it.
    pub tid: i32,
    /// The CPU it is pinned to; `None`: not pinned.
    pub cpu: Option<u32>,
    /// Its activations fall due this much after those of the first.
    pub phase_ns: i64,
    /// What it records.
    pub context: Context,
}
