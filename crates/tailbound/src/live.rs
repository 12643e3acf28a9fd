// SPDX-License-Identifier: MIT OR Apache-2.0
//! The live view: a frame redrawn in place on a terminal, plain lines into a pipe,
//! nothing when quiet.
//!
//! Context: COLD, at most eight times a second. Drawn to standard error: standard output
//! is for the answer.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use tailbound_report::live::{frame, plain_line};
use tailbound_run::View;

/// From one frame to the next, on a terminal.
const REFRESH_MS: u32 = 125;
/// From one line to the next, into a pipe.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Where and how the progress is shown.
pub(crate) enum Live {
    /// Not at all.
    Quiet,
    /// Redrawn in place; holds the lines of the last frame and the size of its terminal.
    Frame { lines: usize, size: (usize, usize), color: bool },
    /// A line now and then; holds the notes that were said.
    Lines { last: Instant, said: BTreeSet<String> },
}

impl Live {
    pub(crate) fn new(quiet: bool, color: &str) -> Self {
        if quiet {
            Self::Quiet
        } else if io::stderr().is_terminal() {
            let color =
                color != "never" && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
            Self::Frame { lines: 0, size: (0, 0), color }
        } else {
            Self::Lines { last: Instant::now(), said: BTreeSet::new() }
        }
    }

    /// How often it wants to be called; 0 for never.
    pub(crate) fn refresh_ms(&self) -> u32 {
        match self {
            Self::Quiet => 0,
            Self::Frame { .. } => REFRESH_MS,
            Self::Lines { .. } => 1000,
        }
    }

    pub(crate) fn show(&mut self, view: &View<'_>) {
        let progress = match view {
            View::Note(_) if matches!(self, Self::Quiet) => return,
            View::Note(text) => return crate::say::note(text),
            View::Progress(progress) => progress,
        };
        match self {
            Self::Quiet => {}
            Self::Frame { lines, size, color } => {
                let now = tailbound_sys::terminal::size(&io::stderr()).unwrap_or((80, 24));
                let text = frame(progress, now.0, below(now.1), *color);
                let mut out = up(*lines, *size, now);
                *size = now;
                for line in text.lines() {
                    out.push_str(line);
                    out.push_str("\x1b[K\n");
                }
                out.push_str("\x1b[J");
                *lines = text.lines().count();
                drop(io::stderr().lock().write_all(out.as_bytes()));
            }
            Self::Lines { last, said } => {
                if last.elapsed() >= LINE_EVERY {
                    *last = Instant::now();
                    crate::say::note(&plain_line(progress, said));
                }
            }
        }
    }

    /// Takes the frame away: the answer replaces it.
    pub(crate) fn clear(&mut self) {
        if let Self::Frame { lines, size, .. } = self
            && *lines > 0
        {
            let now = tailbound_sys::terminal::size(&io::stderr()).unwrap_or((80, 24));
            let text = format!("{}\x1b[J", up(*lines, *size, now));
            drop(io::stderr().lock().write_all(text.as_bytes()));
            *lines = 0;
        }
    }
}

/// Lines for a frame in a terminal of `rows`: the cursor stands below the frame, and a frame of all rows would
/// push its first line out.
fn below(rows: usize) -> usize {
    rows.saturating_sub(1).max(1)
}

/// From below the last frame of so many `lines` to its first line. A terminal whose size changed may have
/// folded those lines or not, so that nobody knows where they are: it is cleared.
fn up(lines: usize, drawn_in: (usize, usize), now: (usize, usize)) -> String {
    match lines {
        0 => String::new(),
        _ if drawn_in != now => "\x1b[H\x1b[2J".to_owned(),
        _ => format!("\x1b[{lines}A"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_frame_pushes_its_first_line_out_of_the_terminal() {
        // Each line ends with a line feed; that a frame keeps to the lines it is given, its own tests say.
        assert!((2..200).all(|rows| below(rows) == rows - 1));
        assert_eq!(below(1), 1);
    }

    #[test]
    fn a_frame_begins_where_the_last_one_did() {
        assert_eq!(up(0, (0, 0), (80, 24)), "", "the first one");
        assert_eq!(up(7, (80, 24), (80, 24)), "\x1b[7A");
        assert_eq!(up(7, (80, 24), (60, 24)), "\x1b[H\x1b[2J", "folded lines are unknown lines");
    }
}
