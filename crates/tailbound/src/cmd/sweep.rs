// SPDX-License-Identifier: MIT OR Apache-2.0
//! `measure sweep`: the probe `cyclic` at one interval after the other, on even intervals and on
//! random ones around them.
//!
//! Units: ns.
//! Not here: the steps and their files (`tailbound_series::sweep`).

use std::path::Path;
use std::process::ExitCode;

use tailbound_core::plan::{INTERVAL_MAX_NS, INTERVAL_MIN_NS};
use tailbound_core::units::exact;
use tailbound_report::sweep as report;
use tailbound_run::Request;
use tailbound_series::sweep::{STEPS_MAX, Sweep, exit_status, intervals};

use crate::cli_sweep::SweepArgs;
use crate::cmd::{run, session};
use crate::flags;
use crate::input::{self, Existing};
use crate::say::{self, Failure};

/// Of each step, if `--duration` is not given.
const DURATION: &str = "5s";

/// `tailbound measure sweep`
pub(crate) fn measure(args: &SweepArgs) -> Result<ExitCode, Failure> {
    let intervals_ns = asked(args)?;
    let mut request = Request { bare: true, ..session::request(&args.plan)? };
    if args.plan.measurement.loops.is_none() {
        request.config.duration.get_or_insert_with(|| DURATION.to_owned());
    }
    let random = (args.random.trim() != "0%").then(|| args.random.clone());
    if let Some(folder) = &args.plan.out {
        if folder == Path::new("-") {
            return Err(Failure::usage("--out: name a folder; there is one run file per step"));
        }
        std::fs::create_dir_all(folder)
            .map_err(|e| Failure::cannot(format!("--out {}: {e}", folder.display())))?;
    }
    let sweep = Sweep { intervals_ns, random, folder: args.plan.out.clone() };
    // All of them are looked at before the first is measured.
    if !args.plan.force {
        sweep.is_free(args.report.iter().chain(&args.svg).cloned())?;
    }
    let made = sweep.make(&mut |one| {
        let mut request = request.clone();
        request.config.interval = Some(exact(one.interval_ns));
        request.config.interval_spread = one.random.map(str::to_owned);
        if !args.plan.quiet {
            let (kind, interval) = (one.kind(), exact(one.interval_ns));
            say::note(&format!(
                "step {} of {}: {kind} intervals of {interval}",
                one.step, one.steps
            ));
        }
        run::measured(&request, &args.plan, one.file.as_deref(), None).map(|(run, _)| run)
    })?;
    let steps = made.steps;
    if made.interrupted {
        say::note("ended early: the steps so far");
    }
    if let Some(path) = &args.report {
        input::write(path, &report::html(&steps), Existing::replaced_if(args.plan.force))?;
    }
    if let (Some(path), Some(figure)) = (&args.svg, report::figure(&steps)) {
        input::write(path, &figure.standalone(), Existing::replaced_if(args.plan.force))?;
    }
    if args.plan.json {
        say::answer_json(&report::json(&steps))?;
    } else {
        say::answer(&report::text(&steps))?;
    }
    Ok(ExitCode::from(exit_status(&steps, sweep.intervals_ns.len())))
}

/// The intervals that are asked for.
fn asked(args: &SweepArgs) -> Result<Vec<i64>, Failure> {
    if args.plan.measurement.interval.is_some() {
        return Err(Failure::usage("--interval: a sweep has many; give --from and --to"));
    }
    let time = |flag: &str, text: &str| {
        let ns = flags::time(flag, text)?;
        if (INTERVAL_MIN_NS..=INTERVAL_MAX_NS).contains(&ns) {
            return Ok(ns);
        }
        let (least, most) = (exact(INTERVAL_MIN_NS), exact(INTERVAL_MAX_NS));
        Err(Failure::usage(format!("{flag}: {text} is outside {least} to {most}")))
    };
    let (from, to) = (time("--from", &args.from)?, time("--to", &args.to)?);
    if from >= to {
        return Err(Failure::usage("--to: must be longer than --from"));
    }
    if !(2..=STEPS_MAX).contains(&args.steps) {
        return Err(Failure::usage(format!(
            "--steps: {} is not from 2 to {STEPS_MAX}",
            args.steps
        )));
    }
    Ok(intervals(from, to, args.steps))
}
