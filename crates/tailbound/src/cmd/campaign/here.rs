// SPDX-License-Identifier: MIT OR Apache-2.0
//! The runs of a campaign on this machine: what is shown while they are made.
//!
//! Not here: which runs are made, and in which order (`tailbound_series::campaign`).

use std::fs::File;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tailbound_core::campaign::Part;
use tailbound_series::campaign::{
    self as series, Ahead, CampaignEnd, Chosen, Folder, Follow, Now, Progress, SoFar,
};

use crate::caller::Machine;
use crate::cli_campaign::CampaignRunArgs;
use crate::say::{self, Failure};

/// From one line to the next, into a pipe and on a terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);
const TELL_EVERY: Duration = Duration::from_secs(1);
const REDRAW_EVERY: Duration = Duration::from_millis(500);

/// Makes every one of `parts` that is not there yet.
pub(super) fn make(
    args: &CampaignRunArgs,
    chosen: &Chosen,
    parts: &[Part],
    folder: &Folder,
) -> Result<CampaignEnd, Failure> {
    let to = |path: &PathBuf| {
        let opened = File::options().append(true).open(path);
        opened.map_err(|e| Failure::usage(format!("--progress: {}: {e}", path.display())))
    };
    let mut shown = Shown {
        quiet: args.host.quiet,
        terminal: io::stderr().is_terminal(),
        last: Instant::now(),
        program: args.progress.as_ref().map(to).transpose()?,
        told: None,
    };
    let mut machine = Machine::default();
    let made = series::make(&args.options(), chosen, parts, folder, &mut machine, &mut shown);
    shown.clear();
    made
}

/// Progress: which run of how many, time over and to go, what can be said so far.
struct Shown {
    quiet: bool,
    terminal: bool,
    last: Instant,
    /// Who else is told.
    program: Option<File>,
    /// Which run that was told of, and when.
    told: Option<(usize, Instant)>,
}

impl Progress for Shown {
    fn refused(&mut self, part: &str, why: &str) {
        if !self.quiet {
            say::note(&format!("{part}: cannot be made here: {why}"));
        }
    }

    fn begins(&mut self, ahead: &Ahead<'_>) {
        if !self.quiet {
            say::note(&ahead.to_string());
        }
    }

    fn tick(&mut self, now: &Now<'_>, follow: &mut Follow) {
        self.tell(now);
        let every = if self.terminal { REDRAW_EVERY } else { LINE_EVERY };
        if self.quiet || self.last.elapsed() < every {
            return;
        }
        self.last = Instant::now();
        follow.look();
        let text = now.text(follow.so_far());
        if self.terminal {
            let width = tailbound_sys::terminal::size(&io::stderr()).map_or(80, |(c, _)| c);
            let line: String = text.chars().take(width.saturating_sub(1)).collect();
            crate::say::redraw(&line);
        } else {
            say::note(&text);
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

impl Shown {
    /// Tells a program; one that does not listen any more is told nothing.
    fn tell(&mut self, now: &Now<'_>) {
        let Some(program) = &mut self.program else { return };
        if self.told.is_some_and(|(at, when)| at == now.at && when.elapsed() < TELL_EVERY) {
            return;
        }
        self.told = Some((now.at, Instant::now()));
        if writeln!(program, "{}", now.json()).is_err() {
            self.program = None;
        }
    }

    fn note(&self, text: &str) {
        if !self.quiet {
            self.clear();
            say::note(text);
        }
    }

    fn clear(&self) {
        if self.terminal && !self.quiet {
            crate::say::redraw("");
        }
    }
}
