// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tailbound tune plan`: what a profile comes to on this machine. Changes nothing.

use std::process::ExitCode;

use tailbound_tune::{unit, words};

use crate::cli_tune::PlanTuneArgs;
use crate::input::{self, Existing};
use crate::say::{self, Failure};

/// `tailbound tune plan`
pub(super) fn plan(args: &PlanTuneArgs) -> Result<ExitCode, Failure> {
    let plan = super::recipes::plan_of(&args.recipe.words().recipe()?)?;
    if let Some(path) = &args.out {
        let text = serde_json::to_string_pretty(&plan).map_err(Failure::cannot)?;
        input::write(path, &format!("{text}\n"), Existing::replaced_if(args.force))?;
    }
    if args.systemd_unit {
        let exe = std::env::current_exe().map_err(Failure::cannot)?;
        say::answer(&unit(&exe, &args.recipe.words())?)?;
    } else if args.script {
        say::answer(&plan.script())?;
    } else if args.undo_script {
        say::answer(&plan.undo_script())?;
    } else if args.json {
        say::answer_json(&serde_json::to_value(&plan).map_err(Failure::cannot)?)?;
    } else {
        say::answer(&words::plan(&plan, words::PlanRows::all_if(args.all)))?;
        if let Some(path) = &args.out {
            say::answer(&format!("\nPlan  {}", path.display()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
