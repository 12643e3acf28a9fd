// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tailbound tune plan`: what a profile comes to on this machine. Changes nothing.
//!
//! Context: COLD.

use std::process::ExitCode;

use crate::cli_tune::PlanTuneArgs;
use crate::input;
use crate::say::{self, Failure};

use super::{recipe, text};

/// `tailbound tune plan`
pub(super) fn plan(args: &PlanTuneArgs) -> Result<ExitCode, Failure> {
    let plan = recipe::plan(&recipe::of(&args.recipe)?)?;
    let json = || serde_json::to_value(&plan).map_err(Failure::cannot);
    if let Some(path) = &args.out {
        let text = serde_json::to_string_pretty(&plan).map_err(Failure::cannot)?;
        input::write(path, &format!("{text}\n"), args.force)?;
    }
    if args.script {
        say::answer(&plan.script())?;
    } else if args.undo_script {
        say::answer(&plan.undo_script())?;
    } else if args.json {
        say::answer_json(&json()?)?;
    } else {
        say::answer(&text::plan(&plan, args.all))?;
        if let Some(path) = &args.out {
            say::answer(&format!("\nPlan  {}", path.display()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
