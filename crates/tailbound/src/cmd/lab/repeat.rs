// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lab repeat`: the same run again, compared byte for byte.

use std::process::ExitCode;

use tailbound_lab::repeat;

use super::bench;
use super::run::keep;
use crate::cli_lab::LabRepeatArgs;
use crate::input::Existing;
use crate::say::{self, Failure};

/// `tailbound lab repeat`: 0 the same bytes, 1 other bytes, 3 not to be repeated here.
pub(super) fn repeat(args: &LabRepeatArgs) -> Result<ExitCode, Failure> {
    // What was watched was added to the run, and is not repeated.
    let (run, before) = tailbound_files::lab_run(&args.run)?;
    let bench = bench::open(&args.host)?;
    let again = repeat::again(&bench, &run, &before, args.target.as_deref())?;
    if let Some(out) = &args.out {
        keep(out, &again.made, Existing::replaced_if(args.force))?;
    }
    match args.host.json {
        true => say::answer_json(&again.json())?,
        false => say::answer(&again.text())?,
    }
    Ok(ExitCode::from(u8::from(!again.is_identical())))
}
