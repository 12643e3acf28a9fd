// SPDX-License-Identifier: MIT OR Apache-2.0
//! `decide sleepers`: one run for each number of tasks that sleep in parallel.
//!
//! `decide` reads the runs as figure 4.
//! Not here: their order and files (`tailbound_series::sleepers`).

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tailbound_sys::new_file::Existing;

use tailbound_core::Run;
use tailbound_core::cpus::CpuSet;
use tailbound_core::plan::RunConfig;
use tailbound_core::unwritten::{Alternative, UnwrittenFile};
use tailbound_host::Root;
use tailbound_report::decide::sleepers as picture;
use tailbound_run::{Output, Request, Resolved, Session, resolve};
use tailbound_series::SeriesError;
use tailbound_series::sleepers as series;
use tailbound_stats::decide::of_runs;
use tailbound_sys::signal::Signals;

use crate::cli_color::ColorChoice;
use crate::cli_decide::SleepersArgs;
use crate::machine::{self, WhileHeld};
use crate::names;
use crate::say::{self, Failure};

/// Where nobody names a folder.
const FOLDER: &str = "sleepers";

/// The folder: all files are looked at before the first is measured.
fn folder(
    args: &SleepersArgs,
    numbers: impl Iterator<Item = u32> + Clone,
) -> Result<PathBuf, Failure> {
    let taken = |out: &Path| match args.force {
        true => None,
        false => series::taken(out, numbers.clone()),
    };
    let Some(out) = &args.out else {
        let mut all = names::numbered(Path::new(FOLDER));
        return all.find(|out| taken(out).is_none()).ok_or_else(Failure::bug);
    };
    match taken(out) {
        None => Ok(out.clone()),
        Some(path) => {
            let taken = UnwrittenFile::Exists { path, choose: Alternative::Out };
            Err(SeriesError::from(taken).into())
        }
    }
}

/// `tailbound decide sleepers`
pub(super) fn sleepers(args: &SleepersArgs) -> Result<ExitCode, Failure> {
    // A list of numbers, as of CPUs.
    let numbers: CpuSet =
        args.tasks.parse().map_err(|e| Failure::usage(format!("--tasks {}: {e}", args.tasks)))?;
    let root = Root::real();
    let mut plans = Vec::new();
    for tasks in numbers.iter() {
        let words = RunConfig {
            tasks: Some(tasks),
            loops: Some(args.loops),
            interval: Some(args.interval.clone()),
            policy: args.policy.clone(),
            cpus: args.cpus.clone(),
            load: Some(vec![args.load.clone()]),
            ..RunConfig::default()
        };
        plans.push((tasks, resolve(&Request { config: words, ..Request::default() }, &root)?));
    }
    let out = folder(args, plans.iter().map(|(tasks, _)| *tasks))?;
    std::fs::create_dir_all(&out)
        .map_err(|e| Failure::cannot(format!("{}: {e}", out.display())))?;
    let signals = Signals::block_and_open().map_err(Failure::cannot)?;
    let exe = std::env::current_exe().map_err(Failure::cannot)?;
    let count = plans.len();
    let made = series::make(&out, plans, |place, tasks, resolved: Resolved, path| {
        if !args.quiet {
            let length = tailbound_core::units::format_span(resolved.plan.duration_ns());
            say::note(&format!("{tasks} tasks for {length}, run {place} of {count}"));
        }
        let output = Output::open(path, &resolved.plan, Existing::replaced_if(args.force))?;
        let session = Session {
            findings: resolved.findings,
            machine: Some(machine::share(WhileHeld::Refuse)?),
            ..Session::of_plan(resolved.plan, root.clone(), exe.clone())
        };
        let (run, _) = tailbound_run::run(session, resolved.probe, output, &signals, &mut |_| ())?;
        Ok::<Run, Failure>(run)
    })?;
    if made.cut {
        say::note("ended early: what follows is what was measured until then");
    }
    let runs = made.runs;
    let named: Vec<(&str, &Run)> = runs.iter().map(|(name, run)| (name.as_str(), run)).collect();
    let side = of_runs("latency", &named, None);
    let Some(figure) = picture::of_sides(&[&side]) else {
        return Err(Failure::cannot("no task woke: there is nothing to show"));
    };
    if args.svg {
        say::answer(&figure.standalone())?;
    } else if args.json {
        say::answer_json(&serde_json::json!({
            "schema": "tailbound-sleepers/1",
            "method": tailbound_stats::decide::METHOD,
            "sleepers": side.sleepers,
        }))?;
    } else {
        let mut text = figure.table.text(say::style(ColorChoice::Never).width).join("\n");
        text.push_str(&format!("\n\nRun files in {}\n", out.display()));
        say::answer(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}
