// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tailbound tune status`, `verify`, `history`: what was changed, and is it still so?
//!
//! Reads only.

use std::process::ExitCode;

use serde_json::{Value, json};
use tailbound_host::Root;
use tailbound_report::table::Table;
use tailbound_tune::journal::{self, Places, Transaction};
use tailbound_tune::{Drift, Machine, Step, machine_id, shown, verify as look};

use crate::cli_tune::{JsonArg, WhichJsonArgs};
use crate::say::{self, Failure};

use super::apply::one;
use super::text::changes;

/// Exit status where something was changed since.
const CHANGED: u8 = 1;

/// How far a transaction has come.
fn state(transaction: &Transaction) -> &'static str {
    if transaction.has_ended() {
        "undone"
    } else if transaction.is_undoing() {
        "partly undone"
    } else if !transaction.is_applied() {
        "interrupted: run tailbound tune undo"
    } else if transaction.is_confirmed() {
        "applied and confirmed"
    } else {
        "applied"
    }
}

fn read() -> Result<Vec<Transaction>, Failure> {
    tailbound_tune::needs_root().map_err(Failure::cannot)?;
    journal::all(&Places::of_machine()).map_err(Failure::cannot)
}

fn list(all: &[&Transaction], json: bool, none: &str) -> Result<ExitCode, Failure> {
    if json {
        let rows: Vec<Value> = all
            .iter()
            .map(|t| {
                json!({
                    "number": t.number,
                    "time": t.time(),
                    "name": t.plan().map(|p| p.name.clone()),
                    "rt_cpus": t.plan().map(|p| p.rt_cpus.clone()),
                    "changes": t.made().len(),
                    "state": state(t),
                    "boot_id": t.plan().map(|p| p.machine.boot_id.clone()),
                })
            })
            .collect();
        say::answer_json(&json!({ "changes": rows }))?;
        return Ok(ExitCode::SUCCESS);
    }
    if all.is_empty() {
        say::answer(none)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table =
        Table::new(&["number", "time", "what", "CPUs", "state"]).with_words(&[1, 2, 3, 4]);
    for t in all {
        let plan = t.plan();
        table.row(vec![
            t.number.to_string(),
            t.time().to_owned(),
            plan.map(|p| p.name.clone()).unwrap_or_default(),
            plan.map(|p| p.rt_cpus.clone()).unwrap_or_default(),
            state(t).to_owned(),
        ]);
    }
    let style = say::style("auto");
    say::answer_in(&table.text(style.width).join("\n"), style)?;
    Ok(ExitCode::SUCCESS)
}

/// `tailbound tune history`
pub(super) fn history(args: &JsonArg) -> Result<ExitCode, Failure> {
    let all = read()?;
    list(&all.iter().collect::<Vec<_>>(), args.json, "Nothing was ever changed")
}

/// `tailbound tune status`
pub(super) fn status(args: &JsonArg) -> Result<ExitCode, Failure> {
    let all = read()?;
    let now: Vec<&Transaction> = all.iter().filter(|t| !t.has_ended()).collect();
    list(&now, args.json, "Nothing is changed")
}

/// `tailbound tune verify`
pub(super) fn verify(args: &WhichJsonArgs) -> Result<ExitCode, Failure> {
    let all = read()?;
    let transaction = one(&all, args.which.number)?;
    let root = Root::real();
    let booted = transaction.plan().is_some_and(|p| p.machine.boot_id != machine_id(&root).boot_id);
    let machine = Machine::new(root.clone());
    let seen = look(&machine, &root, transaction);
    let changed = |d: &Drift| matches!(d, Drift::Changed { .. } | Drift::Unknown(_));
    let drifted = seen.iter().filter(|(_, d)| changed(d)).count();
    let gone = seen.iter().filter(|(_, d)| matches!(d, Drift::Gone(_))).count();
    if args.json {
        let rows: Vec<Value> = seen.iter().map(|(s, d)| as_json(s, d)).collect();
        say::answer_json(&json!({
            "number": transaction.number, "rebooted": booted, "changed": drifted, "gone": gone, "steps": rows,
        }))?;
    } else {
        let mut out = format!(
            "Change {}: {} of {} in force",
            transaction.number,
            seen.len() - drifted,
            changes(seen.len())
        );
        if booted {
            out.push_str("; the machine was booted since, which ended what was not a file");
        }
        for (step, drift) in seen.iter().filter(|(_, d)| changed(d)) {
            out.push_str(&format!("\n  {}: {}", step.target, sentence(drift)));
        }
        say::answer(&out)?;
    }
    Ok(ExitCode::from(if drifted == 0 { 0 } else { CHANGED }))
}

fn sentence(drift: &Drift) -> String {
    match drift {
        Drift::InForce => "in force".to_owned(),
        Drift::Changed { now, ours, likely } => {
            let who = match likely.as_slice() {
                [] => "by a program that is not known here".to_owned(),
                some => format!("likely by {}", some.join(" or ")),
            };
            format!("is {} instead of {}, changed {who}", shown(now), shown(ours))
        }
        Drift::Gone(why) => why.clone(),
        Drift::Unknown(why) => format!("unknown: {why}"),
    }
}

fn as_json(step: &Step, drift: &Drift) -> Value {
    let (word, more) = match drift {
        Drift::InForce => ("in-force", Value::Null),
        Drift::Changed { now, ours, likely } => {
            ("changed", json!({ "now": now, "ours": ours, "likely": likely }))
        }
        Drift::Gone(why) => ("gone", json!({ "why": why })),
        Drift::Unknown(why) => ("unknown", json!({ "why": why })),
    };
    json!({ "step": step, "state": word, "more": more })
}
