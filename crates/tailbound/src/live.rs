// SPDX-License-Identifier: MIT OR Apache-2.0
//! The live view: a frame redrawn in place on a terminal, plain lines into a pipe,
//! nothing when quiet.
//!
//! Context: COLD, at most eight times a second. Drawn to standard error: standard output
//! is for the answer.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use crate::cli_color::ColorChoice;
use tailbound_core::TerminalSize;
use tailbound_report::Color;
use tailbound_report::live::{FrameView, plain_line};
use tailbound_run::View;
use tailbound_sys::terminal;

/// From one frame to the next, on a terminal.
const REFRESH_MS: u32 = 125;
/// From one line to the next, into a pipe.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Where and how the progress is shown.
pub(crate) enum Live {
    /// Not at all.
    Quiet,
    /// Redrawn in place, with colours or without.
    Frame(FrameView, Color),
    /// A line now and then; holds the notes that were said.
    Lines { last: Instant, said: BTreeSet<String> },
}

impl Live {
    pub(crate) fn new(quiet: bool, color: ColorChoice) -> Self {
        if quiet {
            Self::Quiet
        } else if io::stderr().is_terminal() {
            let color = Color::on_if(color != ColorChoice::Never && crate::say::colors_may_be());
            Self::Frame(FrameView::default(), color)
        } else {
            Self::Lines { last: Instant::now(), said: BTreeSet::new() }
        }
    }

    /// How often it wants to be called; 0 for never.
    pub(crate) fn refresh_ms(&self) -> u32 {
        match self {
            Self::Quiet => 0,
            Self::Frame(..) => REFRESH_MS,
            Self::Lines { .. } => 1000,
        }
    }

    pub(crate) fn show(&mut self, view: &View<'_>) {
        let progress = match view {
            View::Note(_) if matches!(self, Self::Quiet) => return,
            View::Note(text) | View::Alert(text) => return crate::say::note(text),
            View::Progress(progress) => progress,
            View::Samples(_) => return,
        };
        match self {
            Self::Quiet => {}
            Self::Frame(frames, color) => {
                let out = frames.draw(progress, size(), *color);
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
        if let Self::Frame(frames, _) = self
            && let Some(out) = frames.clear(size())
        {
            drop(io::stderr().lock().write_all(out.as_bytes()));
        }
    }
}

fn size() -> TerminalSize {
    terminal::size(&io::stderr()).map_or_else(TerminalSize::default, |window| TerminalSize {
        columns: window.columns.into(),
        rows: window.rows.into(),
    })
}
