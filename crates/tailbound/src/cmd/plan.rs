// SPDX-License-Identifier: MIT OR Apache-2.0
//! `plan`: how long must be measured.
//!
//! Nothing is measured here, and no machine is looked at.

use std::process::ExitCode;

use tailbound_core::number::Real as _;
use tailbound_core::plan::{DURATION_MAX_NS, INTERVAL_MAX_NS};
use tailbound_core::requirement::Rate;
use tailbound_core::share;
use tailbound_report::planning::{self as words, Means, PlanQuestions};

use crate::cli_plan::PlanVerbArgs;
use crate::flags;
use crate::input;
use crate::say::{Failure, Form};

/// `tailbound plan`
pub(crate) fn plan(args: &PlanVerbArgs) -> Result<ExitCode, Failure> {
    let means = means(args)?;
    let sections = questions(args, &means)?.sections(&means);
    if sections.is_empty() {
        return Err(Failure::usage(
            "plan: name what is to be shown: --rate 1/24h, --share 99.999%, --quantile p99.999, or --duration 12h for what a run of that length shows",
        ));
    }
    Form::of(args.json, args.color.when)
        .answer(|| words::json(&means, &sections), |style| words::text(&sections, style))?;
    Ok(ExitCode::SUCCESS)
}

fn time(text: &str, flag: &str, most: i64) -> Result<i64, Failure> {
    let ns = flags::time(flag, text)?;
    if !(1..=most).contains(&ns) {
        return Err(Failure::usage(format!(
            "{flag}: {text} is not between 1 ns and {}",
            tailbound_core::units::format_span(most)
        )));
    }
    Ok(ns)
}

/// A confidence of which statements are worth making.
pub(crate) fn confidence(value: f64) -> Result<f64, Failure> {
    if !(0.5..1.0).contains(&value) {
        return Err(Failure::usage(format!(
            "--confidence: {value} is not between 0.5 and 1, for example 0.95"
        )));
    }
    Ok(value)
}

fn means(args: &PlanVerbArgs) -> Result<Means, Failure> {
    let confidence = confidence(args.confidence)?;
    if args.machines == 0 {
        return Err(Failure::usage("--machines: 0 machines measure nothing"));
    }
    let deadline = args.deadline.as_deref().map(|d| time(d, "--deadline", i64::MAX)).transpose()?;
    Ok(Means {
        deadline_ns: deadline,
        interval_ns: time(&args.interval, "--interval", INTERVAL_MAX_NS)?,
        machines: args.machines,
        confidence,
    })
}

fn questions(args: &PlanVerbArgs, means: &Means) -> Result<PlanQuestions, Failure> {
    let parsed = |text: &String| text.parse().map_err(flags::refused("--rate"));
    let rate: Option<Rate> = args.rate.as_ref().map(parsed).transpose()?;
    let length_s = match (&args.duration, args.loops) {
        (Some(_), Some(_)) => {
            return Err(Failure::usage(
                "--duration and --loops: give one of them, the other follows from the interval",
            ));
        }
        (Some(text), None) => Some((time(text, "--duration", DURATION_MAX_NS)?).real() / 1e9),
        (None, Some(0)) => return Err(Failure::usage("--loops: 0 loops measure nothing")),
        (None, Some(loops)) => Some(loops.real() * (means.interval_ns.real() / 1e9)),
        (None, None) => None,
    };
    let of = |text: &Option<String>, flag| {
        text.as_deref().map(|t| share::parse(t).map_err(flags::refused(flag))).transpose()
    };
    let asked_share = of(&args.share, "--share")?;
    let precision = share::parse(args.precision.as_deref().unwrap_or("10%"))
        .map_err(flags::refused("--precision"))?;
    let pilot = args.pilot.as_deref().map(input::run).transpose()?;
    let quantile = of(&args.quantile, "--quantile")?;
    if pilot.is_none() && args.decimals.is_some() {
        return Err(Failure::usage(
            "--decimals: how much the mean varies is known from a run of the machine only: give one with --pilot RUN",
        ));
    }
    Ok(PlanQuestions {
        rate,
        share: asked_share,
        quantile,
        precision,
        length_s,
        loops: args.loops,
        pilot,
        decimals: args.decimals,
    })
}
