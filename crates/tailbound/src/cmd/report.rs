// SPDX-License-Identifier: MIT OR Apache-2.0
//! `report`: one HTML file of one or more runs.

use std::process::ExitCode;
use tailbound_stats::Analysis;

use crate::cli::ReportArgs;
use crate::input;
use crate::names;
use crate::say::{self, Failure};

/// `tailbound report`
pub(crate) fn report(args: &ReportArgs) -> Result<ExitCode, Failure> {
    let runs = input::runs(&args.runs)?;
    let names: Vec<String> = args.runs.iter().map(|p| input::name(p)).collect();
    let page = tailbound_report::html(&runs.iter().map(Analysis::of).collect::<Vec<_>>(), &names);
    let out = match (&args.out, args.runs.first()) {
        (Some(out), _) => input::write(out, &page, args.force).map(|()| out.clone())?,
        (None, Some(first)) => {
            let beside = input::sibling(first, ".html");
            if args.force {
                input::write(&beside, &page, true).map(|()| beside)?
            } else {
                names::write_free(&beside, &page)?
            }
        }
        (None, None) => return Err(Failure::usage("no run given")),
    };
    if out != std::path::Path::new("-") {
        say::note(&format!("Report    {}", out.display()));
    }
    Ok(ExitCode::SUCCESS)
}
