// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes the steps of a plan: all, or none.
//!
//! Each step: read → INTENT(old) on the disk → write → read back → DONE. A step that
//! is refused, or that reads back as something else, undoes those before it. A kill at any point
//! leaves a journal from which `undo` restores everything.
//! Not here: what a step is (`machine`), undoing (`undo`).

use tailbound_host::root::Missing;

use crate::journal::{Entry, Journal, JournalError, Places, Transaction};
use crate::machine::{System, change, shown};
use crate::refused::Refused;
use crate::step::{Plan, State, Step};
use crate::undo::{self, UndoReport};

/// What came of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// The transaction's number.
    pub number: u32,
    /// Steps that were made.
    pub made: usize,
    /// Steps of the plan that were so already.
    pub already: usize,
    /// Steps that were passed over, with the reason.
    pub skipped: Vec<(usize, String)>,
}

/// Why a plan was not applied.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The journal cannot be kept: nothing was changed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A step was refused, and those before it were undone.
    #[error("{setting}: {target}: {why}{}", undone.sentence())]
    Step {
        /// The setting.
        setting: String,
        /// What was to be changed.
        target: String,
        /// Why it was not.
        why: String,
        /// What came of undoing the others.
        undone: Box<UndoReport>,
    },
}

/// Applies `plan`; `seen` is told of each step before it is made.
///
/// # Errors
/// [`ApplyError`].
pub fn apply(
    system: &mut dyn System,
    places: &Places,
    plan: &Plan,
    time: &str,
    seen: &mut dyn FnMut(usize, &Step),
) -> Result<Applied, ApplyError> {
    let moment = system.moment().ok();
    let (mut journal, number) = Journal::begin(places, plan, time.to_owned(), moment)?;
    let mut applied = Applied { number, ..Applied::default() };
    for (i, step) in plan.steps.iter().enumerate() {
        seen(i, step);
        match make(system, &mut journal, i, step)? {
            Made::Done => applied.made += 1,
            Made::Already => applied.already += 1,
            Made::Refused(why) if step.may_fail => {
                journal.append(&Entry::Skipped { step: i, why: why.clone() })?;
                applied.skipped.push((i, why));
            }
            Made::Refused(why) => {
                journal.append(&Entry::Skipped { step: i, why: why.clone() })?;
                return Err(roll_back(system, places, number, step, why, time)?);
            }
            Made::Otherwise(why) => {
                return Err(roll_back(system, places, number, step, why, time)?);
            }
        }
    }
    journal.append(&Entry::Applied)?;
    // A change that changed nothing is not one that can be undone.
    if applied.made == 0 {
        journal.append(&Entry::Ended { time: time.to_owned(), left: 0 })?;
    }
    Ok(applied)
}

enum Made {
    Done,
    Already,
    /// Nothing was changed.
    Refused(String),
    /// Something was changed, to something else than was wanted.
    Otherwise(String),
}

fn make(
    system: &mut dyn System,
    journal: &mut Journal,
    i: usize,
    step: &Step,
) -> Result<Made, JournalError> {
    let old = match system.read(&step.target) {
        Ok(old) => old,
        Err(Missing::NotApplicable(why) | Missing::Unknown(why)) => return Ok(Made::Refused(why)),
    };
    if is_already(step, &old) {
        return Ok(Made::Already);
    }
    let anchor = system.anchor(&step.target);
    journal.append(&Entry::Intent { step: i, old, anchor })?;
    match change(system, &step.target, &step.new) {
        Ok(now) => {
            journal.append(&Entry::Done { step: i, now })?;
            Ok(Made::Done)
        }
        Err(Refused::Gone(why) | Refused::Denied(why)) => Ok(Made::Refused(why)),
        Err(e @ Refused::Otherwise { .. }) => {
            let now = system.read(&step.target).unwrap_or_default();
            journal.append(&Entry::Done { step: i, now })?;
            Ok(Made::Otherwise(e.to_string()))
        }
    }
}

fn is_already(step: &Step, old: &State) -> bool {
    use crate::target::Target::{Group, Holder};
    match step.target {
        Group { .. } => step.new.is_some() == old.is_some(),
        // Another holder may ask for another time.
        Holder { .. } => step.new.is_none() && old.is_none(),
        _ => *old == step.new,
    }
}

fn roll_back(
    system: &mut dyn System,
    places: &Places,
    number: u32,
    step: &Step,
    why: String,
    time: &str,
) -> Result<ApplyError, JournalError> {
    let undone = match find(places, number)? {
        Some(transaction) => undo::undo(system, places, &transaction, undo::Mode::default(), time)?,
        None => UndoReport::default(),
    };
    Ok(ApplyError::Step {
        setting: step.setting.clone(),
        target: step.target.to_string(),
        why,
        undone: Box::new(undone),
    })
}

/// The transaction of that number.
///
/// # Errors
/// The journal cannot be read.
pub fn find(places: &Places, number: u32) -> Result<Option<Transaction>, JournalError> {
    Ok(crate::journal::all(places)?.into_iter().find(|t| t.number == number))
}

/// `1 → 0`, for people.
#[must_use]
pub fn arrow(step: &Step) -> String {
    format!("{} → {}", shown(&step.old), shown(&step.new))
}
