// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a run looks like while it goes on: reported by the runner, shown by the live view.
//!
//! Context: COLD, at most ten times a second. Units: ns.

use crate::context::Context;
use crate::histogram::Histogram;

/// What the run is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// What is seen now will be discarded, and reported as discarded.
    WarmUp,
    /// It counts.
    Measuring,
}

impl Phase {
    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::WarmUp => "warm-up",
            Self::Measuring => "measuring",
        }
    }
}

/// One thread so far; what is not known yet is `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThreadProgress {
    /// The kernel's number of the thread.
    pub tid: Option<i32>,
    /// The CPU it is pinned to.
    pub cpu: Option<u32>,
    /// What is measured there.
    pub context: Context,
    /// Wake-ups so far.
    pub n: u64,
    /// Earliest.
    pub min_ns: Option<i64>,
    /// Mean.
    pub mean_ns: Option<f64>,
    /// 99 % quantile since the start.
    pub p99_ns: Option<f64>,
    /// 99 % quantile of the last 10 s.
    pub p99_10s_ns: Option<f64>,
    /// Latest.
    pub max_ns: Option<i64>,
    /// The latest wake-up's error.
    pub last_ns: Option<i64>,
    /// Missed activations so far.
    pub missed: u64,
}

/// A whole run so far.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// What the run is doing.
    pub phase: Phase,
    /// Time of this phase that is over.
    pub elapsed_ns: i64,
    /// Length of this phase.
    pub total_ns: i64,
    /// The deadline, if one is required.
    pub deadline_ns: Option<i64>,
    /// The measured threads.
    pub threads: Vec<ThreadProgress>,
    /// All wake-ups of all threads since the start of the phase.
    pub histogram: Histogram,
    /// Those of the last second or so.
    pub recent: Histogram,
    /// Loads: name, rate per second, what is counted.
    pub loads: Vec<(String, f64, String)>,
    /// What may be said of the requirement so far, however often it is read.
    pub statement: Option<String>,
    /// Anything else to be said now.
    pub notes: Vec<String>,
}
