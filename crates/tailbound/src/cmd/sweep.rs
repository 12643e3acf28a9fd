// SPDX-License-Identifier: MIT OR Apache-2.0
//! `measure sweep`: the probe `cyclic` at one interval after the other, on even intervals and on
//! random ones around them.
//!
//! Context: COLD. Units: ns.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tailbound_core::EndReason;
use tailbound_core::Run;
use tailbound_core::plan::{INTERVAL_MAX_NS, INTERVAL_MIN_NS};
use tailbound_core::units::{exact, parse_ns};
use tailbound_report::sweep::{self, Step};
use tailbound_run::Request;

use crate::cli_sweep::SweepArgs;
use crate::cmd::run;
use crate::input;
use crate::say::{self, Failure};

const STEPS_MAX: u32 = 100;
/// Of each step, if `--duration` is not given.
const DURATION: &str = "5s";

/// `tailbound measure sweep`
pub(crate) fn measure(args: &SweepArgs) -> Result<ExitCode, Failure> {
    let intervals = intervals(args)?;
    let mut request = Request { bare: true, ..run::request(&args.plan)? };
    if args.plan.loops.is_none() {
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
    let folder = args.plan.out.iter();
    let files = folder.flat_map(|f| {
        intervals.iter().flat_map(|ns| ["even", "random"].map(|kind| file(f, *ns, kind)))
    });
    // All of them are looked at before the first is measured.
    for path in files.chain(args.report.iter().chain(&args.svg).cloned()) {
        if path.exists() && !args.plan.force {
            return Err(Failure::usage(format!(
                "{} exists already: choose another file, or give --force to overwrite it",
                path.display()
            )));
        }
    }
    let mut steps = Vec::new();
    for (i, interval_ns) in intervals.iter().enumerate() {
        let place = format!("{} of {}", i + 1, intervals.len());
        let even = one(args, &request, *interval_ns, None, &place)?;
        let ended = interrupted(&even);
        let spread = match &random {
            Some(share) if !ended => Some(one(args, &request, *interval_ns, Some(share), &place)?),
            _ => None,
        };
        let ended = ended || spread.as_ref().is_some_and(interrupted);
        steps.push(Step { interval_ns: *interval_ns, even, spread });
        if ended {
            say::note("ended early: the steps so far");
            break;
        }
    }
    if let Some(path) = &args.report {
        input::write(path, &sweep::html(&steps), args.plan.force)?;
    }
    if let (Some(path), Some(figure)) = (&args.svg, sweep::figure(&steps)) {
        input::write(path, &figure.standalone(), args.plan.force)?;
    }
    if args.plan.json {
        say::answer_json(&sweep::json(&steps))?;
    } else {
        say::answer(&sweep::text(&steps))?;
    }
    Ok(status(&steps, steps.len() < intervals.len()))
}

/// Where the run of one step goes.
fn file(folder: &Path, interval_ns: i64, kind: &str) -> PathBuf {
    folder.join(format!("{}-{kind}.tailbound.jsonl", exact(interval_ns).replace(' ', "")))
}

fn interrupted(run: &Run) -> bool {
    run.end.as_ref().is_none_or(|e| e.reason == EndReason::Interrupted)
}

/// The intervals, in equal ratios, in whole µs.
fn intervals(args: &SweepArgs) -> Result<Vec<i64>, Failure> {
    if args.plan.interval.is_some() {
        return Err(Failure::usage("--interval: a sweep has many; give --from and --to"));
    }
    let time = |flag: &str, text: &str| {
        let ns = parse_ns(text).map_err(|e| Failure::usage(format!("{flag}: {e}")))?;
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
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "intervals of an hour at most"
    )]
    let at = |i: u32| {
        let share = f64::from(i) / f64::from(args.steps - 1);
        let ns = from as f64 * (to as f64 / from as f64).powf(share);
        (ns / 1000.0).round() as i64 * 1000
    };
    let mut all: Vec<i64> = (0..args.steps).map(at).collect();
    all.dedup();
    Ok(all)
}

fn one(
    args: &SweepArgs,
    request: &Request,
    interval_ns: i64,
    random: Option<&String>,
    place: &str,
) -> Result<Run, Failure> {
    let mut request = request.clone();
    request.config.interval = Some(exact(interval_ns));
    request.config.interval_spread = random.cloned();
    let kind = if random.is_some() { "random" } else { "even" };
    if !args.plan.quiet {
        say::note(&format!("step {place}: {kind} intervals of {}", exact(interval_ns)));
    }
    let out = args.plan.out.as_ref().map(|folder| file(folder, interval_ns, kind));
    run::session(&request, &args.plan, out.as_deref(), true, None).map(|(run, _)| run)
}

/// The worst of the steps: not met, cannot, undecided.
fn status(steps: &[Step], cut: bool) -> ExitCode {
    let outcomes = || {
        let runs = steps.iter().flat_map(|s| std::iter::once(&s.even).chain(&s.spread));
        runs.filter_map(|r| r.verdict.as_ref().map(|v| v.outcome.exit_status()))
    };
    let worst = [1, 3, 5].into_iter().find(|status| outcomes().any(|o| o == *status));
    ExitCode::from(worst.unwrap_or(if cut { 5 } else { 0 }))
}
