// SPDX-License-Identifier: MIT OR Apache-2.0
//! `report`: one HTML file of one or more runs.
//!
//! Context: COLD.

use std::process::ExitCode;

use crate::cli::ReportArgs;
use crate::input;
use crate::say::{self, Failure};

/// `tailbound report`
pub(crate) fn report(args: &ReportArgs) -> Result<ExitCode, Failure> {
    let runs = input::runs(&args.runs)?;
    let names: Vec<String> = args.runs.iter().map(|p| input::name(p)).collect();
    let out = match (&args.out, args.runs.first()) {
        (Some(out), _) => out.clone(),
        (None, Some(first)) => input::sibling(first, ".html"),
        (None, None) => return Err(Failure::usage("no run given")),
    };
    input::write(&out, &tailbound_report::html(&runs, &names), args.force)?;
    if out != std::path::Path::new("-") {
        say::note(&format!("Report    {}", out.display()));
    }
    Ok(ExitCode::SUCCESS)
}
