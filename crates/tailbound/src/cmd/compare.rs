// SPDX-License-Identifier: MIT OR Apache-2.0
//! `compare`: two or more runs side by side.
//!
//! Context: COLD.

use std::process::ExitCode;

use crate::cli::CompareArgs;
use crate::input;
use crate::say::{self, Failure};

/// `tailbound compare`
pub(crate) fn compare(args: &CompareArgs) -> Result<ExitCode, Failure> {
    let runs = input::runs(&args.runs)?;
    let names: Vec<String> = args.runs.iter().map(|p| input::name(p)).collect();
    if let Some(out) = &args.out {
        input::write(out, &tailbound_report::html(&runs, &names), args.force)?;
    }
    if args.json {
        say::answer_json(&tailbound_report::compare::json(&runs, &names))?;
    } else {
        let style = say::style(&args.color.when);
        say::answer(&tailbound_report::compare::text(&runs, &names, style))?;
    }
    Ok(ExitCode::SUCCESS)
}
