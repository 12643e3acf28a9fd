// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the interactive view wants, done as the commands do it: planned, journalled, undoable.
//!
//! What is applied is the plan that was shown.

use std::cell::RefCell;

use tailbound_host::Root;
use tailbound_report::machine::ThreadId;

use super::hands::{Hands, Refused, Wanted};
use crate::apply::{Applied, arrow};
use crate::here::{ForeignValues, apply_here, needs_root, undo_here};
use crate::journal::{self, Places};
use crate::rules::{InterruptRule, ThreadRule};
use crate::step::{Plan, Recipe};
use crate::{chosen, typed, words};

/// Changes this machine.
#[derive(Debug, Default)]
pub(super) struct OwnHands {
    shown: RefCell<Option<(Wanted, Plan)>>,
}

fn refused(why: impl std::fmt::Display) -> Refused {
    Refused(why.to_string())
}

fn of(wanted: &Wanted) -> Recipe {
    let rules = |threads: &[ThreadId], policy: Option<String>, cpus: Option<String>| {
        let rule = |id: &ThreadId| ThreadRule {
            name: String::new(),
            number: Some(id.tid),
            policy: policy.clone(),
            cpus: cpus.clone(),
        };
        threads.iter().map(rule).collect()
    };
    match wanted {
        Wanted::Isolate { cpus } => typed::isolated(&cpus.to_string(), typed::Isolation::Partition),
        Wanted::MoveThreads { threads, cpus } => {
            typed::of_rules("move", rules(threads, None, Some(cpus.to_string())), Vec::new())
        }
        Wanted::SetPolicy { threads, policy } => {
            typed::of_rules("set", rules(threads, Some(policy.to_string()), None), Vec::new())
        }
        Wanted::MoveInterrupts { numbers, cpus } => {
            let rule = |n: &u32| InterruptRule { name: n.to_string(), cpus: cpus.to_string() };
            typed::of_rules("irq", Vec::new(), numbers.iter().map(rule).collect())
        }
    }
}

/// One line: what was done, and the first of what was passed over.
fn told(plan: &Plan, done: &Applied) -> Result<String, Refused> {
    let (mut line, passed) = words::applied(plan, done);
    if let Some(first) = passed.first() {
        line.push_str(&format!("; {first}"));
    }
    if passed.len() > 1 {
        line.push_str(&format!("; and {} more", passed.len() - 1));
    }
    if done.made == 0 { Err(Refused(line)) } else { Ok(line) }
}

impl Hands for OwnHands {
    fn plan(&self, wanted: &Wanted) -> Result<Vec<String>, Refused> {
        let plan = of(wanted).plan(&Root::real()).map_err(refused)?;
        let mut lines: Vec<String> =
            plan.steps.iter().map(|s| format!("{}: {}", s.target, arrow(s))).collect();
        if !lines.is_empty() {
            let wanting = plan.left_out.iter().filter(|l| !l.harmless);
            lines.extend(wanting.map(|l| format!("not possible: {}", l.why)));
        }
        *self.shown.borrow_mut() = Some((wanted.clone(), plan));
        Ok(lines)
    }

    fn apply(&mut self, wanted: &Wanted) -> Result<String, Refused> {
        let shown = self.shown.borrow_mut().take().filter(|(of, _)| of == wanted);
        let plan = match shown {
            Some((_, plan)) => plan,
            None => of(wanted).plan(&Root::real()).map_err(refused)?,
        };
        let done = apply_here(&plan).map_err(refused)?;
        told(&plan, &done)
    }

    fn undo(&mut self) -> Result<String, Refused> {
        needs_root().map_err(refused)?;
        let places = Places::of_machine();
        let _lock = journal::lock(&places).map_err(refused)?;
        let all = journal::all(&places).map_err(refused)?;
        let transaction = chosen::one(&all, None).map_err(refused)?;
        let report = undo_here(&places, transaction, ForeignValues::Left).map_err(refused)?;
        let number = transaction.number;
        match (report.left(), report.remarks().as_slice()) {
            (0, []) => Ok(format!("change {number} is undone")),
            (0, [first, ..]) => Ok(format!("change {number} is undone; {first}")),
            (left, remarks) => Err(Refused(format!(
                "change {number}: {left} left: {}; see tailbound tune undo",
                remarks.first().map_or("", String::as_str)
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::Codec;
    use crate::step::Step;
    use crate::target::Target;

    #[test]
    fn what_was_refused_is_told_with_its_reason() {
        let target = Target::setting("/sys/a", Codec::Text);
        let step = Step { target, old: None, new: None, setting: "a".to_owned(), may_fail: true };
        let plan = Plan { steps: vec![step.clone(), step], ..Plan::default() };
        let why = |i| (i, "Invalid argument".to_owned());
        let none = Applied { number: 33, skipped: vec![why(0), why(1)], ..Applied::default() };
        let want = "Nothing was changed; passed over: /sys/a: Invalid argument; and 1 more";
        assert_eq!(told(&plan, &none), Err(Refused(want.to_owned())));
        let some = Applied { number: 33, made: 1, skipped: vec![why(1)], ..Applied::default() };
        let want = "Applied as number 33: 1 change; passed over: /sys/a: Invalid argument";
        assert_eq!(told(&plan, &some), Ok(want.to_owned()));
        let already = Applied { number: 33, already: 2, ..Applied::default() };
        assert_eq!(told(&plan, &already), Err(Refused("Nothing was changed".to_owned())));
    }
}
