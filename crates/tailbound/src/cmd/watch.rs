// SPDX-License-Identifier: MIT OR Apache-2.0
//! `watch`: the cycles of a program's own real-time threads.
//!
//! A program that is started here gets Ctrl-C from its terminal as it would from a shell; a
//! signal that was sent to this program alone is handed on to it. A process that was there before is
//! never stopped or changed.

use std::path::Path;
use std::process::{ExitCode, ExitStatus};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tailbound_core::record::Clocks;
use tailbound_core::units::{format_ns_i64, grouped, parse_ns};
use tailbound_core::{EndReason, runfile};
use tailbound_host::Root;
use tailbound_record::recording::Recording;
use tailbound_record::rules::{RuleCheck, RulesFound, WithRules};
use tailbound_record::watch::{Target, ThreadListing, WatchEnd, Watching};
use tailbound_record::watched::WatchOutcome;
use tailbound_report::cycles::{self as words, CommandEnd, WatchAnswer, WatchQuestions};
use tailbound_run::watched::{About, run_of, without_cycles};
use tailbound_run::watched_tasks::TaskModels;
use tailbound_sys::environment::Environment;
use tailbound_sys::process::Pid;
use tailbound_sys::spawn::Spawn;
use tailbound_sys::{calls, clock, process, program};
use tailbound_trace::blame::Ground;
use tailbound_trace::cycle::{Calls, Cycles, Wish};

use super::blame::virtual_machine;
use super::latency_bound;
use crate::cli_watch::WatchArgs;
use crate::input;
use crate::looking::{self, Looking, Next};
use crate::say::{self, Failure};

/// Looks from one look at the threads to the next; for the first seconds of a program each one.
const THREADS_EVERY: u32 = 5;
const YOUNG: u32 = 30;
/// How long a program may take to end after Ctrl-C.
const PATIENCE: Duration = Duration::from_secs(5);
/// Most longest cycles of a thread.
const KEEP_MAX: usize = 1000;

/// A program that was started here, and how it ended.
struct Started {
    pid: Pid,
    ended: Option<ExitStatus>,
}

/// What ended the watching.
struct Ended {
    reason: EndReason,
    notes: Vec<String>,
    status: Option<ExitStatus>,
}

fn time(flag: &str, text: Option<&String>) -> Result<Option<i64>, Failure> {
    let Some(text) = text else { return Ok(None) };
    let ns = parse_ns(text).map_err(|e| Failure::usage(format!("{flag}: {e}")))?;
    if ns <= 0 {
        return Err(Failure::usage(format!("{flag}: {text} is not above zero")));
    }
    Ok(Some(ns))
}

fn wish(args: &WatchArgs, names: &[(i64, &'static str)]) -> Result<Wish, Failure> {
    if args.keep == 0 || args.keep > KEEP_MAX {
        return Err(Failure::usage(format!("--keep: {} is not 1 to {KEEP_MAX}", args.keep)));
    }
    if let Some(call) = &args.activation
        && !names.iter().any(|(_, name)| name == call)
    {
        let hint = tailbound_core::words::did_you_mean(call, names.iter().map(|(_, n)| *n));
        return Err(Failure::usage(format!("--activation: `{call}` is no system call{hint}")));
    }
    Ok(Wish {
        period_ns: time("--period", args.period.as_ref())?,
        deadline_ns: time("--deadline", args.deadline.as_ref())?,
        activation: args.activation.clone(),
        begin_ns: 0,
        worst: args.keep,
    })
}

/// `tailbound watch`
pub(crate) fn watch(args: &WatchArgs) -> Result<ExitCode, Failure> {
    let names = calls::names();
    let wish = wish(args, &names)?;
    let duration = args.duration.as_deref().map(looking::length).transpose()?;
    for file in args.html.iter().chain(&args.out) {
        input::may_write(file, args.force)?;
    }
    let root = Root::real();
    if let Some(pid) = args.pid
        && !root.exists(&format!("/proc/{pid}"))
    {
        return Err(Failure::usage(format!("--pid: there is no process {pid}")));
    }
    let release = root.text("/proc/sys/kernel/osrelease").map(|r| r.trim().to_owned()).ok();
    let latency = args.latency_bound.as_deref();
    let latency = latency.map(|text| latency_bound::read(text, release.as_deref())).transpose()?;
    let looking = Looking::begin(duration)?;
    let machine = tailbound_host::inventory(&root);
    let virtual_machine = virtual_machine(&machine);
    let target = Target {
        pid: args.pid,
        descendants: true,
        comm: args.comm.clone(),
        realtime: !args.all && args.comm.is_empty(),
    };
    let exe = std::env::current_exe().map_err(Failure::cannot)?;
    let began = clocks();
    let rules = check(args, &root, began.monotonic_ns)?;
    let make = |recording: &Recording| {
        let event_ns = recording.event_ns().unwrap_or(0);
        let ground = Ground { virtual_machine, event_ns, ..Ground::default() };
        let begin_ns = began.monotonic_ns.max(0).cast_unsigned();
        let calls = Arc::new(Calls::new(&names));
        let wish = Wish { begin_ns, ..wish.clone() };
        WithRules { inner: Cycles::new(recording.symbols(), calls, ground, wish), rules }
    };
    let mut watching = Watching::begin(root, &exe, target, true, make)
        .map_err(|e| Failure::cannot(format!("watch: {e}")))?;
    if !args.plain {
        watching.with_stacks();
    }
    let mut started = match args.pid {
        None => Some(start(args, &mut watching)?),
        Some(_) => None,
    };
    if let Some(started) = &started {
        watching.started(started.pid.0.unsigned_abs());
    }
    let mut tasks = TaskModels::new(began.monotonic_ns);
    let ended = follow(args, &mut watching, &mut tasks, &mut started, looking);
    let event_ns = watching.event_ns();
    let measured_ns = clock::now_ns(clock::CLOCK_MONOTONIC).saturating_sub(began.monotonic_ns);
    let WatchEnd { sink, known, recorded } = watching.end(&mut |_| {});
    let broken = sink.rules.map(RuleCheck::finish);
    let RulesFound { records: violations, notes: unjudged } = broken.unwrap_or_default();
    let end = WatchEnd { sink: sink.inner, known, recorded };
    let watched = WatchOutcome::of(end, began.monotonic_ns.max(0).cast_unsigned());
    let mut notes = ended.notes;
    notes.extend(watched.recorded.notes.iter().cloned());
    notes.extend(unjudged);
    let events = watched.events;
    let about = About {
        command: std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect(),
        name: name(args),
        machine,
        began,
        measured_ns,
        reason: ended.reason,
        deadline_ns: wish.deadline_ns,
        event_ns,
        violations,
    };
    notes.extend(without_cycles(&watched));
    let run = run_of(watched, about, tasks);
    let (deadline_ns, rules) = (wish.deadline_ns, args.rules);
    let asked = WatchQuestions { name: name(args), deadline_ns, rules, latency };
    let command = ended.status.map(command_end);
    tell(args, &WatchAnswer { asked, run: &run, notes: &notes, events, event_ns, command })?;
    let is_judged = wish.deadline_ns.is_some() || !run.violations.is_empty();
    let judged = run.verdict.as_ref().filter(|_| is_judged);
    Ok(ExitCode::from(judged.map_or(0, |v| v.outcome.exit_status())))
}

/// The check of rules, where it is wanted.
fn check(args: &WatchArgs, root: &Root, begin_ns: i64) -> Result<Option<RuleCheck>, Failure> {
    if !args.rules {
        return Ok(None);
    }
    let mut check = RuleCheck::new(root, !args.no_stacks, begin_ns).map_err(Failure::cannot)?;
    if let Some(path) = &args.violations {
        check.with_log(input::growing(path, args.force)?);
    }
    Ok(Some(check))
}

fn clocks() -> Clocks {
    Clocks {
        monotonic_ns: clock::now_ns(clock::CLOCK_MONOTONIC),
        boottime_ns: clock::now_ns(clock::CLOCK_BOOTTIME),
        realtime_ns: clock::now_ns(clock::CLOCK_REALTIME),
    }
}

fn name(args: &WatchArgs) -> String {
    match (args.pid, args.command.first()) {
        (Some(pid), _) => format!("process {pid}"),
        (None, Some(program)) => input::name(Path::new(program)),
        (None, None) => String::new(),
    }
}

/// Starts the program as a shell would have, in a thread whose children are recorded from their first instruction on.
fn start(args: &WatchArgs, watching: &mut Watching<WithRules<Cycles>>) -> Result<Started, Failure> {
    let Some((program, arguments)) = args.command.split_first() else {
        return Err(Failure::usage("no program to watch: write it behind `--`"));
    };
    let path = Path::new(program);
    let found = if path.components().count() > 1 || program.as_encoded_bytes().contains(&b'/') {
        path.to_owned()
    } else {
        let name = program.to_string_lossy();
        program::find(&name).map_err(|e| {
            Failure::usage(format!("{e}; write its path if it lies in no folder of PATH"))
        })?
    };
    let spawn = Spawn {
        program: &found,
        arguments,
        descriptors: &[],
        pid_namespace: false,
        new_session: false,
        death_signal: 0,
        cpus: &[],
        environment: Environment::Untouched,
    };
    let pid = spawn.start_in_thread(|tid| watching.starts_in(tid));
    let pid =
        pid.ok_or_else(|| Failure::cannot("the thread that starts the program has failed"))?;
    let pid = pid.map_err(|e| Failure::usage(format!("{}: {e}", found.display())))?;
    Ok(Started { pid, ended: None })
}

/// Until the program or the time is over, or somebody ends it.
fn follow(
    args: &WatchArgs,
    watching: &mut Watching<WithRules<Cycles>>,
    tasks: &mut TaskModels,
    started: &mut Option<Started>,
    mut looking: Looking,
) -> Ended {
    looking.start();
    let mut notes = Vec::new();
    let mut asked: Option<Instant> = None;
    let mut reason = EndReason::Complete;
    for look in 1u32.. {
        let next = looking.wait();
        if let Next::Signal(signal, by_terminal) = next {
            // Without a length the person says when it is over.
            if args.duration.is_some() {
                reason = EndReason::Interrupted;
            }
            let child = started.as_ref().filter(|s| s.ended.is_none());
            match child {
                Some(child) if asked.is_none() => {
                    if !by_terminal {
                        drop(process::kill(child.pid, signal));
                    }
                    asked = Some(Instant::now());
                }
                _ => break,
            }
        }
        watching.poll(&mut |_| {});
        watching.take_stacks();
        tasks.jobs(watching.so_far_mut().inner.take_jobs());
        if let Some(child) = started
            && let Ok(Some(status)) = process::try_wait(child.pid)
        {
            child.ended = Some(status);
            notes.push(format!("{} ended: {}", name(args), process::ended(status)));
            break;
        }
        if asked.is_some_and(|t| t.elapsed() > PATIENCE) {
            notes.push(format!("{} goes on: it did not end when asked to", name(args)));
            break;
        }
        if matches!(next, Next::Over) {
            if started.is_some() {
                notes.push(format!("{} goes on", name(args)));
            }
            break;
        }
        if (look < YOUNG || look.is_multiple_of(THREADS_EVERY)) && !watching.look() {
            notes.push(format!("{} ended", name(args)));
            break;
        }
        if !args.quiet {
            looking.say(|| progress(watching));
        }
    }
    Ended { reason, notes, status: started.as_ref().and_then(|s| s.ended) }
}

fn progress(watching: &Watching<WithRules<Cycles>>) -> String {
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
    let more = threads.len().saturating_sub(3);
    threads.truncate(3);
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

fn tell(args: &WatchArgs, told: &WatchAnswer<'_>) -> Result<(), Failure> {
    let run = told.run;
    if let Some(out) = &args.out {
        let mut text = Vec::new();
        runfile::write_run(run, &mut text).map_err(Failure::cannot)?;
        input::write(out, &String::from_utf8_lossy(&text), args.force)?;
    }
    if let Some(page) = &args.html {
        input::write(
            page,
            &words::html(&run.cycles, &run.violations, &told.asked.name),
            args.force,
        )?;
    }
    if args.json {
        return say::answer_json(&told.json());
    }
    let style = say::style(&args.color.when);
    let mut text = told.text(args.worst, style);
    let files = [("Page", &args.html), ("Run file", &args.out)];
    for (what, file) in files.iter().filter_map(|(w, f)| Some((w, f.as_ref()?))) {
        text.push_str(&format!("{what}  {}\n", file.display()));
    }
    say::answer_in(&text, style)
}

fn command_end(status: ExitStatus) -> CommandEnd {
    use std::os::unix::process::ExitStatusExt as _;
    CommandEnd { code: status.code(), signal: status.signal(), text: process::ended(status) }
}
