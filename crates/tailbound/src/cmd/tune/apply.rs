// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tailbound tune apply`, `confirm`, and the commands that apply a small plan of their own.

use std::process::ExitCode;
use std::time::Duration;

use serde_json::json;
use tailbound_host::Root;
use tailbound_tune::journal::{self, Journal, Places};
use tailbound_tune::{
    HereError, KeepEvent, Plan, Recipe, apply_guarded, apply_here, chosen, keep, needs_root, words,
};

use crate::cli_tune::{ApplyArgs, HowArgs, WhichArgs};
use crate::flags;
use crate::say::{self, Failure};

/// Largest saved plan that is read, in bytes.
const PLAN_MAX: u64 = 64 << 20;
/// Exit status where a change was refused and all were undone.
const REFUSED: u8 = 1;
/// Exit status where something is not as it was.
const LEFT: u8 = 1;

/// `tailbound tune apply`
pub(super) fn apply(args: &ApplyArgs) -> Result<ExitCode, Failure> {
    match &args.plan {
        None if args.keep => kept(&args.recipe.words().recipe()?, &args.how),
        None => recipe(&args.recipe.words().recipe()?, &args.how),
        Some(path) => {
            let bad =
                |e: &dyn std::fmt::Display| Failure::usage(format!("{}: {e}", path.display()));
            let text = tailbound_sys::given::text(path, PLAN_MAX).map_err(|e| bad(&e))?;
            let saved: Plan = serde_json::from_str(&text).map_err(|e| bad(&e))?;
            let plan = tailbound_tune::renewed(&saved, &Root::real())
                .map_err(|e| Failure::cannot(format!("{}: {e}", path.display())))?;
            planned(&plan, &args.how)
        }
    }
}

/// Plans a recipe and applies it.
pub(super) fn recipe(recipe: &Recipe, how: &HowArgs) -> Result<ExitCode, Failure> {
    planned(&super::recipes::plan_of(recipe)?, how)
}

/// `tailbound tune apply --keep`
fn kept(recipe: &Recipe, how: &HowArgs) -> Result<ExitCode, Failure> {
    let left = keep(recipe, &mut |event| match event {
        KeepEvent::Planned(plan) => {
            say::answer(&words::plan(plan, words::PlanRows::all_if(how.all)))
        }
        KeepEvent::InForce => say::answer(
            "\nIn force until this program ends (Ctrl-C); what appears meanwhile is changed too",
        ),
        KeepEvent::Appeared(plan) => say::answer(&words::appeared(plan)),
        KeepEvent::NotNow(why) => {
            say::note(&format!("tailbound: {why}"));
            Ok(())
        }
        KeepEvent::Remark(remark) => {
            say::note(&remark);
            Ok(())
        }
    })?;
    if left == 0 {
        say::answer("Undone: everything as before")?;
        return Ok(ExitCode::SUCCESS);
    }
    Ok(ExitCode::from(LEFT))
}

fn planned(plan: &Plan, how: &HowArgs) -> Result<ExitCode, Failure> {
    let after_ns = how.confirm.as_deref().map(until_undone).transpose()?;
    if !how.json {
        say::answer(&words::plan(plan, words::PlanRows::all_if(how.all)))?;
    }
    if how.dry_run || plan.steps.is_empty() {
        if how.json {
            say::answer_json(&json!({ "applied": false, "plan": plan }))?;
        } else if !how.dry_run {
            say::answer("\nNothing to change")?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let after = after_ns.map(|ns| Duration::from_nanos(ns.unsigned_abs()));
    let applied = match after {
        Some(_) => apply_guarded(plan, after).map(|(applied, _)| applied),
        None => apply_here(plan),
    };
    let applied = match applied {
        Ok(applied) => applied,
        Err(why @ HereError::Step(_)) => {
            say::note(&format!("tailbound: {why}"));
            return Ok(ExitCode::from(REFUSED));
        }
        Err(e) => return Err(Failure::cannot(e)),
    };
    let is_refused = applied.made == 0 && !applied.skipped.is_empty();
    let status = ExitCode::from(if is_refused { REFUSED } else { 0 });
    if how.json {
        say::answer_json(&words::applied_json(plan, &applied))?;
    } else {
        say::answer(&format!("\n{}", words::applied_text(plan, &applied, how.confirm.as_deref())))?;
    }
    Ok(status)
}

/// The time of `--confirm`.
fn until_undone(text: &str) -> Result<i64, Failure> {
    let ns = flags::time("--confirm", text)?;
    if ns > 0 {
        return Ok(ns);
    }
    let shown = tailbound_core::printable::excerpt(text, 40);
    Err(Failure::usage(format!("--confirm {shown}: nobody could confirm it in time")))
}

/// `tailbound tune confirm`
pub(super) fn confirm(args: &WhichArgs) -> Result<ExitCode, Failure> {
    needs_root().map_err(Failure::cannot)?;
    let places = Places::of_machine();
    let _lock = journal::lock(&places).map_err(Failure::cannot)?;
    let all = journal::all(&places).map_err(Failure::cannot)?;
    let transaction = chosen::one(&all, args.number)?;
    Journal::resume(transaction)
        .and_then(|mut j| j.append(&journal::Entry::Confirmed))
        .map_err(Failure::cannot)?;
    say::answer(&format!("Change {} stays", transaction.number))?;
    Ok(ExitCode::SUCCESS)
}
