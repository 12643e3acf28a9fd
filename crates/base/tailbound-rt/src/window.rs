// SPDX-License-Identifier: MIT OR Apache-2.0
//! A schedule of windows for a loop that never sleeps: of each window the worst is recorded.
//!
//! Context: HOT. Units: ns from the schedule's first due time.
//! A polling loop has no wake-ups to be late. So its schedule is divided into windows of one
//! interval; window k is due at `k * interval`, and its error is the worst that ended in it, or
//! began in it and lasted beyond its end. Windows that passed as a whole while the loop stood
//! still are missed: whoever had come at the beginning of such a window would have waited until
//! the loop came back, which is the latency they are recorded with. Nothing is skipped.

use crate::cyclic::Schedule;
use crate::recorder::{Recorder, Writer};

/// Why a loop is beyond the end of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// It stood still: the windows that passed are as late as that.
    StoodStill,
    /// It was away for a reason that does not count: the windows that passed were not looked at (missed, with 0), and
    /// the present one begins with nothing seen.
    Waited,
}

/// The windows of one thread.
#[derive(Debug)]
pub struct Windows<'r> {
    writer: Writer<'r>,
    first_ns: i64,
    interval_ns: i64,
    activations: u64,
    activation: u64,
    worst_ns: i64,
}

impl<'r> Windows<'r> {
    /// No window is closed yet.
    pub fn new(recorder: &'r Recorder, schedule: &Schedule) -> Self {
        let interval_ns = schedule.interval_ns.max(1);
        Self {
            writer: Writer::new(recorder, schedule.first_ns, interval_ns),
            first_ns: schedule.first_ns,
            interval_ns,
            activations: schedule.activations,
            activation: 0,
            worst_ns: 0,
        }
    }

    /// Windows accounted for.
    #[must_use]
    pub fn accounted(&self) -> u64 {
        self.activation
    }

    /// Is every window accounted for?
    #[must_use]
    pub fn complete(&self) -> bool {
        self.activation >= self.activations
    }

    /// Where the present window begins.
    #[must_use]
    pub fn begin_ns(&self) -> i64 {
        self.interval_ns.saturating_mul(self.activation.cast_signed())
    }

    /// Where the present window ends.
    #[must_use]
    pub fn end_ns(&self) -> i64 {
        self.begin_ns().saturating_add(self.interval_ns)
    }

    /// Something took this long in the present window.
    #[inline]
    pub fn see(&mut self, error_ns: i64) {
        self.worst_ns = self.worst_ns.max(error_ns);
    }

    /// The loop is at `now_ns`: closes the window if it is over, and those that passed with it.
    pub fn close(&mut self, now_ns: i64, absence: Absence) {
        let end_ns = self.end_ns();
        if now_ns < end_ns || self.complete() {
            return;
        }
        let begin_ns = self.begin_ns();
        let due_ns = self.first_ns.saturating_add(begin_ns);
        self.writer.wake(self.activation, due_ns, due_ns.saturating_add(self.worst_ns), 0);
        self.activation = self.activation.wrapping_add(1);
        let left = self.activations.wrapping_sub(self.activation);
        let beyond_ns = now_ns.saturating_sub(end_ns);
        let passed = beyond_ns.checked_div(self.interval_ns).map_or(0, i64::unsigned_abs).min(left);
        if absence == Absence::Waited {
            // Nobody looked: missed, and nothing known of how late they would have been served.
            self.writer.unseen(passed);
        } else {
            // Of the windows after this one the k-th began at `begin + k * interval`.
            self.writer.skipped(now_ns.saturating_sub(begin_ns), passed);
        }
        self.activation = self.activation.wrapping_add(passed);
        // The window that the loop came back in: its beginning was not served either.
        let late_ns = now_ns.saturating_sub(self.begin_ns());
        self.worst_ns = match absence {
            Absence::Waited => 0,
            Absence::StoodStill => late_ns.max(0),
        };
    }

    /// Publishes what is not published yet.
    pub fn finish(&mut self) {
        self.writer.finish();
    }
}
