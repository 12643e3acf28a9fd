// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tailbound tune apply`, `confirm`, and the commands that apply a small plan of their own.

use std::process::ExitCode;
use std::time::Duration;

use serde_json::json;
use tailbound_core::units;
use tailbound_host::Root;
use tailbound_tune::journal::{self, Journal, Places, Transaction};
use tailbound_tune::{HereError, Plan, Recipe, apply_guarded, apply_here, needs_root};

use crate::cli_tune::{ApplyArgs, HowArgs, WhichArgs};
use crate::say::{self, Failure};

use super::keep::keep;
use super::{recipe as recipes, text};

/// Largest saved plan that is read, in bytes.
const PLAN_MAX: u64 = 64 << 20;
/// Exit status where a change was refused and all were undone.
const REFUSED: u8 = 1;

/// `tailbound tune apply`
pub(super) fn apply(args: &ApplyArgs) -> Result<ExitCode, Failure> {
    match &args.plan {
        None if args.keep => keep(&recipes::of(&args.recipe)?, args.how.all),
        None => recipe(&recipes::of(&args.recipe)?, &args.how),
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
    planned(&recipes::plan(recipe)?, how)
}

fn planned(plan: &Plan, how: &HowArgs) -> Result<ExitCode, Failure> {
    let after_ns = how.confirm.as_deref().map(until_undone).transpose()?;
    if !how.json {
        say::answer(&text::plan(plan, how.all))?;
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
        say::answer_json(&json!({
            "applied": applied.made > 0,
            "number": applied.number,
            "made": applied.made,
            "already": applied.already,
            "skipped": applied.skipped,
            "plan": plan,
        }))?;
        return Ok(status);
    }
    let (first, passed) = text::applied(plan, &applied);
    let mut out = format!("\n{first}");
    passed.iter().for_each(|line| out.push_str(&format!("\n  {line}")));
    out.push_str(&match &how.confirm {
        _ if applied.made == 0 => String::new(),
        Some(time) => format!("\nIt is undone in {time} unless you run: tailbound tune confirm"),
        None => "\nTo undo: tailbound tune undo".to_owned(),
    });
    say::answer(&out)?;
    Ok(status)
}

/// The time of `--confirm`.
fn until_undone(text: &str) -> Result<i64, Failure> {
    let ns = units::parse_ns(text).map_err(|e| Failure::usage(format!("--confirm: {e}")))?;
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
    let transaction = one(&all, args.number)?;
    Journal::resume(transaction)
        .and_then(|mut j| j.append(&journal::Entry::Confirmed))
        .map_err(Failure::cannot)?;
    say::answer(&format!("Change {} stays", transaction.number))?;
    Ok(ExitCode::SUCCESS)
}

/// The transaction that was named, or the last that has not ended.
pub(super) fn one(all: &[Transaction], number: Option<u32>) -> Result<&Transaction, Failure> {
    match number {
        Some(n) => all.iter().find(|t| t.number == n).ok_or_else(|| {
            Failure::usage(format!("there is no change {n}: see `tailbound tune history`"))
        }),
        None => all
            .iter()
            .rev()
            .find(|t| !t.has_ended())
            .ok_or_else(|| Failure::usage("nothing is applied: see `tailbound tune history`")),
    }
}
