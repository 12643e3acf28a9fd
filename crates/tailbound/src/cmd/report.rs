// SPDX-License-Identifier: MIT OR Apache-2.0
//! `report`: one HTML file of one or more runs.

use std::process::ExitCode;
use tailbound_stats::Analysis;

use crate::cli::ReportArgs;
use crate::input::{self, Existing};
use crate::names;
use crate::say::{self, Failure};

/// `tailbound report`
pub(crate) fn report(args: &ReportArgs) -> Result<ExitCode, Failure> {
    let runs = input::runs(&args.runs)?;
    let names: Vec<String> = args.runs.iter().map(|p| input::name(p)).collect();
    let page = tailbound_report::html(&runs.iter().map(Analysis::of).collect::<Vec<_>>(), &names);
    let existing = Existing::replaced_if(args.force);
    let out = match (&args.out, args.runs.first()) {
        (Some(out), _) => input::write(out, &page, existing).map(|()| out.clone())?,
        (None, Some(first)) => names::write(&input::sibling(first, ".html"), &page, existing)?,
        (None, None) => return Err(Failure::usage("no run given")),
    };
    if out != std::path::Path::new("-") {
        say::note(&format!("Report    {}", out.display()));
    }
    Ok(ExitCode::SUCCESS)
}
