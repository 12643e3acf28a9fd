// SPDX-License-Identifier: MIT OR Apache-2.0
//! The line of progress of what is looked at for a while, redrawn on a terminal and now and then in a pipe.
//!
//! Not here: the looks ([`crate::looks`]); where it is written to.

use std::time::{Duration, Instant};

use tailbound_core::progress_writer::ProgressWriter;

use crate::looks::LookProgress;

/// Before this nothing is said.
const QUIET: Duration = Duration::from_secs(2);
/// From one line to the next, on a terminal and into a pipe.
const EVERY: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(10)];

/// See the module.
#[derive(Debug)]
pub struct ProgressLine {
    writer: Option<ProgressWriter>,
    said: Option<Instant>,
}

impl ProgressLine {
    /// A line that `writer` draws; without one nothing is said.
    #[must_use]
    pub fn new(writer: Option<ProgressWriter>) -> Self {
        Self { writer, said: None }
    }
}

impl LookProgress for ProgressLine {
    fn look(&mut self, over: Duration, left: Option<Duration>, line: &mut dyn FnMut() -> String) {
        let Some(writer) = self.writer else { return };
        let every = if writer.redraw.is_some() { EVERY[0] } else { EVERY[1] };
        if over < QUIET || self.said.is_some_and(|at| at.elapsed() < every) {
            return;
        }
        self.said = Some(Instant::now());
        let left = left.map_or_else(
            || "Ctrl-C ends it".to_owned(),
            |l| format!("{} s left", l.as_secs_f64().round()),
        );
        (writer.redraw.unwrap_or(writer.note))(&format!("{}, {left}", line()));
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if let (Some(redraw), Some(_)) = (self.writer.and_then(|w| w.redraw), self.said) {
            redraw("");
        }
    }
}
