// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is shown while guests work: one line, redrawn on a terminal, now and then into a pipe.
//!
//! Context: COLD. To standard error.

use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

use tailbound_lab::Progress;

/// From one line to the next, into a pipe.
const LINE_EVERY: Duration = Duration::from_secs(10);
const REDRAW_EVERY: Duration = Duration::from_millis(200);

/// The line.
pub(in crate::cmd) struct Shown {
    quiet: bool,
    terminal: bool,
    last: Instant,
    total: usize,
    done: usize,
    at: Vec<(usize, Progress)>,
}

impl Shown {
    pub(in crate::cmd) fn new(quiet: bool, total: usize) -> Self {
        let terminal = io::stderr().is_terminal();
        Self { quiet, terminal, last: Instant::now(), total, done: 0, at: Vec::new() }
    }

    pub(super) fn progress(&mut self, cell: usize, progress: Progress) {
        self.at.retain(|(c, _)| *c != cell);
        self.at.push((cell, progress));
        self.at.sort_by_key(|(c, _)| *c);
        self.draw();
    }

    pub(super) fn done(&mut self, cell: usize, note: &str) {
        self.at.retain(|(c, _)| *c != cell);
        self.done += 1;
        self.note(note);
    }

    /// Says something on a line of its own.
    pub(in crate::cmd) fn note(&mut self, text: &str) {
        if !self.quiet {
            self.clear();
            crate::say::note(text);
        }
    }

    /// Takes the redrawn line away.
    pub(in crate::cmd) fn clear(&self) {
        if self.terminal && !self.quiet {
            crate::say::redraw("");
        }
    }

    fn draw(&mut self) {
        let every = if self.terminal { REDRAW_EVERY } else { LINE_EVERY };
        if self.quiet || self.last.elapsed() < every {
            return;
        }
        self.last = Instant::now();
        let guests: Vec<String> = self.at.iter().map(|(_, p)| words(*p)).collect();
        let count = if self.total > 1 {
            format!("{} of {} done; ", self.done, self.total)
        } else {
            String::new()
        };
        let line = format!("{count}{}", guests.join(" | "));
        if self.terminal {
            let width = tailbound_sys::terminal::size(&io::stderr()).map_or(80, |(c, _)| c);
            let line: String = line.chars().take(width.saturating_sub(1)).collect();
            crate::say::redraw(&line);
        } else {
            crate::say::note(&line);
        }
    }
}

fn words(p: Progress) -> String {
    let what = if p.at_work { "at work" } else { "booting" };
    format!("{what}, {} s of processor time ({} s here)", p.cpu.as_secs(), p.host.as_secs())
}
