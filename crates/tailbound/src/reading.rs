// SPDX-License-Identifier: MIT OR Apache-2.0
//! How far the reading of a long file is: on a terminal one line redrawn in place, into a pipe
//! a line now and then; nothing about a file that is read within two seconds.
//!
//! Units: bytes. Drawn to standard error: standard output is for the answer.
//! Not here: the words of the line (`tailbound_files::progress_line`), the progress of a run (`live`).

use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

use tailbound_files::progress_line;
use tailbound_files::read::ReadProgress;
use tailbound_sys::signal::Signals;

/// Before this nothing is said.
const QUIET: Duration = Duration::from_secs(2);
/// From one line to the next, on a terminal and into a pipe.
const EVERY: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(5)];

/// Watches a file being read.
pub(crate) struct Reading<'a> {
    name: String,
    total: Option<u64>,
    signals: Option<&'a Signals>,
    terminal: bool,
    began: Instant,
    said: Option<Instant>,
}

impl<'a> Reading<'a> {
    /// Of a file that is named when it begins; one of `signals` ends it.
    pub(crate) fn new(signals: Option<&'a Signals>) -> Self {
        let terminal = io::stderr().is_terminal();
        let (name, began) = (String::new(), Instant::now());
        Self { name, total: None, signals, terminal, began, said: None }
    }
}

impl ReadProgress for Reading<'_> {
    fn begins(&mut self, name: &str, length: Option<u64>) {
        (self.name, self.total, self.began) = (name.to_owned(), length, Instant::now());
    }

    fn at(&mut self, bytes: u64) -> bool {
        let elapsed = self.began.elapsed();
        let every = if self.terminal { EVERY[0] } else { EVERY[1] };
        if elapsed >= QUIET && self.said.is_none_or(|at| at.elapsed() >= every) {
            self.said = Some(Instant::now());
            let line = progress_line(&self.name, bytes, self.total, elapsed);
            if self.terminal { crate::say::redraw(&line) } else { crate::say::note(&line) }
        }
        self.signals.is_none_or(|s| s.wait(0).is_none())
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        if self.terminal && self.said.is_some() {
            // What was drawn in place makes room for the answer.
            crate::say::redraw("");
        }
    }
}
