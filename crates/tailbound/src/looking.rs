// SPDX-License-Identifier: MIT OR Apache-2.0
//! The line of progress of what is looked at for a while, redrawn on a terminal and now and then in a pipe.
//!
//! Drawn to standard error: standard output is for the answer.
//! Not here: the looks (`tailbound_record::looks`), the live view of a run (`live`), the reading of files (`reading`).

use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

use tailbound_core::record::{Fact, Facts};
use tailbound_record::looks::LookProgress;

use crate::flags;
use crate::say::{self, Failure};

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
    quiet: bool,
    terminal: bool,
    said: Option<Instant>,
}

impl ProgressLine {
    pub(crate) fn new(quiet: bool) -> Self {
        Self { quiet, terminal: io::stderr().is_terminal(), said: None }
    }
}

impl LookProgress for ProgressLine {
    fn look(&mut self, over: Duration, left: Option<Duration>, line: &mut dyn FnMut() -> String) {
        let every = if self.terminal { EVERY[0] } else { EVERY[1] };
        if self.quiet || over < QUIET || self.said.is_some_and(|at| at.elapsed() < every) {
            return;
        }
        self.said = Some(Instant::now());
        let left = left.map_or_else(
            || "Ctrl-C ends it".to_owned(),
            |l| format!("{} s left", l.as_secs_f64().round()),
        );
        let line = format!("{}, {left}", line());
        if self.terminal { say::redraw(&line) } else { say::note(&line) }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.terminal && self.said.is_some() {
            say::redraw("");
        }
    }
}
