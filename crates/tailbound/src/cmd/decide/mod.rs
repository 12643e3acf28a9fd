// SPDX-License-Identifier: MIT OR Apache-2.0
//! `decide`: real time or real fast, from run files or published figures.

mod answers;
mod sleepers;

use std::path::PathBuf;
use std::process::ExitCode;

use tailbound_core::number::Real as _;
use tailbound_report::decide as report;
use tailbound_stats::decide::{Files, Named, Sides, choose};

use crate::cli_decide::{Also, DecideArgs};
use crate::flags;
use crate::input::{self, Existing};
use crate::say::{self, Failure, Form};

/// Undecided: a question on the way has no answer.
const OPEN: u8 = 5;

/// `tailbound decide`
pub(crate) fn decide(args: &DecideArgs) -> Result<ExitCode, Failure> {
    if let Some(Also::Sleepers(sleepers)) = &args.also {
        return sleepers::sleepers(sleepers);
    }
    let unit_ns = flags::given_time("--unit-length", args.unit_length.as_ref())?;
    if unit_ns.is_some_and(|ns| ns <= 0) {
        return Err(Failure::usage("--unit-length: must be more than 0"));
    }
    let given = sides(args, flags::given_time("--deadline", args.deadline.as_ref())?)?;
    let known = answers::answers(args, &given)?;
    let unit_ns = unit_ns.map(|ns| ns.real());
    let known = answers::request(args, known, unit_ns)?;
    let mut choice = choose(given.real, given.fast, known, unit_ns);
    choice.notes.extend(given.notes);
    if let Some(out) = &args.out {
        input::write(out, &report::html(&choice), Existing::replaced_if(args.force))?;
    }
    if let Some(which) = &args.svg {
        let figures = report::figures(&choice);
        let found = figures.iter().find(|f| f.id == which).ok_or_else(|| {
            let there: Vec<&str> = figures.iter().map(|f| f.id).collect();
            Failure::usage(format!(
                "--svg {which}: these runs hold no data for it; there is {}",
                there.join(", ")
            ))
        })?;
        say::answer(&found.standalone())?;
    } else {
        let form = Form::of(args.json, args.color.when);
        form.answer(|| report::json(&choice), |style| report::text(&choice, style))?;
    }
    Ok(ExitCode::from(if choice.path.certain { 0 } else { OPEN }))
}

/// Both sides, from the files that were given.
fn sides(args: &DecideArgs, deadline_ns: Option<i64>) -> Result<Sides, Failure> {
    if let Some(path) = &args.published {
        let file = path.display().to_string();
        let text = String::from_utf8(input::bytes(path)?)
            .map_err(|e| Failure::usage(format!("--published {file}: {e}")))?;
        return Sides::of_published(&text, &file, &input::name(path)).map_err(Failure::usage);
    }
    let named = |paths: &[PathBuf]| -> Result<Vec<Named>, Failure> {
        let runs = input::runs(paths)?;
        Ok(paths.iter().map(|p| input::name(p)).zip(runs).collect())
    };
    let files =
        Files { real: named(&args.real)?, fast: named(&args.fast)?, rest: named(&args.runs)? };
    Sides::of_files(files, deadline_ns).map_err(Failure::usage)
}
