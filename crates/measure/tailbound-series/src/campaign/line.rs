// SPDX-License-Identifier: MIT OR Apache-2.0
//! Progress of a campaign: which run of how many, time over and to go, what can be said so far.
//!
//! Not here: who writes ([`ProgressWriter`]), the words (`words.rs`).

use std::fs::File;
use std::io::Write as _;
use std::time::{Duration, Instant};

use tailbound_core::progress_writer::{PacedLine, ProgressWriter};

use super::follow::{Follow, SoFar};
use super::make::{Ahead, Now, Progress};

const REDRAW_EVERY: Duration = Duration::from_millis(500);
/// From one line for a program to the next.
const PROGRAM_EVERY: Duration = Duration::from_secs(1);

/// The line of people, and the lines of a program that follows the campaign.
#[derive(Debug)]
pub struct CampaignLine {
    line: PacedLine,
    program: Option<File>,
    /// The run of the last line for the program, and when it was written.
    told: Option<(usize, Instant)>,
}

impl CampaignLine {
    /// Without a writer people see nothing; `program` gets a line of JSON per second.
    #[must_use]
    pub fn new(writer: Option<ProgressWriter>, program: Option<File>) -> Self {
        Self { line: PacedLine::new(writer, REDRAW_EVERY), program, told: None }
    }

    /// Takes the line away.
    pub fn clear(&self) {
        self.line.clear();
    }

    /// A program that does not listen any more gets nothing.
    fn tell(&mut self, now: &Now<'_>) {
        let Some(program) = &mut self.program else { return };
        if self.told.is_some_and(|(at, when)| at == now.at && when.elapsed() < PROGRAM_EVERY) {
            return;
        }
        self.told = Some((now.at, Instant::now()));
        if writeln!(program, "{}", now.json()).is_err() {
            self.program = None;
        }
    }

    fn note(&self, text: &str) {
        self.line.clear();
        self.line.note(text);
    }
}

impl Progress for CampaignLine {
    fn refused(&mut self, part: &str, why: &str) {
        self.line.note(&format!("{part}: cannot be made here: {why}"));
    }

    fn begins(&mut self, ahead: &Ahead<'_>) {
        self.line.note(&ahead.to_string());
    }

    fn tick(&mut self, now: &Now<'_>, follow: &mut Follow) {
        self.tell(now);
        if self.line.is_due() {
            follow.look();
            self.line.draw(&now.text(follow.so_far()));
        }
    }

    fn done(&mut self, now: &Now<'_>, so_far: Option<SoFar>) {
        let text = so_far.map_or_else(|| "its benchmarks are timed".to_owned(), |s| s.to_string());
        self.note(&format!("{}: {text}", now.which()));
    }

    fn failed(&mut self, part: &str, why: &str) {
        self.note(&format!("{part}: failed: {why}"));
    }
}
