// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is shown while a series of rounds goes on: one line, redrawn on a terminal.
//!
//! Not here: who writes ([`ProgressWriter`]).

use tailbound_core::progress_writer::ProgressWriter;

use super::make::{Next, Progress};
use super::series::Series;

/// The line; `None` shows nothing.
#[derive(Clone, Copy, Debug)]
pub struct SeriesLine(pub Option<ProgressWriter>);

impl Progress for SeriesLine {
    fn begins(&mut self, series: &Series, there: usize, expected_ns: i64) {
        if let Some(writer) = self.0 {
            (writer.note)(&series.text(there, expected_ns));
        }
    }

    fn next(&mut self, next: &Next<'_>) {
        if let Some(writer) = self.0 {
            (writer.redraw.unwrap_or(writer.note))(&next.text());
        }
    }
}

impl SeriesLine {
    /// Takes the line away.
    pub fn clear(&self) {
        if let Some(redraw) = self.0.and_then(|writer| writer.redraw) {
            redraw("");
        }
    }
}
