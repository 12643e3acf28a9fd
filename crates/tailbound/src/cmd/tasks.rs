// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tasks`: threads as tasks, the bounds of their response times, and what would change.

use std::path::Path;
use std::process::ExitCode;

use tailbound_core::tasks::{Model, TaskRecord, parse};
use tailbound_host::Root;
use tailbound_record::looks::Looks;
use tailbound_record::progress_line::ProgressLine;
use tailbound_report::tasks::{self as words, TaskReport};
use tailbound_run::watch::{WatchedProcess, WatchedRun, watch_process};
use tailbound_stats::tasks::{Change, analyse, deadline, of_run};

use super::latency_bound;
use crate::cli_process::Subject;
use crate::cli_tasks::TasksArgs;
use crate::flags;
use crate::input;
use crate::say::{self, Failure, Form};

/// Lines of a run that are not about tasks.
const UNUSED: [&str; 6] = ["window", "block", "raw", "load", "second", "exceedance"];

/// `tailbound response`
pub(crate) fn tasks(args: &TasksArgs) -> Result<ExitCode, Failure> {
    let changes: Vec<Change> = (args.what_if.iter())
        .map(|text| text.parse().map_err(flags::refused("--what-if")))
        .collect::<Result<_, _>>()?;
    let latency = args.latency_bound.as_deref().map(|text| latency_bound::read(text, None));
    let latency = latency.transpose()?;
    let (name, mut model, records) = match args.process.subject(args.target.as_deref()) {
        Subject::Process(typed) => watched(args, typed)?,
        Subject::File(path) => read(path)?,
    };
    if let Some(latency) = &latency {
        model = model.with_latency_bound(latency.ns);
    }
    let mut then = model.clone();
    for change in &changes {
        change.apply(&mut then).map_err(flags::refused("--what-if"))?;
    }
    for text in &args.deadline {
        deadline(text, &mut model, &mut then).map_err(flags::refused("--deadline"))?;
    }
    let answer = analyse(&model);
    let after = (!changes.is_empty()).then(|| analyse(&then));
    let told = TaskReport {
        name,
        model: &model,
        answer: &answer,
        records: &records,
        what_if: after.as_ref().map(|a| (changes.iter().map(ToString::to_string).collect(), a)),
        latency,
    };
    Form::of(args.json, args.color.when)
        .answer(|| words::json(&told), |style| words::text(&told, style))?;
    // With a change the question was about what it leads to.
    let outcome = after.as_ref().unwrap_or(&answer).outcome();
    Ok(ExitCode::from(outcome.exit_status()))
}

type Tasks = (String, Model, Vec<TaskRecord>);

/// The real-time threads of a process, which is watched for a while.
fn watched(args: &TasksArgs, typed: Option<u32>) -> Result<Tasks, Failure> {
    let length = flags::length(args.duration.as_deref().unwrap_or("10s"))?;
    let root = Root::real();
    let pid = args.process.find_one(&root, typed)?;
    let looks = Looks::begin(Some(length)).map_err(Failure::cannot)?;
    let exe = std::env::current_exe().map_err(Failure::cannot)?;
    let mut line = ProgressLine::new(say::progress(false));
    let target = WatchedProcess { pid, comm: &args.process.comm };
    let ended = watch_process(root, &exe, target, looks, &mut line);
    drop(line);
    let WatchedRun { run, notes, .. } = ended.map_err(super::watch::failure)?;
    notes.iter().for_each(|text| say::note(text));
    if run.tasks.is_empty() {
        let why = format!(
            "process {pid}: no thread of it had a cycle to the end: watch it for longer (-D), or name ordinary threads (--comm)"
        );
        return Err(Failure::cannot(why));
    }
    Ok((format!("process {pid}"), of_run(&run), run.tasks))
}

fn read(path: &Path) -> Result<Tasks, Failure> {
    let name = input::name(path);
    if path.extension().is_some_and(|e| e == "toml") {
        let bytes = input::bytes(path)?;
        let text = String::from_utf8_lossy(&bytes);
        let model = parse(&text).map_err(|e| Failure::usage(format!("{}: {e}", path.display())))?;
        return Ok((name, model, Vec::new()));
    }
    let run = input::run_without(path, &UNUSED)?;
    if run.tasks.is_empty() {
        return Err(Failure::usage(format!(
            "{}: no thread was watched in this run: `tailbound watch -o FILE` makes one with them, or write a model by \
             hand (docs/tasks.md)",
            path.display()
        )));
    }
    Ok((name, of_run(&run), run.tasks))
}
