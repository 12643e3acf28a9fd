// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where lines of progress go, and how often: a library prints nothing itself.
//!
//! Units: the host's time.

use std::time::{Duration, Instant};

/// From one line to the next, into a pipe.
const NOTE_EVERY: Duration = Duration::from_secs(10);

/// Writes lines of progress, in a program to standard error.
#[derive(Clone, Copy, Debug)]
pub struct ProgressWriter {
    /// A line that stays.
    pub note: fn(&str),
    /// A line over the last one; an empty one takes it away. `None`: this is no terminal.
    pub redraw: Option<fn(&str)>,
}

/// One line of progress: redrawn on a terminal, a new one every ten seconds into a pipe.
#[derive(Clone, Copy, Debug)]
pub struct PacedLine {
    writer: Option<ProgressWriter>,
    redraw_every: Duration,
    last: Instant,
}

impl PacedLine {
    /// The first line is due one interval from now; without a writer none is.
    #[must_use]
    pub fn new(writer: Option<ProgressWriter>, redraw_every: Duration) -> Self {
        Self { writer, redraw_every, last: Instant::now() }
    }

    /// The next line is due one interval from now.
    pub fn restart(&mut self) {
        self.last = Instant::now();
    }

    /// Is a line due? If so, the next is due one interval from now.
    pub fn is_due(&mut self) -> bool {
        let Some(writer) = self.writer else { return false };
        let every = if writer.redraw.is_some() { self.redraw_every } else { NOTE_EVERY };
        let due = self.last.elapsed() >= every;
        if due {
            self.restart();
        }
        due
    }

    /// Writes the line, over the last one where this is a terminal.
    pub fn draw(&self, text: &str) {
        if let Some(writer) = self.writer {
            (writer.redraw.unwrap_or(writer.note))(text);
        }
    }

    /// Writes a line that stays.
    pub fn note(&self, text: &str) {
        if let Some(writer) = self.writer {
            (writer.note)(text);
        }
    }

    /// Takes the line away.
    pub fn clear(&self) {
        if let Some(redraw) = self.writer.and_then(|writer| writer.redraw) {
            redraw("");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_due_after_its_interval_and_never_without_a_writer() {
        let terminal = ProgressWriter { note: |_| (), redraw: Some(|_| ()) };
        let pipe = ProgressWriter { redraw: None, ..terminal };
        let due = |writer, every| PacedLine::new(writer, every).is_due();
        assert!(due(Some(terminal), Duration::ZERO));
        assert!(!due(Some(terminal), Duration::MAX));
        assert!(!due(Some(pipe), Duration::ZERO), "a pipe gets a line every ten seconds");
        assert!(!due(None, Duration::ZERO));
    }
}
