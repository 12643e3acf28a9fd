// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tailbound tune undo`.

use std::process::ExitCode;

use serde_json::{Value, json};
use tailbound_tune::journal::{self, Places, Transaction};
use tailbound_tune::status::{undone_json, undone_text};
use tailbound_tune::{ForeignValues, accept, chosen, needs_root, now, undo_here};

use crate::cli_tune::UndoArgs;
use crate::say::{self, Failure};

/// Exit status where something is not as it was.
const LEFT: u8 = 1;

/// `tailbound tune undo`
pub(super) fn undo(args: &UndoArgs) -> Result<ExitCode, Failure> {
    needs_root().map_err(Failure::cannot)?;
    let places = Places::of_machine();
    let _lock = journal::lock(&places).map_err(Failure::cannot)?;
    let all = journal::all(&places).map_err(Failure::cannot)?;
    let wanted: Vec<&Transaction> = match args.all {
        true => chosen::open(&all),
        false => vec![chosen::one(&all, args.which.number)?],
    };
    let mut answers: Vec<Value> = Vec::new();
    let mut left = 0;
    for transaction in wanted {
        chosen::refuse_ended(transaction)?;
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
        if !args.all && !args.force {
            chosen::refuse_covered(&all, transaction)?;
        }
        let report = undo_here(&places, transaction, ForeignValues::overwritten_if(args.force))
            .map_err(Failure::cannot)?;
        left += report.left();
        answers.push(undone_json(transaction, &report));
        if !args.json {
            say::answer(&undone_text(transaction, &report))?;
        }
    }
    if args.json {
        say::answer_json(&json!({ "changes": answers }))?;
    }
    Ok(ExitCode::from(if left == 0 { 0 } else { LEFT }))
}
