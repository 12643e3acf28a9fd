// SPDX-License-Identifier: MIT OR Apache-2.0
//! Looks at something that goes on, ten times a second, until its time is over or Ctrl-C: with a line
//! of progress, redrawn on a terminal and now and then in a pipe.
//!
//! Drawn to standard error: standard output is for the answer.
//! Not here: the live view of a run (`live`), the reading of files (`reading`).

use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

use tailbound_core::units::parse_ns;
use tailbound_sys::signal::Signals;

use crate::say::{self, Failure};

/// From one look to the next.
const LOOK_MS: i32 = 100;
/// Before this nothing is said.
const QUIET: Duration = Duration::from_secs(2);
/// From one line to the next, on a terminal and into a pipe.
const EVERY: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(10)];

/// What a wait for the next look came to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Next {
    /// It is time for a look.
    Look,
    /// The time is over.
    Over,
    /// A signal came: which, and whether from the terminal, which sends it to everyone there.
    Signal(i32, bool),
}

/// See the module.
pub(crate) struct Looking {
    began: Instant,
    length: Option<Duration>,
    signals: Signals,
    terminal: bool,
    said: Option<Instant>,
}

/// The text of `-D` as a length of time.
pub(crate) fn length(text: &str) -> Result<Duration, Failure> {
    let ns = parse_ns(text).map_err(|e| Failure::usage(format!("-D: {e}")))?;
    if ns <= 0 {
        return Err(Failure::usage(format!("-D: {text} is not above zero")));
    }
    Ok(Duration::from_nanos(ns.unsigned_abs()))
}

impl Looking {
    /// For `length`; without one until a signal. To be made before what is looked at begins, so that no
    /// signal ends this process on the way.
    pub(crate) fn begin(length: Option<Duration>) -> Result<Self, Failure> {
        let signals = Signals::block_and_open().map_err(Failure::cannot)?;
        let terminal = io::stderr().is_terminal();
        Ok(Self { began: Instant::now(), length, signals, terminal, said: None })
    }

    /// The time begins now.
    pub(crate) fn start(&mut self) {
        self.began = Instant::now();
    }

    /// Waits for the next look; `false` once the time is over or a signal came.
    pub(crate) fn next(&mut self) -> bool {
        matches!(self.wait(), Next::Look)
    }

    /// The same, for those who go on after a signal.
    pub(crate) fn wait(&mut self) -> Next {
        let left = self.left();
        if left.is_some_and(|l| l.is_zero()) {
            return Next::Over;
        }
        let ms = left
            .map_or(LOOK_MS, |l| i32::try_from(l.as_millis()).unwrap_or(LOOK_MS).clamp(1, LOOK_MS));
        match self.signals.wait_whence(ms) {
            Some((signal, by_terminal)) => Next::Signal(signal, by_terminal),
            None => Next::Look,
        }
    }

    fn left(&self) -> Option<Duration> {
        self.length.map(|l| l.saturating_sub(self.began.elapsed()))
    }

    /// Says how far it is, when it is time for it.
    pub(crate) fn say(&mut self, line: impl FnOnce() -> String) {
        let every = if self.terminal { EVERY[0] } else { EVERY[1] };
        if self.began.elapsed() < QUIET || self.said.is_some_and(|at| at.elapsed() < every) {
            return;
        }
        self.said = Some(Instant::now());
        let left = self.left().map_or_else(
            || "Ctrl-C ends it".to_owned(),
            |l| format!("{} s left", l.as_secs_f64().round()),
        );
        let line = format!("{}, {left}", line());
        if self.terminal { say::redraw(&line) } else { say::note(&line) }
    }
}

impl Drop for Looking {
    fn drop(&mut self) {
        if self.terminal && self.said.is_some() {
            say::redraw("");
        }
    }
}
