// SPDX-License-Identifier: MIT OR Apache-2.0
//! A plan and what came of it, for a person.
//!
//! Rows of one setting stand together; a long one is cut unless all is asked for.

use serde_json::{Value, json};

use crate::apply::{Applied, arrow};
use crate::step::{Plan, Step};

/// Rows of one setting that are shown.
const ROWS: usize = 3;
/// Columns for what is changed, before the values.
const WIDE: usize = 56;

/// `1 change`, `2 changes`.
#[must_use]
pub fn changes(n: usize) -> String {
    if n == 1 { "1 change".to_owned() } else { format!("{n} changes") }
}

/// What came of applying `plan`: a sentence, and one for each step that was passed over.
#[must_use]
pub fn applied(plan: &Plan, applied: &Applied) -> (String, Vec<String>) {
    let passed = |(i, why): &(usize, String)| {
        let what = plan.steps.get(*i).map(|s| s.target.to_string()).unwrap_or_default();
        format!("passed over: {what}: {why}")
    };
    let first = match applied.made {
        0 => "Nothing was changed".to_owned(),
        n => format!("Applied as number {}: {}", applied.number, changes(n)),
    };
    (first, applied.skipped.iter().map(passed).collect())
}

/// The rows of a plan that are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanRows {
    /// All, and what there is nothing to do about.
    All,
    /// The first of each setting.
    First,
}

impl PlanRows {
    /// As `--all` says.
    #[must_use]
    pub fn all_if(all: bool) -> Self {
        if all { Self::All } else { Self::First }
    }
}

/// The plan's steps by setting, and what is left out.
#[must_use]
pub fn plan(plan: &Plan, rows: PlanRows) -> String {
    let cpus = match plan.rt_cpus.as_str() {
        "" => String::new(),
        list => format!(", CPUs for real-time work: {list}"),
    };
    let mut out = format!("{}: {}{cpus}\n", plan.name, changes(plan.steps.len()));
    let mut rest = plan.steps.as_slice();
    while let Some(first) = rest.first() {
        let n = rest.iter().take_while(|s| s.setting == first.setting).count();
        let (mine, others) = rest.split_at(n);
        out.push_str(&format!("\n{}\n", first.setting));
        let most = if rows == PlanRows::All || n <= ROWS + 1 { n } else { ROWS };
        for step in mine.iter().take(most) {
            out.push_str(&format!("  {:<WIDE$} {}\n", step.target.to_string(), arrow(step)));
        }
        if most < n {
            out.push_str(&format!("  … and {} more\n", n - most));
        }
        rest = others;
    }
    out.push_str(&left_out(plan, rows));
    out
}

fn left_out(plan: &Plan, rows: PlanRows) -> String {
    let mut out = String::new();
    let (harmless, wanted): (Vec<_>, Vec<_>) = plan.left_out.iter().partition(|l| l.harmless);
    if !wanted.is_empty() {
        out.push_str("\nNot possible here:\n");
        for left in wanted {
            out.push_str(&format!("  {}: {}\n", left.setting, left.why));
        }
    }
    if rows == PlanRows::All && !harmless.is_empty() {
        out.push_str("\nNothing to do:\n");
        for left in harmless {
            out.push_str(&format!("  {}: {}\n", left.setting, left.why));
        }
    } else if !harmless.is_empty() {
        out.push_str(&format!(
            "\n{} more: so already, or this machine has no such thing (--all shows them)\n",
            harmless.len()
        ));
    }
    out
}

/// What came of applying `plan`, and how it is undone: by itself after a time, unless it is confirmed, or by
/// a command.
#[must_use]
pub fn applied_text(plan: &Plan, applied: &Applied, undone_in: Option<&str>) -> String {
    let (mut out, passed) = self::applied(plan, applied);
    passed.iter().for_each(|line| out.push_str(&format!("\n  {line}")));
    out.push_str(&match undone_in {
        _ if applied.made == 0 => String::new(),
        Some(time) => format!("\nIt is undone in {time} unless you run: tailbound tune confirm"),
        None => "\nTo undo: tailbound tune undo".to_owned(),
    });
    out
}

/// The same for scripts.
#[must_use]
pub fn applied_json(plan: &Plan, applied: &Applied) -> Value {
    json!({
        "applied": applied.made > 0,
        "number": applied.number,
        "made": applied.made,
        "already": applied.already,
        "skipped": applied.skipped,
        "plan": plan,
    })
}

/// What was changed because it appeared, a line each.
#[must_use]
pub fn appeared(plan: &Plan) -> String {
    let line = |s: &Step| format!("new: {}: {}", s.target, s.new.as_deref().unwrap_or("none"));
    plan.steps.iter().map(line).collect::<Vec<_>>().join("\n")
}
