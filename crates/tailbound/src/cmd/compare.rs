// SPDX-License-Identifier: MIT OR Apache-2.0
//! `compare`: two or more systems, from files and folders to an answer and an exit status.

use std::path::PathBuf;
use std::process::ExitCode;

use tailbound_core::Run;
use tailbound_report::compare::{Answer, Proof};
use tailbound_report::pictures::compared;
use tailbound_stats::compare::{Settings, Systems, distinct};

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
        let form = Form::of(args.json, args.color.when);
        form.answer(|| answer.json(), |style| answer.text(style))?;
    }
    Ok(ExitCode::from(answer.exit_status(Proof::equivalence_if(args.judge.require_equivalent))))
}

/// What the words of both verbs ask for.
pub(crate) fn settings(args: &JudgeArgs) -> Result<Settings, Failure> {
    let (margin, time) = (args.margin.as_deref(), args.margin_time.as_deref());
    Settings::given(margin, time, args.seed).map_err(Failure::usage)
}
