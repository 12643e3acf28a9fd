// SPDX-License-Identifier: MIT OR Apache-2.0
//! The line of a hunt that goes on: how many, how late so far, how long to go.
//!
//! Not here: who writes ([`ProgressWriter`]).

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use tailbound_core::progress_writer::{PacedLine, ProgressWriter};
use tailbound_core::units::{format_ns_i64, format_span};

use super::HuntListener;
use crate::hunt::Search;

const REDRAW_EVERY: Duration = Duration::from_millis(200);

/// The line.
#[derive(Debug)]
pub struct HuntLine {
    line: RefCell<PacedLine>,
    begin: Cell<Instant>,
    best: RefCell<String>,
}

impl HuntLine {
    /// Without a writer it shows nothing.
    #[must_use]
    pub fn new(writer: Option<ProgressWriter>) -> Self {
        let line = RefCell::new(PacedLine::new(writer, REDRAW_EVERY));
        Self { line, begin: Cell::new(Instant::now()), best: RefCell::default() }
    }

    fn rate(&self, runs: usize) -> u64 {
        let ms = u64::try_from(self.begin.get().elapsed().as_millis()).unwrap_or(u64::MAX);
        (runs as u64).saturating_mul(60_000).checked_div(ms).unwrap_or(0)
    }

    fn draw(&self, text: impl FnOnce() -> String) {
        let mut line = self.line.borrow_mut();
        if line.is_due() {
            line.draw(&text());
        }
    }
}

impl HuntListener for HuntLine {
    fn begins(&self) {
        self.begin.set(Instant::now());
        self.line.borrow_mut().restart();
    }

    fn note(&self, text: &str) {
        self.line.borrow().note(text);
    }

    fn known(&self, search: &Search) {
        let latest = search.worst().map_or_else(String::new, |e| {
            let latest = format_ns_i64(e.latest_ns().unwrap_or(0));
            format!("; latest {latest}: {}", e.candidate)
        });
        *self.best.borrow_mut() = format!("{} candidates{latest}", search.entries().len());
    }

    fn searching(&self, runs: usize, until: Option<Instant>) {
        self.draw(|| {
            let left = until.map_or_else(String::new, |until| {
                let s = until.saturating_duration_since(Instant::now()).as_secs();
                let ns = i64::try_from(s).unwrap_or(0).saturating_mul(1_000_000_000);
                format!(", {} to go", format_span(ns))
            });
            format!("{} a minute{left}; {}", self.rate(runs), self.best.borrow())
        });
    }

    fn shrinking(&self, runs: usize) {
        self.draw(|| format!("making the worst smaller: {runs} runs"));
    }

    fn clear(&self) {
        self.line.borrow().clear();
    }
}
