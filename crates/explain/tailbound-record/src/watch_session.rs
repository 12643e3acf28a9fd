// SPDX-License-Identifier: MIT OR Apache-2.0
//! Watches the cycles of a program from its start, or from now, to its end: the program is started, its threads are looked at
//! and the events taken, until it or the time is over.
//!
//! Units: ns.
//! A program that is started here gets Ctrl-C from its terminal as it would from a shell; a
//! signal that was sent to this program alone is handed on to it. A process that was there before is
//! never stopped or changed.
//! Not here: the records as a run (`tailbound-run`).

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tailbound_core::EndReason;
use tailbound_core::rules::ViolationRecord;
use tailbound_core::tasks::Job;
use tailbound_core::units::{format_ns_i64, grouped};
use tailbound_host::Root;
use tailbound_sys::environment::Environment;
use tailbound_sys::process::{self, Pid};
use tailbound_sys::spawn::Spawn;
use tailbound_sys::{clock, program};
use tailbound_trace::blame::Ground;
use tailbound_trace::cycle::{Calls, Cycles, Wish};

use crate::error::RecordError;
use crate::looks::{LookProgress, Looks, Next};
use crate::recording::{Recording, SystemCalls};
use crate::rules::{RuleCheck, RulesFound, WithRules};
use crate::watch::{Target, ThreadListing, WatchEnd, Watching};
use crate::watched::WatchOutcome;

/// Looks from one look at the threads to the next; for the first seconds of a program each one.
const THREADS_EVERY: u32 = 5;
const YOUNG: u32 = 30;
/// How long a program may take to end after Ctrl-C.
const PATIENCE: Duration = Duration::from_secs(5);
/// Most threads of a line of progress.
const SHOWN: usize = 3;

/// The longest cycles that are kept of each thread where nobody says how many.
const WORST: usize = 10;

/// What is to be watched, and how.
pub struct WatchRequest<'a> {
    /// The threads; without a process the program of `command` is started.
    pub target: Target,
    /// The program and its arguments.
    pub command: &'a [OsString],
    /// What is watched, for people.
    pub name: String,
    /// System calls of this architecture.
    pub calls: &'a [(i64, &'static str)],
    /// What is known of the cycles.
    pub wish: Wish,
    /// Load no programs into the kernel.
    pub plain: bool,
    /// Is a hypervisor beneath?
    pub virtual_machine: Option<bool>,
    /// The check of rules, where it is wanted.
    pub rules: Option<RuleCheck>,
    /// When it began, on the trace's clock.
    pub begin_ns: i64,
}

impl<'a> WatchRequest<'a> {
    /// The real-time threads of the process `pid`, or its threads of these names, held against nothing.
    #[must_use]
    pub fn of_process(
        pid: u32,
        comm: &[String],
        calls: &'a [(i64, &'static str)],
        virtual_machine: Option<bool>,
        begin_ns: i64,
    ) -> Self {
        let (comm, realtime) = (comm.to_vec(), comm.is_empty());
        Self {
            target: Target { pid: Some(pid), descendants: true, comm, realtime },
            command: &[],
            name: format!("process {pid}"),
            calls,
            wish: Wish { worst: WORST, ..Wish::default() },
            plain: false,
            virtual_machine,
            rules: None,
            begin_ns,
        }
    }
}

/// What watching came to.
#[derive(Debug)]
pub struct WatchSessionEnd {
    /// The threads and the recording.
    pub outcome: WatchOutcome,
    /// What ended it.
    pub reason: EndReason,
    /// What a reader must know.
    pub notes: Vec<String>,
    /// How the program ended that was started here.
    pub status: Option<ExitStatus>,
    /// How long it took.
    pub measured_ns: i64,
    /// What recording one event costs, where it could be measured.
    pub event_ns: Option<i64>,
    /// Rules that were broken.
    pub violations: Vec<ViolationRecord>,
}

/// A program that was started here, and how it ended.
struct Started {
    pid: Pid,
    ended: Option<ExitStatus>,
}

/// What ended the looks.
struct Ended {
    reason: EndReason,
    notes: Vec<String>,
}

/// Jobs of threads, as [`Cycles::take_jobs`] hands them out.
pub type ThreadJobs = Vec<(i32, Option<Job>)>;

/// Watches. `exe trace-guard` removes the trace if this process is killed. `jobs` gets the jobs of the threads on the way, so
/// that they need not be kept.
///
/// # Errors
/// [`RecordError`]: no recording here, or a program that cannot be started. Nothing is left behind then.
pub fn watch(
    root: Root,
    exe: &Path,
    request: WatchRequest<'_>,
    looks: Looks,
    progress: &mut dyn LookProgress,
    jobs: &mut dyn FnMut(ThreadJobs),
) -> Result<WatchSessionEnd, RecordError> {
    let WatchRequest { target, command, name, calls, wish, plain, virtual_machine, .. } = request;
    let (rules, begin_ns) = (request.rules, request.begin_ns);
    let starts = target.pid.is_none();
    let origin_ns = begin_ns.max(0).cast_unsigned();
    let make = |recording: &Recording| {
        let event_ns = recording.event_ns().unwrap_or(0);
        let ground = Ground { virtual_machine, event_ns, ..Ground::default() };
        let calls = Arc::new(Calls::new(calls));
        let wish = Wish { begin_ns: origin_ns, ..wish };
        WithRules { inner: Cycles::new(recording.symbols(), calls, ground, wish), rules }
    };
    let mut watching = Watching::begin(root, exe, target, SystemCalls::Recorded, make)?;
    if !plain {
        watching.with_stacks();
    }
    let mut started = match starts {
        true => Some(start(command, &mut watching)?),
        false => None,
    };
    if let Some(started) = &started {
        watching.started(started.pid.0.unsigned_abs());
    }
    let ended = follow(&name, &mut watching, &mut started, looks, progress, jobs);
    let event_ns = watching.event_ns();
    let measured_ns = clock::now_ns(clock::CLOCK_MONOTONIC).saturating_sub(begin_ns);
    let WatchEnd { sink, known, recorded } = watching.end(&mut |_| {});
    let broken = sink.rules.map(RuleCheck::finish);
    let RulesFound { records: violations, notes: unjudged } = broken.unwrap_or_default();
    let outcome = WatchOutcome::of(WatchEnd { sink: sink.inner, known, recorded }, origin_ns);
    let mut notes = ended.notes;
    notes.extend(outcome.recorded.notes.iter().cloned());
    notes.extend(unjudged);
    Ok(WatchSessionEnd {
        outcome,
        reason: ended.reason,
        notes,
        status: started.and_then(|s| s.ended),
        measured_ns,
        event_ns,
        violations,
    })
}

/// The file of a program that is named as a shell would have it.
fn program_file(program: &OsString) -> Result<PathBuf, RecordError> {
    let path = Path::new(program);
    if path.components().count() > 1 || program.as_encoded_bytes().contains(&b'/') {
        return Ok(path.to_owned());
    }
    program::find(&program.to_string_lossy()).map_err(RecordError::NotFound)
}

/// Starts the program as a shell would have, in a thread whose children are recorded from their first instruction on.
fn start(
    command: &[OsString],
    watching: &mut Watching<WithRules<Cycles>>,
) -> Result<Started, RecordError> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(RecordError::NoProgram);
    };
    let program = program_file(program)?;
    let spawn = Spawn {
        program: &program,
        arguments,
        descriptors: &[],
        pid_namespace: false,
        new_session: false,
        death_signal: 0,
        cpus: &[],
        environment: Environment::Untouched,
    };
    let pid = spawn.start_in_thread(|tid| watching.starts_in(tid));
    let pid = pid.ok_or(RecordError::Starter)?;
    let pid = pid.map_err(|source| RecordError::Start { program, source })?;
    Ok(Started { pid, ended: None })
}

/// Until the program or the time is over, or somebody ends it.
fn follow(
    name: &str,
    watching: &mut Watching<WithRules<Cycles>>,
    started: &mut Option<Started>,
    mut looks: Looks,
    progress: &mut dyn LookProgress,
    jobs: &mut dyn FnMut(ThreadJobs),
) -> Ended {
    looks.start();
    let mut notes = Vec::new();
    let mut asked: Option<Instant> = None;
    let mut reason = EndReason::Complete;
    for look in 1u32.. {
        let next = looks.next();
        if let Next::Signal { number, by_terminal } = next {
            // Without a length the person says when it is over.
            if looks.is_limited() {
                reason = EndReason::Interrupted;
            }
            let child = started.as_ref().filter(|s| s.ended.is_none());
            match child {
                Some(child) if asked.is_none() => {
                    if !by_terminal {
                        drop(process::kill(child.pid, number));
                    }
                    asked = Some(Instant::now());
                }
                _ => break,
            }
        }
        watching.poll(&mut |_| {});
        watching.take_stacks();
        jobs(watching.so_far_mut().inner.take_jobs());
        if let Some(child) = started
            && let Ok(Some(status)) = process::try_wait(child.pid)
        {
            child.ended = Some(status);
            notes.push(format!("{name} ended: {}", process::ended(status)));
            break;
        }
        if asked.is_some_and(|t| t.elapsed() > PATIENCE) {
            notes.push(format!("{name} goes on: it did not end when asked to"));
            break;
        }
        if matches!(next, Next::Over) {
            if started.is_some() {
                notes.push(format!("{name} goes on"));
            }
            break;
        }
        if (look < YOUNG || look.is_multiple_of(THREADS_EVERY)) && !watching.look() {
            notes.push(format!("{name} ended"));
            break;
        }
        looks.tell(progress, &mut || line(watching));
    }
    Ended { reason, notes }
}

/// How far it is.
fn line(watching: &Watching<WithRules<Cycles>>) -> String {
    let of = |(tid, k): (&i32, &ThreadListing)| {
        let (cycles, longest, told) = watching.so_far().inner.so_far(*tid)?;
        let words = match longest.filter(|_| told) {
            Some(ns) => format!("{} cycles, longest {}", grouped(cycles), format_ns_i64(ns)),
            None => "looking for its rhythm".to_owned(),
        };
        Some(format!("{}: {words}", k.name))
    };
    let followed = watching.known().iter().filter(|(_, k)| k.followed);
    let mut threads: Vec<String> = followed.filter_map(of).collect();
    let more = threads.len().saturating_sub(SHOWN);
    threads.truncate(SHOWN);
    if more > 0 {
        threads.push(format!("{more} more threads"));
    }
    if threads.is_empty() {
        threads.push("no thread to follow yet".to_owned());
    }
    if let Some(rules) = &watching.so_far().rules {
        threads.push(format!("rules broken {} times", grouped(rules.n())));
    }
    threads.join("; ")
}

#[cfg(test)]
mod tests {
    use tailbound_core::FailureKind;

    use super::*;

    #[test]
    fn a_program_with_a_slash_is_a_path_and_another_is_looked_for() {
        assert_eq!(program_file(&"./x".into()).expect("a path"), Path::new("./x"));
        let e = program_file(&"no-such-program-anywhere".into()).expect_err("nowhere");
        assert_eq!(e.kind(), FailureKind::Usage);
        assert!(e.to_string().ends_with("write its path if it lies in no folder of PATH"), "{e}");
    }
}
