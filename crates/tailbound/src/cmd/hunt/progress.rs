// SPDX-License-Identifier: MIT OR Apache-2.0
//! The line of a hunt that goes on: how many, how late so far, how long to go.
//!
//! To standard error: redrawn on a terminal, now and then into a pipe.

use std::cell::RefCell;
use std::io::{self, IsTerminal as _};
use std::rc::Rc;
use std::time::{Duration, Instant};

use tailbound_core::units::{format_ns_i64, format_span};
use tailbound_hunt::Search;

use crate::say;

/// From one line to the next, into a pipe.
const LINE_EVERY: Duration = Duration::from_secs(10);
const REDRAW_EVERY: Duration = Duration::from_millis(200);

/// The line.
#[derive(Clone)]
pub(super) struct Line {
    quiet: bool,
    terminal: bool,
    begin: Instant,
    last: Rc<RefCell<Instant>>,
    best: Rc<RefCell<String>>,
}

impl Line {
    pub(super) fn new(quiet: bool) -> Self {
        let terminal = io::stderr().is_terminal();
        let now = Instant::now();
        Self { quiet, terminal, begin: now, last: Rc::new(RefCell::new(now)), best: Rc::default() }
    }

    /// What is known now.
    pub(super) fn set(&self, search: &Search) {
        let latest = search.worst().map_or_else(String::new, |e| {
            let latest = format_ns_i64(e.latest_ns().unwrap_or(0));
            format!("; latest {latest}: {}", e.candidate)
        });
        *self.best.borrow_mut() = format!("{} candidates{latest}", search.entries().len());
    }

    /// Draws the line of a search that ends at some time.
    pub(super) fn shown(&self, until: Option<Instant>) -> Box<dyn FnMut(usize)> {
        let this = self.clone();
        Box::new(move |runs| {
            let left = until.map_or_else(String::new, |until| {
                let s = until.saturating_duration_since(Instant::now()).as_secs();
                let ns = i64::try_from(s).unwrap_or(0).saturating_mul(1_000_000_000);
                format!(", {} to go", format_span(ns))
            });
            let best = this.best.borrow().clone();
            let rate = this.rate(runs);
            this.draw(&format!("{rate} a minute{left}; {best}"));
        })
    }

    /// Draws the line of a find that is made smaller.
    pub(super) fn shrinking(&self) -> Box<dyn FnMut(usize)> {
        let this = self.clone();
        let mut first = None;
        Box::new(move |runs| {
            let first = *first.get_or_insert(runs);
            this.draw(&format!("making the worst smaller: {} runs", runs.saturating_sub(first)));
        })
    }

    fn rate(&self, runs: usize) -> u64 {
        let ms = u64::try_from(self.begin.elapsed().as_millis()).unwrap_or(u64::MAX);
        (runs as u64).saturating_mul(60_000).checked_div(ms).unwrap_or(0)
    }

    fn draw(&self, text: &str) {
        let every = if self.terminal { REDRAW_EVERY } else { LINE_EVERY };
        if self.quiet || self.last.borrow().elapsed() < every {
            return;
        }
        *self.last.borrow_mut() = Instant::now();
        if self.terminal {
            let width = tailbound_sys::terminal::size(&io::stderr()).map_or(80, |(c, _)| c);
            let line: String = text.chars().take(width.saturating_sub(1)).collect();
            say::redraw(&line);
        } else {
            say::note(text);
        }
    }

    /// Takes the line away.
    pub(super) fn clear(&self) {
        if self.terminal && !self.quiet {
            say::redraw("");
        }
    }
}
