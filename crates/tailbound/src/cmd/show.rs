// SPDX-License-Identifier: MIT OR Apache-2.0
//! `show`: a run in the terminal, as JSON, in one line, its latest wake-ups, or one picture of it.

use std::process::ExitCode;

use tailbound_report::{self as report, pictures, worst};
use tailbound_stats::Analysis;

use crate::cli::ShowArgs;
use crate::input;
use crate::say::{self, Failure, Form};

/// `tailbound show`
pub(crate) fn show(args: &ShowArgs) -> Result<ExitCode, Failure> {
    let run = input::run(&args.run)?;
    let analysis = Analysis::of(&run);
    let form = Form::of(args.json, args.color.when);
    if args.brief {
        say::answer(&report::brief(&analysis))?;
    } else if let Some(most) = args.worst {
        form.answer(|| worst::json(&run, most), |style| worst::text(&run, most, style))?;
    } else if let Some(which) = &args.svg {
        let svg = picture(&analysis, which).ok_or_else(|| {
            Failure::usage(format!("--svg {which}: this run holds no data for it"))
        })?;
        say::answer(&svg)?;
    } else {
        form.answer(|| report::json(&analysis), |style| report::text(&analysis, style))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn picture(analysis: &Analysis<'_>, which: &str) -> Option<String> {
    let run = analysis.run();
    let threads = pictures::threads(run);
    let deadline = run.header.plan.requirement.deadline_ns;
    let figure = match which {
        "histogram" => pictures::late(&threads, deadline),
        "survival" => pictures::survival(&threads, deadline),
        _ => pictures::maxima(analysis),
    };
    figure.map(|f| f.standalone())
}
