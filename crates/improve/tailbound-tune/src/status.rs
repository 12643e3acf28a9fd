// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was changed, whether it is still so, and what undoing it came to: for people and for scripts.
//!
//! Not here: reading the journal (`journal`), what a plan comes to in words (`words`).

use serde_json::{Value, json};
use tailbound_host::Root;
use tailbound_report::table::Table;

use crate::facts::machine_id;
use crate::journal::Transaction;
use crate::machine::{Machine, shown};
use crate::step::Step;
use crate::undo::{HeirOutcome, UndoReport, heir_sentence};
use crate::verify::{Drift, verify};
use crate::words::changes;

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

/// Changes side by side, for scripts.
#[must_use]
pub fn changes_json(all: &[&Transaction]) -> Value {
    let row = |t: &&Transaction| {
        json!({
            "number": t.number,
            "time": t.time(),
            "name": t.plan().map(|p| p.name.clone()),
            "rt_cpus": t.plan().map(|p| p.rt_cpus.clone()),
            "changes": t.made().len(),
            "state": state(t),
            "boot_id": t.plan().map(|p| p.machine.boot_id.clone()),
        })
    };
    json!({ "changes": all.iter().map(row).collect::<Vec<_>>() })
}

/// Changes side by side, in so many columns.
#[must_use]
pub fn changes_text(all: &[&Transaction], width: usize) -> String {
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
    table.text(width).join("\n")
}

/// A change, compared with the machine as it is now.
#[derive(Debug)]
pub struct Verification {
    number: u32,
    rebooted: bool,
    steps: Vec<(Step, Drift)>,
}

impl Verification {
    /// Looks at what `transaction` changed; reads only.
    #[must_use]
    pub fn of(transaction: &Transaction) -> Self {
        let root = Root::real();
        let boot_id = machine_id(&root).boot_id;
        Self {
            number: transaction.number,
            rebooted: transaction.plan().is_some_and(|p| p.machine.boot_id != boot_id),
            steps: verify(&Machine::new(root.clone()), &root, transaction),
        }
    }

    /// Steps that are not as they were made, or of which nothing is known.
    #[must_use]
    pub fn drifted(&self) -> usize {
        self.steps.iter().filter(|(_, d)| is_changed(d)).count()
    }

    /// For people.
    #[must_use]
    pub fn text(&self) -> String {
        let of = self.steps.len();
        let mut out =
            format!("Change {}: {} of {} in force", self.number, of - self.drifted(), changes(of));
        if self.rebooted {
            out.push_str("; the machine was booted since, which ended what was not a file");
        }
        for (step, drift) in self.steps.iter().filter(|(_, d)| is_changed(d)) {
            out.push_str(&format!("\n  {}: {}", step.target, sentence(drift)));
        }
        out
    }

    /// For scripts.
    #[must_use]
    pub fn json(&self) -> Value {
        let gone = self.steps.iter().filter(|(_, d)| matches!(d, Drift::Gone(_))).count();
        let rows: Vec<Value> = self.steps.iter().map(|(s, d)| drift_json(s, d)).collect();
        json!({
            "number": self.number, "rebooted": self.rebooted, "changed": self.drifted(), "gone": gone, "steps": rows,
        })
    }
}

fn is_changed(drift: &Drift) -> bool {
    matches!(drift, Drift::Changed { .. } | Drift::Unknown(_))
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

fn drift_json(step: &Step, drift: &Drift) -> Value {
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

/// What undoing `transaction` came to, for people.
#[must_use]
pub fn undone_text(transaction: &Transaction, report: &UndoReport) -> String {
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

/// The same for scripts.
#[must_use]
pub fn undone_json(transaction: &Transaction, report: &UndoReport) -> Value {
    let outcomes: Vec<Value> = report
        .outcomes
        .iter()
        .map(|(step, outcome)| json!({ "step": step, "outcome": outcome }))
        .collect();
    json!({ "number": transaction.number, "left": report.left(), "steps": outcomes,
        "inherited": report.heirs, "inherited_unknown": report.heirs_unknown,
    })
}
