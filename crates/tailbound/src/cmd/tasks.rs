// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tasks`: threads as tasks, the bounds of their response times, and what would change.

use std::path::Path;
use std::process::ExitCode;

use tailbound_core::tasks::{Model, TaskRecord, parse};
use tailbound_report::tasks::{self as words, TaskReport};
use tailbound_stats::tasks::{Change, analyse, deadline, of_run};

use super::latency_bound;
use crate::cli_tasks::TasksArgs;
use crate::flags;
use crate::input;
use crate::say::{Failure, Form};

/// Lines of a run that are not about tasks.
const UNUSED: [&str; 6] = ["window", "block", "raw", "load", "second", "exceedance"];

/// `tailbound response`
pub(crate) fn tasks(args: &TasksArgs) -> Result<ExitCode, Failure> {
    let changes: Vec<Change> = (args.what_if.iter())
        .map(|text| text.parse().map_err(flags::refused("--what-if")))
        .collect::<Result<_, _>>()?;
    let latency = args.latency_bound.as_deref().map(|text| latency_bound::read(text, None));
    let latency = latency.transpose()?;
    let (mut model, records) = read(&args.file)?;
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
        name: input::name(&args.file),
        model: &model,
        answer: &answer,
        records: &records,
        what_if: after.as_ref().map(|a| (changes.iter().map(ToString::to_string).collect(), a)),
        latency,
    };
    Form::of(args.json, &args.color.when)
        .answer(|| words::json(&told), |style| words::text(&told, style))?;
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
    Ok((of_run(&run), run.tasks))
}
