// SPDX-License-Identifier: MIT OR Apache-2.0
//! How far the reading of a long file is: on a terminal one line redrawn in place, into a pipe
//! a line now and then; nothing about a file that is read within two seconds.
//!
//! Units: bytes. Not here: where lines go (`tailbound_core::progress_writer`).

use std::time::{Duration, Instant};

use tailbound_core::number::Real as _;
use tailbound_core::progress_writer::ProgressWriter;
use tailbound_sys::signal::Signals;

use crate::read::ReadProgress;

/// Before this nothing is said.
const QUIET: Duration = Duration::from_secs(2);
/// From one line to the next, on a terminal and into a pipe.
const EVERY: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(5)];

/// Watches a file being read.
#[derive(Debug)]
pub struct ReadingLine<'a> {
    name: String,
    total: Option<u64>,
    signals: Option<&'a Signals>,
    writer: ProgressWriter,
    began: Instant,
    said: Option<Instant>,
}

impl<'a> ReadingLine<'a> {
    /// Of a file that is named when it begins; one of `signals` ends it.
    #[must_use]
    pub fn new(writer: ProgressWriter, signals: Option<&'a Signals>) -> Self {
        let (name, began) = (String::new(), Instant::now());
        Self { name, total: None, signals, writer, began, said: None }
    }
}

impl ReadProgress for ReadingLine<'_> {
    fn begins(&mut self, name: &str, length: Option<u64>) {
        (self.name, self.total, self.began) = (name.to_owned(), length, Instant::now());
    }

    fn at(&mut self, bytes: u64) -> bool {
        let elapsed = self.began.elapsed();
        let every = if self.writer.redraw.is_some() { EVERY[0] } else { EVERY[1] };
        if elapsed >= QUIET && self.said.is_none_or(|at| at.elapsed() >= every) {
            self.said = Some(Instant::now());
            let line = progress_line(&self.name, bytes, self.total, elapsed);
            (self.writer.redraw.unwrap_or(self.writer.note))(&line);
        }
        self.signals.is_none_or(|s| s.wait(0).is_none())
    }
}

impl Drop for ReadingLine<'_> {
    fn drop(&mut self) {
        if let Some(redraw) = self.writer.redraw.filter(|_| self.said.is_some()) {
            // What was drawn in place makes room for the answer.
            redraw("");
        }
    }
}

/// `read 0.80 of 1.73 GB of x.raw, 430 MB/s, 2 s left`
fn progress_line(name: &str, bytes: u64, total: Option<u64>, elapsed: Duration) -> String {
    let (done, total) = (bytes.real(), total.map(|t| t.real()));
    let rate = done / elapsed.as_secs_f64().max(1e-3);
    let of = total.map_or_else(String::new, |t| format!(" of {:.2}", t / 1e9));
    let left = total.map_or_else(String::new, |t| {
        format!(", {:.0} s left", ((t - done) / rate.max(1.0)).max(0.0))
    });
    format!("read {:.2}{of} GB of {name}, {:.0} MB/s{left}", done / 1e9, rate / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_how_far_how_fast_and_how_long() {
        let two = Duration::from_secs(2);
        let text = progress_line("x.raw", 800_000_000, Some(1_728_000_000), two);
        assert_eq!(text, "read 0.80 of 1.73 GB of x.raw, 400 MB/s, 2 s left");
        assert_eq!(progress_line("-", 800_000_000, None, two), "read 0.80 GB of -, 400 MB/s");
    }
}
