// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tasks`: threads as tasks, the bounds of their response times, and what would change.

use std::path::Path;
use std::process::ExitCode;

use tailbound_core::tasks::{Model, TaskRecord, parse};
use tailbound_core::units::parse_ns;
use tailbound_report::tasks::{self as words, TaskReport};
use tailbound_stats::tasks::{Change, analyse, named};

use super::latency_bound;
use crate::cli_tasks::TasksArgs;
use crate::input;
use crate::say::{self, Failure};

/// Lines of a run that are not about tasks.
const UNUSED: [&str; 6] = ["window", "block", "raw", "load", "second", "exceedance"];

/// `tailbound response`
pub(crate) fn tasks(args: &TasksArgs) -> Result<ExitCode, Failure> {
    let changes: Vec<Change> = (args.what_if.iter())
        .map(|text| text.parse().map_err(|e| Failure::usage(format!("--what-if: {e}"))))
        .collect::<Result<_, _>>()?;
    let latency = args.latency_bound.as_deref().map(|text| latency_bound::read(text, None));
    let latency = latency.transpose()?;
    let (mut model, records) = read(&args.file)?;
    if let Some(latency) = &latency {
        model = model.with_latency_bound(latency.ns);
    }
    let mut then = model.clone();
    for change in &changes {
        change.apply(&mut then).map_err(|e| Failure::usage(format!("--what-if: {e}")))?;
    }
    for text in &args.deadline {
        deadline(text, &mut model, &mut then)?;
    }
    let answer = analyse(&model);
    let after = (!changes.is_empty()).then(|| analyse(&then));
    let told = TaskReport {
        name: input::name(&args.file),
        model: &model,
        answer: &answer,
        records: &records,
        what_if: after.as_ref().map(|a| (changes.iter().map(ToString::to_string).collect(), a)),
        latency,
    };
    if args.json {
        say::answer_json(&words::json(&told))?;
    } else {
        let style = say::style(&args.color.when);
        say::answer_in(&words::text(&told, style), style)?;
    }
    // With a change the question was about what it leads to.
    let outcome = after.as_ref().unwrap_or(&answer).outcome();
    Ok(ExitCode::from(outcome.exit_status()))
}

fn read(path: &Path) -> Result<(Model, Vec<TaskRecord>), Failure> {
    if path.extension().is_some_and(|e| e == "toml") {
        let bytes = input::bytes(path)?;
        let text = String::from_utf8_lossy(&bytes);
        let model = parse(&text).map_err(|e| Failure::usage(format!("{}: {e}", path.display())))?;
        return Ok((model, Vec::new()));
    }
    let run = input::run_without(path, &UNUSED)?;
    if run.tasks.is_empty() {
        return Err(Failure::usage(format!(
            "{}: no thread was watched in this run: `tailbound watch -o FILE` makes one with them, or write a model by \
             hand (docs/tasks.md)",
            path.display()
        )));
    }
    let mut model = Model::of(&run.tasks);
    // What the threads were held against when they were watched; --deadline goes before it.
    for (task, record) in model.tasks.iter_mut().zip(&run.tasks) {
        let watched = run.cycles.iter().find(|c| c.thread == record.thread);
        task.deadline_ns = watched.and_then(|c| c.deadline_ns);
        task.own_execution_ns = watched.and_then(|c| c.execution.max_ns);
    }
    Ok((model, run.tasks))
}

/// `NAME=TIME`, in the model as it is and as it would be; an added thread is only in the latter.
fn deadline(text: &str, model: &mut Model, then: &mut Model) -> Result<(), Failure> {
    let wrong = |why: &dyn std::fmt::Display| Failure::usage(format!("--deadline: {why}"));
    let (name, time) =
        text.rsplit_once('=').ok_or_else(|| wrong(&format!("`{text}` is not NAME=TIME")))?;
    let ns = parse_ns(time).map_err(|e| wrong(&e))?;
    if ns <= 0 {
        return Err(wrong(&format!("{time} is not above zero")));
    }
    named(then, name).map_err(|e| wrong(&e))?.deadline_ns = Some(ns);
    if let Ok(task) = named(model, name) {
        task.deadline_ns = Some(ns);
    }
    Ok(())
}
