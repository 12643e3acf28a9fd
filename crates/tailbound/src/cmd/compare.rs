// SPDX-License-Identifier: MIT OR Apache-2.0
//! `compare`: two or more systems, from files and folders to an answer and an exit status.

use std::path::PathBuf;
use std::process::ExitCode;

use tailbound_core::Run;
use tailbound_core::number::Real as _;
use tailbound_core::units::parse_ns;
use tailbound_report::compare::{Answer, Proof};
use tailbound_report::pictures::compared;
use tailbound_stats::compare::{Margin, Settings, Systems, distinct};

use crate::cli_compare::{CompareArgs, JudgeArgs};
use crate::input::{self, Existing};
use crate::say::{self, Failure, Form};

/// Records that no comparison of many runs needs.
const UNUSED: [&str; 7] = ["window", "raw", "exceedance", "load", "event", "second", "block"];

/// `tailbound compare`
pub(crate) fn compare(args: &CompareArgs) -> Result<ExitCode, Failure> {
    let existing = Existing::replaced_if(args.force);
    let settings = settings(&args.judge)?;
    let mut order = Vec::new();
    let mut files = Vec::new();
    for path in &args.runs {
        if path.is_dir() {
            order.extend(tailbound_series::rounds::variants(path)?);
            files.push((path, input::in_folder(path)?));
        } else {
            files.push((path, vec![path.clone()]));
        }
    }
    let all: Vec<PathBuf> = files.iter().flat_map(|(_, f)| f.iter().cloned()).collect();
    let runs = if all.len() > files.len() {
        input::runs_without(&all, &UNUSED)?
    } else {
        input::runs(&all)?
    };
    let mut runs = runs.into_iter();
    let given: Vec<(String, Vec<Run>)> = files
        .iter()
        .map(|(path, f)| (input::name(path), runs.by_ref().take(f.len()).collect()))
        .collect();
    let systems = Systems::of(&distinct(given), &order).map_err(Failure::usage)?;
    let answer = Answer::of(systems, settings);
    if let Some(which) = &args.svg {
        let Some(figure) = compared::by_name(&answer, which) else {
            return Err(Failure::usage(format!(
                "--svg {which}: this plot needs confidence intervals, and {}",
                answer.sentences().first().map_or("", |s| &s.1)
            )));
        };
        let svg = figure.standalone();
        match &args.out {
            Some(out) => input::write(out, &svg, existing)?,
            None => say::answer(&svg)?,
        }
    } else {
        if let Some(out) = &args.out {
            input::write(out, &tailbound_report::html::comparison(&answer), existing)?;
        }
        let form = Form::of(args.json, &args.color.when);
        form.answer(|| answer.json(), |style| answer.text(style))?;
    }
    Ok(ExitCode::from(answer.exit_status(Proof::equivalence_if(args.judge.require_equivalent))))
}

/// What the words of both verbs ask for.
pub(crate) fn settings(args: &JudgeArgs) -> Result<Settings, Failure> {
    let defaults = Settings::default();
    let relative = match &args.margin {
        None => defaults.margin.relative,
        Some(text) => percent(text)?,
    };
    let time_ns = match &args.margin_time {
        None => defaults.margin.time_ns,
        // A bare 0 has no unit to be wrong about.
        Some(text) if text.trim() == "0" => 0.0,
        Some(text) => match parse_ns(text) {
            Ok(ns) if ns >= 0 => ns.real(),
            Ok(_) => return Err(Failure::usage("--margin-time: write 0 or more, for example 1us")),
            Err(e) => return Err(Failure::usage(format!("--margin-time: {e}"))),
        },
    };
    let seed = args.seed.unwrap_or(defaults.seed);
    Ok(Settings { margin: Margin { relative, time_ns }, seed, ..defaults })
}

fn percent(text: &str) -> Result<f64, Failure> {
    let number = text.trim().strip_suffix('%').and_then(|n| n.trim().parse::<f64>().ok());
    number.filter(|n| (0.0..1000.0).contains(n)).map(|n| n / 100.0).ok_or_else(|| {
        Failure::usage(format!("--margin: `{text}` is not a percentage from 0%, for example 5%"))
    })
}
