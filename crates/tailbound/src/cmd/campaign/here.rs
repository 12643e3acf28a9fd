// SPDX-License-Identifier: MIT OR Apache-2.0
//! The runs of a campaign on this machine, each in a process of its own.
//!
//! Context: COLD while a child measures: this process sleeps, and looks ten times a second.

use std::ffi::OsString;
use std::io::{self, IsTerminal as _};
use std::path::Path;
use std::time::{Duration, Instant};

use tailbound_core::campaign::Part;
use tailbound_core::units::format_span;
use tailbound_core::{Plan, plan};
use tailbound_host::Root;
use tailbound_run::{Request, resolve};
use tailbound_sys::signal::Signals;

use super::folder::{self, Folder};
use super::follow::Follow;
use super::shipped::Chosen;
use super::{Ended, words};
use crate::cli_campaign::CampaignRunArgs;
use crate::cmd::rounds::child;
use crate::input;
use crate::say::{self, Failure};

/// What a run takes besides warm-up and measurement.
const OVERHEAD_NS: i64 = 1_000_000_000;
/// From one line to the next, into a pipe and on a terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);
const REDRAW_EVERY: Duration = Duration::from_millis(500);

/// A run to be made.
struct Job<'a> {
    part: &'a Part,
    words: plan::RunConfig,
    plan: Plan,
}

/// Makes every one of `parts` that is not there yet.
pub(super) fn make(
    args: &CampaignRunArgs,
    chosen: &Chosen,
    parts: &[Part],
    folder: &Folder,
) -> Result<Ended, Failure> {
    let name = args.system.clone().map_or_else(release, Ok)?;
    let system = folder.system(&name)?;
    let mut open: Vec<Job<'_>> = Vec::new();
    let (mut kept, mut refused) = (0, Vec::new());
    for part in parts {
        let words = words(args, &chosen.file.name, part, false);
        let request = Request { config: words.clone(), bare: part.only_work, ..Request::default() };
        let plan = match resolve(&request, &Root::real()) {
            Ok(resolved) => resolved.plan,
            Err(e) => {
                refused.push((part, e.to_string()));
                continue;
            }
        };
        match folder::complete(&system, &part.id) {
            Some(run) if same(&run.header.plan, &plan, part) => kept += 1,
            Some(_) if !args.force => {
                return Ok(Ended::taken(format!(
                    "{} holds a run made with different options, such as another --scale: choose another --out, or give --force to make it again",
                    folder::run_file(&system, &part.id).display()
                )));
            }
            _ => open.push(Job { part, words, plan }),
        }
    }
    for (part, why) in &refused {
        folder::keep_failed(&system, &part.id, why)?;
        if !args.host.quiet {
            say::note(&format!("{}: cannot be made here: {why}", part.id));
        }
    }
    let signals = Signals::block_and_open().map_err(Failure::cannot)?;
    let mut shown = Shown::new(args.host.quiet, kept, &open, &system);
    for (at, job) in open.iter().enumerate() {
        shown.next(at, job);
        let ended = one(job, &system, &signals, &mut shown)?;
        if ended {
            shown.clear();
            return Ok(Ended { interrupted: true, taken: None });
        }
    }
    shown.clear();
    Ok(Ended::default())
}

/// Is the run that is there the one that would be made?
fn same(there: &Plan, wanted: &Plan, part: &Part) -> bool {
    if part.only_work { there.work == wanted.work } else { there == wanted }
}

/// Makes one run; `true`: ended by a signal.
fn one(
    job: &Job<'_>,
    system: &Path,
    signals: &Signals,
    shown: &mut Shown,
) -> Result<bool, Failure> {
    let id = &job.part.id;
    folder::forget_failed(system, id);
    let file = folder::run_file(system, id);
    let mut words: Vec<OsString> = if job.part.only_work {
        let benchmarks = job.words.work.iter().flatten().map(OsString::from);
        let repeat = job.plan.work.as_ref().map_or(1, |w| w.repeat).to_string();
        ["measure", "benchmark"]
            .map(OsString::from)
            .into_iter()
            .chain(benchmarks)
            .chain(["--repeat".into(), repeat.into()])
            .collect()
    } else {
        let toml = system.join(format!("{id}.toml"));
        let text = job.words.to_toml().map_err(Failure::cannot)?;
        input::write(&toml, &text, true)?;
        let report = folder::report_file(system, id);
        vec![
            "run".into(),
            "--yes".into(),
            "--config".into(),
            toml.into(),
            "--report".into(),
            report.into(),
        ]
    };
    words.extend(["--quiet", "--force", "--out"].map(OsString::from));
    words.push(file.clone().into_os_string());
    let mut follow = Follow::new(&file);
    let ended = child::run(&words, system, signals, &mut || shown.tick(&mut follow))?;
    let whole = folder::complete(system, id);
    if let (Some(run), true) = (&whole, job.part.only_work) {
        let page = tailbound_report::html(std::slice::from_ref(run), &[input::name(&file)]);
        input::write(&folder::report_file(system, id), &page, true)?;
    }
    if ended.interrupted {
        return Ok(true);
    }
    follow.look();
    match whole {
        Some(_) => shown.done(job, follow.so_far()),
        None => {
            let why = ended.said.trim_start_matches("tailbound: ");
            let why = if why.is_empty() { "it ended without a message" } else { why };
            folder::keep_failed(system, id, why)?;
            shown.note(&format!("{id}: failed: {why}"));
        }
    }
    Ok(false)
}

/// The kernel's release, which tells one system of a machine from another.
fn release() -> Result<String, Failure> {
    std::fs::read_to_string("/proc/sys/kernel/osrelease").map(|t| t.trim().to_owned()).map_err(
        |e| {
            Failure::cannot(format!(
                "/proc/sys/kernel/osrelease: {e}; name this machine with --system"
            ))
        },
    )
}

/// Progress: which run of how many, time over and to go, what can be said so far.
struct Shown {
    quiet: bool,
    terminal: bool,
    begun: Instant,
    last: Instant,
    lengths_ns: Vec<i64>,
    at: usize,
    now: String,
    run_begun: Instant,
}

impl Shown {
    fn new(quiet: bool, kept: usize, open: &[Job<'_>], system: &Path) -> Self {
        let length = |job: &Job<'_>| {
            let own = if job.part.only_work { 0 } else { job.plan.duration_ns() };
            own.saturating_add(job.plan.warm_up_ns).saturating_add(OVERHEAD_NS)
        };
        let lengths_ns: Vec<i64> = open.iter().map(length).collect();
        let shown = Self {
            quiet,
            terminal: io::stderr().is_terminal(),
            begun: Instant::now(),
            last: Instant::now(),
            lengths_ns,
            at: 0,
            now: String::new(),
            run_begun: Instant::now(),
        };
        let there =
            if kept > 0 { format!("{kept} runs are complete already; ") } else { String::new() };
        let benchmarks = open.iter().filter(|j| j.part.only_work).count();
        let and = match benchmarks {
            0 => String::new(),
            n => format!(", and what {n} benchmarks take"),
        };
        if !quiet {
            say::note(&format!(
                "{there}{} to be made, about {}{and}; {}",
                open.len(),
                format_span(shown.left_ns(0)),
                system.display()
            ));
        }
        shown
    }

    fn left_ns(&self, from: usize) -> i64 {
        self.lengths_ns.iter().skip(from).fold(0, |a, b| a.saturating_add(*b))
    }

    fn next(&mut self, at: usize, job: &Job<'_>) {
        (self.at, self.run_begun) = (at, Instant::now());
        self.now = format!("run {} of {}, {}", at + 1, self.lengths_ns.len(), job.part.id);
    }

    fn tick(&mut self, follow: &mut Follow) {
        let every = if self.terminal { REDRAW_EVERY } else { LINE_EVERY };
        if self.quiet || self.last.elapsed() < every {
            return;
        }
        self.last = Instant::now();
        follow.look();
        let over = i64::try_from(self.run_begun.elapsed().as_nanos()).unwrap_or(i64::MAX);
        let left = self.left_ns(self.at).saturating_sub(over).max(self.left_ns(self.at + 1));
        let whole = |ns: i64| format_span(ns / 1_000_000_000 * 1_000_000_000);
        let since = i64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(i64::MAX);
        let so_far = follow.so_far().map_or_else(String::new, |s| format!("; {s}"));
        let text =
            format!("{}: {} elapsed, about {} left{so_far}", self.now, whole(since), whole(left));
        if self.terminal {
            let width = tailbound_sys::terminal::size(&io::stderr()).map_or(80, |(c, _)| c);
            let line: String = text.chars().take(width.saturating_sub(1)).collect();
            crate::say::redraw(&line);
        } else {
            say::note(&text);
        }
    }

    fn done(&mut self, job: &Job<'_>, so_far: Option<String>) {
        let text = match so_far {
            Some(text) => text.trim_start_matches("so far ").to_owned(),
            None => "its benchmarks are timed".to_owned(),
        };
        self.note(&format!(
            "run {} of {}, {}: {text}",
            self.at + 1,
            self.lengths_ns.len(),
            job.part.id
        ));
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
