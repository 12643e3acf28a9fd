// SPDX-License-Identifier: MIT OR Apache-2.0
//! The line of progress of what is looked at for a while, redrawn on a terminal and now and then in a pipe.
//!
//! Drawn to standard error: standard output is for the answer.
//! Not here: the looks (`tailbound_record::looks`), the live view of a run (`live`), the reading of files (`reading`).

use std::time::{Duration, Instant};

use tailbound_core::progress_writer::ProgressWriter;
use tailbound_core::record::{Fact, Facts};
use tailbound_record::looks::LookProgress;

use crate::flags;
use crate::say::Failure;

/// Before this nothing is said.
const QUIET: Duration = Duration::from_secs(2);
/// From one line to the next, on a terminal and into a pipe.
const EVERY: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(10)];

/// The text of `-D` as a length of time.
pub(crate) fn length(text: &str) -> Result<Duration, Failure> {
    Ok(Duration::from_nanos(flags::positive_time("-D", text)?.unsigned_abs()))
}

/// Is a hypervisor beneath?
pub(crate) fn virtual_machine(facts: &Facts) -> Option<bool> {
    facts.get("virt.kind").and_then(Fact::as_str).map(|k| k != "none")
}

/// See the module.
pub(crate) struct ProgressLine {
    writer: Option<ProgressWriter>,
    said: Option<Instant>,
}

impl ProgressLine {
    pub(crate) fn new(writer: Option<ProgressWriter>) -> Self {
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
