// SPDX-License-Identifier: MIT OR Apache-2.0
//! The runs of a campaign on this machine: what is shown while they are made.
//!
//! Not here: which runs are made, and in which order (`tailbound_series::campaign`).

use std::fs::File;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tailbound_core::campaign::Part;
use tailbound_core::units::{format_ns_i64, format_span, grouped};
use tailbound_series::campaign::{
    self as series, Ahead, CampaignEnd, Chosen, Folder, Follow, Now, Progress, SoFar,
};

use super::options;
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
    let made = series::make(&options(args), chosen, parts, folder, &mut machine, &mut shown);
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
        let there = match ahead.kept {
            0 => String::new(),
            kept => format!("{kept} runs are complete already; "),
        };
        let and = match ahead.benchmarks {
            0 => String::new(),
            n => format!(", and what {n} benchmarks take"),
        };
        if !self.quiet {
            say::note(&format!(
                "{there}{} to be made, about {}{and}; {}",
                ahead.open,
                format_span(ahead.left_ns),
                ahead.folder.display()
            ));
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
        let whole = |ns: i64| format_span(ns / 1_000_000_000 * 1_000_000_000);
        let so_far = follow.so_far().map_or_else(String::new, |s| format!("; so far {}", fell(s)));
        let text = format!(
            "{}: {} elapsed, about {} left{so_far}",
            which(now),
            whole(now.elapsed_ns),
            whole(now.left_ns)
        );
        if self.terminal {
            let width = tailbound_sys::terminal::size(&io::stderr()).map_or(80, |(c, _)| c);
            let line: String = text.chars().take(width.saturating_sub(1)).collect();
            crate::say::redraw(&line);
        } else {
            say::note(&text);
        }
    }

    fn done(&mut self, now: &Now<'_>, so_far: Option<SoFar>) {
        let text = so_far.map_or_else(|| "its benchmarks are timed".to_owned(), fell);
        self.note(&format!("{}: {text}", which(now)));
    }

    fn failed(&mut self, part: &str, why: &str) {
        self.note(&format!("{part}: failed: {why}"));
    }
}

fn which(now: &Now<'_>) -> String {
    format!("run {} of {}, {}", now.at + 1, now.of, now.part)
}

/// `12,000 fell due, none later than 83.4 µs`
fn fell(so_far: SoFar) -> String {
    format!("{} fell due, none later than {}", grouped(so_far.due), format_ns_i64(so_far.max_ns))
}

impl Shown {
    /// Tells a program; one that does not listen any more is told nothing.
    fn tell(&mut self, now: &Now<'_>) {
        let Some(program) = &mut self.program else { return };
        if self.told.is_some_and(|(at, when)| at == now.at && when.elapsed() < TELL_EVERY) {
            return;
        }
        self.told = Some((now.at, Instant::now()));
        let s = |ns: i64| u64::try_from(ns / 1_000_000_000).unwrap_or(0);
        let line = serde_json::json!({"part": now.part, "at": now.at + 1, "of": now.of,
            "elapsed_s": s(now.elapsed_ns), "left_s": s(now.left_ns)});
        if writeln!(program, "{line}").is_err() {
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
