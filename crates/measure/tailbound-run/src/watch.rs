// SPDX-License-Identifier: MIT OR Apache-2.0
//! Watches a program and makes a run of it.
//!
//! Not here: the watching itself (`tailbound_record::watch_session`), the records (`watched`).

use std::path::Path;
use std::process::ExitStatus;

use tailbound_core::Run;
use tailbound_core::record::{Clocks, Facts};
use tailbound_host::{Root, is_virtual_machine};
use tailbound_record::RecordError;
use tailbound_record::looks::{LookProgress, Looks};
use tailbound_record::watch_session::{self, ThreadJobs, WatchRequest};
use tailbound_sys::{calls, clock};

use crate::watched::{About, run_of, without_cycles};
use crate::watched_tasks::TaskModels;

/// What is known of the machine and of this program.
#[derive(Clone, Debug)]
pub struct WatchGround {
    /// The command line of this program.
    pub command: Vec<String>,
    /// The machine.
    pub machine: Facts,
    /// What the clocks read when it began.
    pub began: Clocks,
}

impl WatchGround {
    /// This machine, now.
    #[must_use]
    pub fn here(root: &Root) -> Self {
        let command = std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect();
        let machine = tailbound_host::inventory(root);
        Self { command, machine, began: clocks() }
    }
}

/// A program that was watched.
#[derive(Debug)]
pub struct WatchedRun {
    /// Its run, judged.
    pub run: Run,
    /// What a reader must know.
    pub notes: Vec<String>,
    /// Events that were looked at.
    pub events: u64,
    /// What recording one event costs, where it could be measured.
    pub event_ns: Option<i64>,
    /// How the program ended that was started here.
    pub status: Option<ExitStatus>,
}

/// What the clocks read now.
fn clocks() -> Clocks {
    Clocks {
        monotonic_ns: clock::now_ns(clock::CLOCK_MONOTONIC),
        boottime_ns: clock::now_ns(clock::CLOCK_BOOTTIME),
        realtime_ns: clock::now_ns(clock::CLOCK_REALTIME),
    }
}

/// A process whose threads are watched.
#[derive(Clone, Copy, Debug)]
pub struct WatchedProcess<'a> {
    /// Its number.
    pub pid: u32,
    /// The names of its threads; without them, its real-time threads.
    pub comm: &'a [String],
}

/// Watches threads of `process`, and holds them against nothing.
///
/// # Errors
/// [`RecordError`]; nothing is left behind then.
pub fn watch_process(
    root: Root,
    exe: &Path,
    process: WatchedProcess<'_>,
    looks: Looks,
    progress: &mut dyn LookProgress,
) -> Result<WatchedRun, RecordError> {
    let ground = WatchGround::here(&root);
    let calls = calls::names();
    let begin_ns = ground.began.monotonic_ns;
    let machine = is_virtual_machine(&ground.machine);
    let request = WatchRequest::of_process(process.pid, process.comm, &calls, machine, begin_ns);
    watch(root, exe, request, looks, ground, progress)
}

/// Watches. `exe trace-guard` removes the trace if this process is killed.
///
/// # Errors
/// [`RecordError`]; nothing is left behind then.
pub fn watch(
    root: Root,
    exe: &Path,
    request: WatchRequest<'_>,
    looks: Looks,
    ground: WatchGround,
    progress: &mut dyn LookProgress,
) -> Result<WatchedRun, RecordError> {
    let mut tasks = TaskModels::new(request.begin_ns);
    let (name, deadline_ns) = (request.name.clone(), request.wish.deadline_ns);
    let jobs = &mut |taken: ThreadJobs| tasks.jobs(taken);
    let end = watch_session::watch(root, exe, request, looks, progress, jobs)?;
    let WatchGround { command, machine, began } = ground;
    let (event_ns, events) = (end.event_ns, end.outcome.events);
    let about = About {
        command,
        name,
        machine,
        began,
        measured_ns: end.measured_ns,
        reason: end.reason,
        deadline_ns,
        event_ns,
        violations: end.violations,
    };
    let mut notes = end.notes;
    notes.extend(without_cycles(&end.outcome));
    let run = run_of(end.outcome, about, tasks);
    Ok(WatchedRun { run, notes, events, event_ns, status: end.status })
}
