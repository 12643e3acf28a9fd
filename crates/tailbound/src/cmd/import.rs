// SPDX-License-Identifier: MIT OR Apache-2.0
//! `import`: another tool's file into a run file.
//!
//! Context: COLD.

use std::path::Path;
use std::process::ExitCode;

use tailbound_core::{runfile, units};
use tailbound_import::{Format, Options};
use tailbound_stats::Analysis;
use tailbound_sys::signal::Signals;

use crate::cli::ImportArgs;
use crate::input;
use crate::names;
use crate::say::{self, Failure};

/// Files of more bytes are read for long enough that somebody may want to end it.
const LONG: u64 = 32 << 20;

/// `tailbound import`
pub(crate) fn import(args: &ImportArgs) -> Result<ExitCode, Failure> {
    let fail = |e: &dyn std::fmt::Display| Failure::usage(format!("{}: {e}", args.file.display()));
    let time = |text: &Option<String>, flag: &str| {
        text.as_deref()
            .map(units::parse_ns)
            .transpose()
            .map_err(|e| Failure::usage(format!("{flag}: {e}")))
    };
    let format: Option<Format> = args
        .format
        .as_deref()
        .map(str::parse)
        .transpose()
        .map_err(|e| Failure::usage(format!("--format: {e}")))?;
    let options = Options {
        unit_ns: time(&args.unit.as_ref().map(|u| format!("1{u}")), "--unit")?
            .and_then(|ns| u64::try_from(ns).ok()),
        interval_ns: time(&args.interval, "--interval")?,
        duration_ns: time(&args.duration, "--duration")?,
    };
    // A short file is read before anyone could end it, and then Ctrl-C should do as always.
    let long = input::length(&args.file).is_none_or(|bytes| bytes > LONG);
    let signals = long.then(Signals::block_and_open).transpose().map_err(Failure::cannot)?;
    let mut run = input::import(&args.file, format, &options, signals.as_ref())?;
    if let Some(deadline) = time(&args.deadline, "--deadline")? {
        run.header.plan.requirement.deadline_ns = Some(deadline);
        run.verdict = None;
    }
    tailbound_stats::judge(&mut run);
    let mut text = Vec::new();
    runfile::write_run(&run, &mut text).map_err(|e| fail(&e))?;
    let stdin = args.file == Path::new("-");
    let beside = || input::sibling(&args.file, ".tailbound.jsonl");
    let out = match &args.out {
        Some(out) => out.clone(),
        None if stdin => "-".into(),
        None if args.force => beside(),
        None => names::free(&beside(), &[]),
    };
    if !(args.json && args.out.is_none()) {
        input::write(&out, &String::from_utf8_lossy(&text), args.force)?;
    }
    if args.json {
        say::answer_json(&tailbound_report::json(&Analysis::of(&run)))?;
    } else if out != Path::new("-") {
        let style = say::style("auto");
        say::answer_in(&tailbound_report::text(&Analysis::of(&run), style), style)?;
        say::answer(&format!("\nRun file  {}", out.display()))?;
    }
    let judged = run.verdict.filter(|_| args.deadline.is_some());
    Ok(ExitCode::from(judged.map_or(0, |v| v.outcome.exit_status())))
}
