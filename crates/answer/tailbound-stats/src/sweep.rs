// SPDX-License-Identifier: MIT OR Apache-2.0
//! The runs of a sweep: one interval after the other.
//!
//! Units: ns.
//! Not here: making them (`tailbound-series`), tables and pictures (`tailbound-report`).

use tailbound_core::Run;

/// One interval.
#[derive(Debug)]
pub struct Step {
    /// The interval.
    pub interval_ns: i64,
    /// Even intervals.
    pub even: Run,
    /// Random ones around them.
    pub spread: Option<Run>,
}
