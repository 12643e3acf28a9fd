// SPDX-License-Identifier: MIT OR Apache-2.0
//! `import`: another tool's file into a run file, or into one of each of its runs.

use std::path::Path;
use std::process::ExitCode;

use tailbound_core::{Run, printable, runfile};
use tailbound_import::{CaptureOptions, Format, Options, Wiring};
use tailbound_stats::Analysis;
use tailbound_sys::signal::Signals;

use crate::cli::ImportArgs;
use crate::cli_color::ColorChoice;
use crate::flags;
use crate::input::{self, Existing};
use crate::names;
use crate::say::{self, Failure};

/// Files of more bytes are read for long enough that somebody may want to end it.
const LONG: u64 = 32 << 20;

/// `tailbound import`
pub(crate) fn import(args: &ImportArgs) -> Result<ExitCode, Failure> {
    let format: Option<Format> =
        args.format.as_deref().map(str::parse).transpose().map_err(flags::refused("--format"))?;
    let unit = args.unit.as_ref().map(|u| format!("1{u}"));
    let unit_ns = flags::given_time("--unit", unit.as_ref())?;
    let options = Options {
        unit_ns: unit_ns.and_then(|ns| u64::try_from(ns).ok()),
        interval_ns: flags::given_time("--interval", args.interval.as_ref())?,
        duration_ns: flags::given_time("--duration", args.duration.as_ref())?,
        capture: capture(args)?,
    };
    // A short file is read before anyone could end it, and then Ctrl-C should do as always.
    let long = input::length(&args.file).is_none_or(|bytes| bytes > LONG);
    let signals = long.then(Signals::block_and_open).transpose().map_err(Failure::cannot)?;
    let runs = input::import_all(&args.file, format, &options, signals.as_ref())?;
    let runs = chosen(args, runs)?;
    let several = runs.len() > 1;
    let deadline = flags::given_time("--deadline", args.deadline.as_ref())?;
    let mut statuses = Vec::new();
    if several {
        let (file, all) = (input::name(&args.file), runs.len());
        say::answer(&format!(
            "{} holds {all} runs; each gets a run file.",
            printable::line(&file)
        ))?;
    }
    for (number, mut run) in runs {
        if let Some(deadline) = deadline {
            run.header.plan.requirement.deadline_ns = Some(deadline);
            run.verdict = None;
        }
        tailbound_stats::judge(&mut run);
        if several {
            let file = run.header.source.as_ref().map_or("", |s| s.file.as_str());
            say::answer(&format!(
                "{}{}",
                if number > 1 { "\n" } else { "" },
                printable::line(file)
            ))?;
        }
        written(args, &run, if several { format!(".{number}") } else { String::new() })?;
        let judged = run.verdict.filter(|_| args.deadline.is_some());
        statuses.push(judged.map_or(0, |v| v.outcome.exit_status()));
    }
    // One that was not met decides, then one that is not decided.
    let status = statuses.iter().copied().find(|s| *s == 1).or(statuses.into_iter().max());
    Ok(ExitCode::from(status.unwrap_or(0)))
}

/// How the lines of a capture are wired, where that was said.
fn capture(args: &ImportArgs) -> Result<Option<CaptureOptions>, Failure> {
    let (Some(stimulus), Some(answer)) = (args.stimulus.clone(), args.answer.clone()) else {
        return Ok(None);
    };
    let rule = args.edge.parse().map_err(flags::refused("--edge"))?;
    let rate = args.sample_rate.as_deref().map(str::parse).transpose();
    let sample_rate = rate.map_err(flags::refused("--sample-rate"))?;
    Ok(Some(CaptureOptions { wiring: Wiring { stimulus, answer }, rule, sample_rate }))
}

/// The runs to import with their numbers: that of `--run`, or all.
fn chosen(args: &ImportArgs, runs: Vec<Run>) -> Result<Vec<(usize, Run)>, Failure> {
    let (file, all) = (args.file.display(), runs.len());
    if let Some(number) = args.run {
        let found = runs.into_iter().nth(number.wrapping_sub(1));
        let run = found.ok_or_else(|| {
            let holds = if all == 1 { "one run".to_owned() } else { format!("{all} runs") };
            Failure::usage(format!("--run {number}: {file} holds {holds}"))
        })?;
        return Ok(vec![(number, run)]);
    }
    let one_answer = args.json || args.out.is_some() || args.file == Path::new("-");
    if all > 1 && one_answer {
        let ways = if args.json { "--json" } else { "one run file" };
        return Err(Failure::usage(format!(
            "{file} holds {all} runs, {ways} holds one: choose it with --run N (1 to {all})"
        )));
    }
    Ok((1..).zip(runs).collect())
}

/// Writes the run file.
pub(super) fn write(out: &Path, run: &Run, existing: Existing) -> Result<(), Failure> {
    let mut text = Vec::new();
    runfile::write_run(run, &mut text)
        .map_err(|e| Failure::usage(format!("{}: {e}", out.display())))?;
    input::write(out, &String::from_utf8_lossy(&text), existing)
}

/// Writes the run file and prints the answer; `part` tells runs of a file apart.
pub(super) fn written(args: &ImportArgs, run: &Run, part: String) -> Result<(), Failure> {
    let stdin = args.file == Path::new("-");
    let beside = || input::sibling(&args.file, &format!("{part}.tailbound.jsonl"));
    let out = match &args.out {
        Some(out) => out.clone(),
        None if stdin => "-".into(),
        None if args.force => beside(),
        None => names::free(&beside(), &[]),
    };
    if !(args.json && args.out.is_none()) {
        write(&out, run, Existing::replaced_if(args.force))?;
    }
    if args.json {
        say::answer_json(&tailbound_report::json(&Analysis::of(run)))?;
    } else if out != Path::new("-") {
        let style = say::style(ColorChoice::Auto);
        say::answer_in(&tailbound_report::text(&Analysis::of(run), style), style)?;
        say::answer(&format!("\nRun file  {}", out.display()))?;
    }
    Ok(())
}
