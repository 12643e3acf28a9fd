// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a polling probe is to do.
//!
//! Units: ns, bytes; shares of a window.

/// A gap is at least this much longer than an undisturbed turn, where nothing else is asked for:
/// ten times what the reads of the counter differ by.
pub(super) const THRESHOLD_NS: i64 = 100;

/// What a polling probe is to do.
#[derive(Clone, Copy, Debug)]
pub(super) struct PollSettings {
    /// Gaps above a turn from which on they are found; `None`: [`THRESHOLD_NS`].
    pub(super) threshold_ns: Option<i64>,
    /// Gaps from which on they are recorded.
    pub(super) least_ns: i64,
    /// Only what is beneath the kernel is judged.
    pub(super) outside_only: bool,
    /// Bytes moved in each turn.
    pub(super) work_bytes: usize,
    /// Share of each window that is polled.
    pub(super) duty: f64,
    /// A planted fault: the loop itself stands still.
    pub(super) stands_still: bool,
}
