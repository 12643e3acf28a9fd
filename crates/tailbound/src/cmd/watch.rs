// SPDX-License-Identifier: MIT OR Apache-2.0
//! `watch`: the cycles of a program's own real-time threads.
//!
//! Not here: the watching (`tailbound_record::watch_session`), the run that is made of it (`tailbound_run::watch`).

use std::ffi::OsString;
use std::path::Path;
use std::process::{ExitCode, ExitStatus};

use tailbound_core::blame::KernelKind;
use tailbound_core::runfile;
use tailbound_host::{Root, is_virtual_machine};
use tailbound_record::RecordError;
use tailbound_record::looks::Looks;
use tailbound_record::progress_line::ProgressLine;
use tailbound_record::rules::{RuleCheck, UserStacks};
use tailbound_record::watch::Target;
use tailbound_record::watch_session::WatchRequest;
use tailbound_report::cycles::{self as words, CommandEnd, WatchAnswer, WatchQuestions};
use tailbound_run::watch::{WatchGround, WatchedRun};
use tailbound_sys::{calls, process};
use tailbound_trace::cycle::Wish;

use super::latency_bound;
use crate::cli_watch::WatchArgs;
use crate::flags;
use crate::input::{self, Existing};
use crate::say::{self, Failure};

/// Most longest cycles of a thread.
const KEEP_MAX: usize = 1000;

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
    let time = |flag, text: &Option<String>| {
        text.as_deref().map(|text| flags::positive_time(flag, text)).transpose()
    };
    Ok(Wish {
        period_ns: time("--period", &args.period)?,
        deadline_ns: time("--deadline", &args.deadline)?,
        activation: args.activation.clone(),
        begin_ns: 0,
        worst: args.keep,
    })
}

/// `tailbound watch`
pub(crate) fn watch(args: &WatchArgs) -> Result<ExitCode, Failure> {
    let calls = calls::names();
    let wish = wish(args, &calls)?;
    let duration = args.duration.as_deref().map(flags::length).transpose()?;
    for file in args.html.iter().chain(&args.out) {
        input::may_write(file, Existing::replaced_if(args.force))?;
    }
    let root = Root::real();
    let pid = match args.command.first() {
        None => args.process.find(&root, args.target)?,
        Some(_) => None,
    };
    let name = name(pid, &args.command);
    let release = root.text("/proc/sys/kernel/osrelease").map(|r| r.trim().to_owned()).ok();
    let latency = args.latency_bound.as_deref();
    let latency = latency.map(|text| latency_bound::read(text, release.as_deref())).transpose()?;
    let looks = Looks::begin(duration).map_err(Failure::cannot)?;
    let exe = std::env::current_exe().map_err(Failure::cannot)?;
    let ground = WatchGround::here(&root);
    let begin_ns = ground.began.monotonic_ns;
    let deadline_ns = wish.deadline_ns;
    let request = WatchRequest {
        target: Target {
            pid,
            descendants: true,
            comm: args.process.comm.clone(),
            realtime: !args.all && args.process.comm.is_empty(),
        },
        command: &args.command,
        name: name.clone(),
        calls: &calls,
        wish,
        plain: args.plain,
        virtual_machine: is_virtual_machine(&ground.machine),
        rules: check(args, &root, begin_ns)?,
        begin_ns,
    };
    let mut line = ProgressLine::new(say::progress(args.quiet));
    let watched = tailbound_run::watch::watch(root, &exe, request, looks, ground, &mut line);
    drop(line);
    let WatchedRun { run, notes, events, event_ns, status } = watched.map_err(failure)?;
    let asked = WatchQuestions { name, deadline_ns, rules: args.rules, latency };
    let command = status.map(command_end);
    tell(args, &WatchAnswer { asked, run: &run, notes: &notes, events, event_ns, command })?;
    let is_judged = deadline_ns.is_some() || !run.violations.is_empty();
    let judged = run.verdict.as_ref().filter(|_| is_judged);
    Ok(ExitCode::from(judged.map_or(0, |v| v.outcome.exit_status())))
}

pub(super) fn failure(e: RecordError) -> Failure {
    match e {
        RecordError::Observe(e) => Failure::cannot(format!("watch: {e}")),
        e => Failure::new(e.kind(), e),
    }
}

/// The check of rules, where it is wanted.
fn check(args: &WatchArgs, root: &Root, begin_ns: i64) -> Result<Option<RuleCheck>, Failure> {
    if !args.rules {
        return Ok(None);
    }
    let stacks = if args.no_stacks { UserStacks::LeftOut } else { UserStacks::Taken };
    let mut check = RuleCheck::new(root, stacks, begin_ns).map_err(Failure::cannot)?;
    if let Some(path) = &args.violations {
        check.with_log(input::growing(path, Existing::replaced_if(args.force))?);
    }
    Ok(Some(check))
}

fn name(pid: Option<u32>, command: &[OsString]) -> String {
    match (pid, command.first()) {
        (Some(pid), _) => format!("process {pid}"),
        (None, Some(program)) => input::name(Path::new(program)),
        (None, None) => String::new(),
    }
}

fn tell(args: &WatchArgs, told: &WatchAnswer<'_>) -> Result<(), Failure> {
    let existing = Existing::replaced_if(args.force);
    let run = told.run;
    if let Some(out) = &args.out {
        let mut text = Vec::new();
        runfile::write_run(run, &mut text).map_err(Failure::cannot)?;
        input::write(out, &String::from_utf8_lossy(&text), existing)?;
    }
    if let Some(page) = &args.html {
        let kernel = KernelKind::of_facts(&run.header.machine);
        let text = words::html(&run.cycles, &run.violations, kernel, &told.asked.name);
        input::write(page, &text, existing)?;
    }
    if args.json {
        return say::answer_json(&told.json());
    }
    let style = say::style(args.color.when);
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
