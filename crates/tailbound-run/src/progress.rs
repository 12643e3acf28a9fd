// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a run looks like while it goes on, for whoever watches it.
//!
//! Context: COLD, at most ten times a second. Units: ns.

use tailbound_core::histogram::Histogram;

/// What a watcher is shown.
#[derive(Debug)]
pub enum View<'a> {
    /// Something that takes longer than two seconds, in words.
    Note(&'a str),
    /// The run so far.
    Progress(&'a Progress),
}

/// Which part of the run it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The threads run, what they see is discarded.
    WarmUp,
    /// The measurement.
    Measuring,
}

/// One thread so far, per due activation.
#[derive(Clone, Debug, Default)]
pub struct ThreadProgress {
    /// Its CPU.
    pub cpu: Option<u32>,
    /// Wake-ups.
    pub n: u64,
    /// Missed activations.
    pub missed: u64,
    /// Least error.
    pub min_ns: Option<i64>,
    /// Mean error, as of the last whole second.
    pub mean_ns: Option<f64>,
    /// 99 % quantile since the start.
    pub p99_ns: Option<f64>,
    /// 99 % quantile of the last ten seconds.
    pub p99_10s_ns: Option<f64>,
    /// Greatest error.
    pub max_ns: Option<i64>,
    /// Error of the latest wake-up.
    pub last_ns: Option<i64>,
}

/// A whole run so far.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Which part it is in.
    pub phase: Phase,
    /// Time since the part began.
    pub elapsed_ns: i64,
    /// Planned length of the part.
    pub total_ns: i64,
    /// The deadline.
    pub deadline_ns: Option<i64>,
    /// The threads.
    pub threads: Vec<ThreadProgress>,
    /// All due activations since the start.
    pub histogram: Histogram,
    /// Those since the last look.
    pub recent: Histogram,
    /// Name, rate per second and unit of each load.
    pub loads: Vec<(String, f64, String)>,
    /// Findings so far, a line each.
    pub notes: Vec<String>,
}
