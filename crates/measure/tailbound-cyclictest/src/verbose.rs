// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lines of `-v`: thread, cycle, latency; with `-o N` the greatest of each N.

use std::fmt::Write as _;

/// One thread's way through `-o`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Oscilloscope {
    passed: u64,
    greatest: i64,
    at: u64,
}

impl Oscilloscope {
    /// Adds the line of this latency to `out`, where the last of each `step` is reached.
    pub(crate) fn add(
        &mut self,
        out: &mut String,
        step: u64,
        thread: u32,
        cycle: u64,
        latency: i64,
    ) {
        if latency > self.greatest {
            (self.greatest, self.at) = (latency, cycle);
        }
        self.passed = self.passed.saturating_add(1);
        if self.passed >= step {
            let _ = writeln!(out, "{thread:8}:{:8}:{:8}", self.at, self.greatest);
            *self = Self { at: self.at, ..Self::default() };
        }
    }
}
