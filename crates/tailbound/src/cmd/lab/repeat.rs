// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lab repeat`: the same run again, compared byte for byte.

use std::process::ExitCode;

use serde_json::json;
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
    let same = again.first_different_line.is_none();
    if args.host.json {
        say::answer_json(&json!({
            "identical": same, "bytes": again.bytes, "first_different_line": again.first_different_line,
            "differences": again.differences,
        }))?;
    } else if same {
        say::answer(&format!(
            "Identical: {} bytes, repeated with {} on this machine.",
            again.bytes, again.qemu
        ))?;
    } else {
        let mut text =
            format!("Different, from line {} on.", again.first_different_line.unwrap_or(0));
        for reason in &again.differences {
            text.push_str(&format!("\n  {reason}"));
        }
        if again.differences.is_empty() {
            text.push_str(
                "\n  Everything that a run is a function of is the same: something is not pinned. Please report it with both files.",
            );
        }
        say::answer(&text)?;
    }
    Ok(ExitCode::from(u8::from(!same)))
}
