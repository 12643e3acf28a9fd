// SPDX-License-Identifier: MIT OR Apache-2.0
//! The line of a hunt that goes on: how many, how late so far, how long to go.
//!
//! To standard error: redrawn on a terminal, now and then into a pipe.

use std::cell::{Cell, RefCell};
use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

use tailbound_core::units::{format_ns_i64, format_span};
use tailbound_search::hunt::Search;
use tailbound_search::hunt_runs::HuntListener;

use crate::say;

/// From one line to the next, into a pipe.
const LINE_EVERY: Duration = Duration::from_secs(10);
const REDRAW_EVERY: Duration = Duration::from_millis(200);

/// The line.
pub(super) struct Line {
    quiet: bool,
    terminal: bool,
    begin: Cell<Instant>,
    last: Cell<Instant>,
    best: RefCell<String>,
}

impl Line {
    pub(super) fn new(quiet: bool) -> Self {
        let now = Cell::new(Instant::now());
        let terminal = io::stderr().is_terminal();
        Self { quiet, terminal, begin: now.clone(), last: now, best: RefCell::default() }
    }

    fn rate(&self, runs: usize) -> u64 {
        let ms = u64::try_from(self.begin.get().elapsed().as_millis()).unwrap_or(u64::MAX);
        (runs as u64).saturating_mul(60_000).checked_div(ms).unwrap_or(0)
    }

    fn draw(&self, text: &str) {
        let every = if self.terminal { REDRAW_EVERY } else { LINE_EVERY };
        if self.quiet || self.last.get().elapsed() < every {
            return;
        }
        self.last.set(Instant::now());
        if self.terminal {
            let width = tailbound_sys::terminal::size(&io::stderr()).map_or(80, |(c, _)| c);
            let line: String = text.chars().take(width.saturating_sub(1)).collect();
            say::redraw(&line);
        } else {
            say::note(text);
        }
    }
}

impl HuntListener for Line {
    fn begins(&self) {
        let now = Instant::now();
        self.begin.set(now);
        self.last.set(now);
    }

    fn note(&self, text: &str) {
        if !self.quiet {
            say::note(text);
        }
    }

    fn known(&self, search: &Search) {
        let latest = search.worst().map_or_else(String::new, |e| {
            let latest = format_ns_i64(e.latest_ns().unwrap_or(0));
            format!("; latest {latest}: {}", e.candidate)
        });
        *self.best.borrow_mut() = format!("{} candidates{latest}", search.entries().len());
    }

    fn searching(&self, runs: usize, until: Option<Instant>) {
        let left = until.map_or_else(String::new, |until| {
            let s = until.saturating_duration_since(Instant::now()).as_secs();
            let ns = i64::try_from(s).unwrap_or(0).saturating_mul(1_000_000_000);
            format!(", {} to go", format_span(ns))
        });
        let (best, rate) = (self.best.borrow(), self.rate(runs));
        self.draw(&format!("{rate} a minute{left}; {best}"));
    }

    fn shrinking(&self, runs: usize) {
        self.draw(&format!("making the worst smaller: {runs} runs"));
    }

    fn clear(&self) {
        if self.terminal && !self.quiet {
            say::redraw("");
        }
    }
}
