// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lab hunt`: searches for the worst workload of a kernel, and shrinks it to what anybody can repeat.

use std::process::ExitCode;
use std::time::Duration;

use tailbound_search::hunt_runs::{
    self, HuntCaller, HuntEnd, HuntLine, HuntListener, HuntOptions, MachineOptions,
};
use tailbound_series::rounds::SeriesLine;

use crate::caller::Machine;
use crate::cli_hunt::HuntArgs;
use crate::cmd::lab::bench;
use crate::flags;
use crate::input;
use crate::say::{self, Failure, Form};

const LENGTH: Duration = Duration::from_secs(30 * 60);

/// `tailbound lab hunt`
pub(crate) fn hunt(args: &HuntArgs) -> Result<ExitCode, Failure> {
    asked_well(args)?;
    let options = options(args)?;
    let writer = say::progress(args.host.quiet);
    let line = HuntLine::new(writer);
    let found = hunt_runs::hunt(
        &options,
        &mut HuntCaller {
            open: &|| Ok(bench::open(&args.host)?),
            listener: &line as &dyn HuntListener,
            machine: Machine::default(),
            rounds: &mut SeriesLine(writer),
            runs: &|folder| Ok(input::runs(&input::in_folder(folder)?)?),
        },
    )?;
    Form::of(args.host.json, args.host.color.when)
        .answer(|| found.json(), |style| found.text(style))?;
    Ok(ExitCode::from(match found.end() {
        HuntEnd::Done => 0,
        HuntEnd::NotTheSame => 3,
        HuntEnd::Interrupted => 5,
    }))
}

fn options(args: &HuntArgs) -> Result<HuntOptions, Failure> {
    let on_machine =
        || MachineOptions { each: args.each.clone(), rounds: args.rounds, cpus: args.cpus.clone() };
    Ok(HuntOptions {
        kernel: args.kernel.clone(),
        append: args.append.clone(),
        arch: args.arch.clone(),
        loops: args.loops,
        on_machine: args.here.then(on_machine),
        resume: args.resume.clone(),
        out: args.out.clone(),
        length: length(args)?,
        evaluations: args.evaluations,
        seed: args.seed,
        random: args.random,
        has_sections: !args.no_paths,
        within: args.within / 100.0,
        shrink: args.shrink,
    })
}

/// What clap cannot know: a share's limits, and options of a hunt on this machine without it.
fn asked_well(args: &HuntArgs) -> Result<(), Failure> {
    if !(0.0..100.0).contains(&args.within) {
        return Err(Failure::usage("--within: write percent from 0 to 100, such as 5"));
    }
    // Clap waives what an option requires where that conflicts with another one that is there: `--kernel`.
    let own = [("--each", args.each.is_some()), ("--rounds", args.rounds.is_some())];
    let own = own.into_iter().chain([("--cpus", args.cpus.is_some())]);
    if let (false, Some((flag, _))) = (args.here, own.into_iter().find(|(_, given)| *given)) {
        return Err(Failure::usage(format!("{flag} is of a hunt on this machine: add --here")));
    }
    Ok(())
}

/// How long to search; none: as long as the number takes.
fn length(args: &HuntArgs) -> Result<Option<Duration>, Failure> {
    let Some(text) = &args.length else {
        return Ok(args.evaluations.is_none().then_some(LENGTH));
    };
    let ns = flags::time("--for", text)?;
    let ns = u64::try_from(ns).map_err(|_| Failure::usage("--for: below zero"))?;
    Ok(Some(Duration::from_nanos(ns)))
}
