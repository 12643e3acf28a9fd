// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the scheduler counts of one thread: `/proc/PID/task/TID/schedstat`.
//!
//! Units: ns. Source: Documentation/scheduler/sched-stats.rst.

use crate::root::{Found, Missing, Root};

/// Its three numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Schedstat {
    /// CPU time.
    pub(crate) run_ns: u64,
    /// Time that it was ready and waited.
    pub(crate) wait_ns: u64,
    /// How often it got a CPU.
    pub(crate) turns: u64,
}

impl Schedstat {
    /// Of the thread whose folder in /proc is `dir`.
    pub(crate) fn read(root: &Root, dir: &str) -> Found<Self> {
        Self::of_text(dir, &root.read_trimmed(&format!("{dir}/schedstat"))?)
    }

    /// Of the text of the file in `dir`.
    pub(crate) fn of_text(dir: &str, text: &str) -> Found<Self> {
        let words: Vec<u64> = text.split(' ').map_while(|w| w.parse().ok()).collect();
        match *words.as_slice() {
            [run_ns, wait_ns, turns] => Ok(Self { run_ns, wait_ns, turns }),
            _ => Err(Missing::Unknown(format!("{dir}/schedstat reads `{text}`"))),
        }
    }
}
