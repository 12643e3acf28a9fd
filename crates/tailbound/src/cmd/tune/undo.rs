// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tailbound tune undo`.

use std::process::ExitCode;

use serde_json::{Value, json};
use tailbound_tune::journal::{self, Places, Transaction};
use tailbound_tune::{HeirOutcome, UndoReport, accept, heir_sentence, needs_root, now, undo_here};

use crate::cli_tune::UndoArgs;
use crate::say::{self, Failure};

use super::apply::one;

/// Exit status where something is not as it was.
const LEFT: u8 = 1;

/// `tailbound tune undo`
pub(super) fn undo(args: &UndoArgs) -> Result<ExitCode, Failure> {
    needs_root().map_err(Failure::cannot)?;
    let places = Places::of_machine();
    let _lock = journal::lock(&places).map_err(Failure::cannot)?;
    let all = journal::all(&places).map_err(Failure::cannot)?;
    let chosen: Vec<&Transaction> = if args.all {
        all.iter().rev().filter(|t| !t.has_ended()).collect()
    } else {
        vec![one(&all, args.which.number)?]
    };
    let mut answers: Vec<Value> = Vec::new();
    let mut left = 0;
    for transaction in chosen {
        refuse_ended(transaction)?;
        if args.forget {
            accept(&places, transaction, &now()).map_err(Failure::cannot)?;
            answers.push(json!({ "number": transaction.number, "forgotten": true }));
            if !args.json {
                say::answer(&format!(
                    "Change {} is forgotten; its settings stay",
                    transaction.number
                ))?;
            }
            continue;
        }
        refuse_covered(&all, transaction, args)?;
        let report = undo_here(&places, transaction, args.force).map_err(Failure::cannot)?;
        left += report.left();
        answers.push(as_json(transaction, &report));
        if !args.json {
            say::answer(&text(transaction, &report))?;
        }
    }
    if args.json {
        say::answer_json(&json!({ "changes": answers }))?;
    }
    Ok(ExitCode::from(if left == 0 { 0 } else { LEFT }))
}

fn refuse_ended(transaction: &Transaction) -> Result<(), Failure> {
    if transaction.has_ended() {
        return Err(Failure::usage(format!("change {} was undone already", transaction.number)));
    }
    Ok(())
}

/// A later change of the same setting would be taken for another program's.
fn refuse_covered(
    all: &[Transaction],
    transaction: &Transaction,
    args: &UndoArgs,
) -> Result<(), Failure> {
    let targets = |t: &Transaction| -> Vec<String> {
        let steps = t.plan().map(|p| p.steps.as_slice()).unwrap_or_default();
        t.made().iter().filter_map(|m| Some(steps.get(m.step)?.target.to_string())).collect()
    };
    if args.all || args.force {
        return Ok(());
    }
    let mine = targets(transaction);
    let later = all.iter().filter(|t| t.number > transaction.number && !t.has_ended());
    for other in later {
        if let Some(target) = targets(other).iter().find(|t| mine.contains(t)) {
            return Err(Failure::cannot(format!(
                "change {} came later and changed {target} too: undo it first, or use --all",
                other.number
            )));
        }
    }
    Ok(())
}

fn text(transaction: &Transaction, report: &UndoReport) -> String {
    let n = report.outcomes.len();
    let as_before = report.outcomes.iter().filter(|(_, o)| !o.is_left()).count();
    let mut out = format!("Change {}: {as_before} of {n} as before", transaction.number);
    let is_restored = |h: &&HeirOutcome| h.outcome.as_ref().is_some_and(|o| !o.is_left());
    for line in report.remarks() {
        out.push_str(&format!("\n  {line}"));
    }
    for heir in report.heirs.iter().filter(is_restored) {
        out.push_str(&format!("\n  {}", heir_sentence(heir)));
    }
    if report.left() > 0 {
        out.push_str("\nTo restore them all the same: tailbound tune undo --force; to leave them: tailbound tune undo --forget");
    }
    out
}

fn as_json(transaction: &Transaction, report: &UndoReport) -> Value {
    let outcomes: Vec<Value> = report
        .outcomes
        .iter()
        .map(|(step, outcome)| json!({ "step": step, "outcome": outcome }))
        .collect();
    json!({ "number": transaction.number, "left": report.left(), "steps": outcomes,
        "inherited": report.heirs, "inherited_unknown": report.heirs_unknown,
    })
}
