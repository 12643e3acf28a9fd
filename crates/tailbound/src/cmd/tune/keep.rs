// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tailbound tune apply --keep`: the change for as long as this program runs, and for what appears
//! meanwhile: threads and interrupts of a device that was plugged in or a service that was started.
//!
//! What was there at the beginning is changed once: another program that changed it
//! since is reported by `tune verify`, and no two programs write in turn.

use std::process::ExitCode;

use tailbound_host::Root;
use tailbound_sys::signal::Signals;
use tailbound_tune::{Appeared, ForNow, Plan, Recipe};

use crate::say::{self, Failure};

use super::{recipe as recipes, text};

/// Between two looks: a look reads the tables of all threads, some milliseconds.
const LOOK_EVERY_MS: i32 = 2_000;
/// Exit status where something is not as it was.
const LEFT: u8 = 1;

/// Applies `recipe` until a signal comes, then undoes all of it.
pub(super) fn keep(recipe: &Recipe, all: bool) -> Result<ExitCode, Failure> {
    // Before the first change: from here on an end by a signal is an end with everything undone.
    let signals = Signals::block_and_open().map_err(Failure::cannot)?;
    let mut appeared = Appeared::since_now(&Root::real()).map_err(Failure::cannot)?;
    let first = recipes::plan(recipe)?;
    say::answer(&text::plan(&first, all))?;
    let mut changes = vec![apply(&first)?];
    say::answer(
        "\nIn force until this program ends (Ctrl-C); what appears meanwhile is changed too",
    )?;
    while signals.wait(LOOK_EVERY_MS).is_none() {
        // What cannot be planned or applied now may be possible at the next look.
        let plan = match recipes::plan(recipe) {
            Ok(plan) => appeared.of(plan),
            Err(e) => {
                say::note(&format!("tailbound: {e}"));
                continue;
            }
        };
        if plan.steps.is_empty() {
            continue;
        }
        let shown: Vec<String> = plan
            .steps
            .iter()
            .map(|s| format!("new: {}: {}", s.target, s.new.as_deref().unwrap_or("none")))
            .collect();
        match apply(&plan) {
            Ok(change) => {
                changes.push(change);
                say::answer(&shown.join("\n"))?;
            }
            Err(e) => say::note(&format!("tailbound: {e}")),
        }
    }
    let mut left = 0;
    while let Some(change) = changes.pop() {
        let report = change.end().map_err(Failure::cannot)?;
        for remark in report.remarks() {
            say::note(&remark);
        }
        left += report.left();
    }
    if left == 0 {
        say::answer("Undone: everything as before")?;
        return Ok(ExitCode::SUCCESS);
    }
    Ok(ExitCode::from(LEFT))
}

fn apply(plan: &Plan) -> Result<ForNow, Failure> {
    ForNow::apply(plan).map_err(Failure::cannot)
}
