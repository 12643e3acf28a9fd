// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which of the changes in the journal a person means.

use crate::error::TuneError;
use crate::journal::Transaction;

/// The change that was named, or the last that has not ended.
///
/// # Errors
/// [`TuneError::NoChange`], [`TuneError::NothingApplied`].
pub fn one(all: &[Transaction], number: Option<u32>) -> Result<&Transaction, TuneError> {
    match number {
        Some(n) => all.iter().find(|t| t.number == n).ok_or(TuneError::NoChange(n)),
        None => all.iter().rev().find(|t| !t.has_ended()).ok_or(TuneError::NothingApplied),
    }
}

/// All that have not ended, the last first.
#[must_use]
pub fn open(all: &[Transaction]) -> Vec<&Transaction> {
    all.iter().rev().filter(|t| !t.has_ended()).collect()
}

/// Refuses one that was undone before.
///
/// # Errors
/// [`TuneError::UndoneAlready`].
pub fn refuse_ended(transaction: &Transaction) -> Result<(), TuneError> {
    if transaction.has_ended() {
        return Err(TuneError::UndoneAlready(transaction.number));
    }
    Ok(())
}

/// Refuses one that a later change covers: the same setting would be taken for another program's.
///
/// # Errors
/// [`TuneError::Covered`].
pub fn refuse_covered(all: &[Transaction], transaction: &Transaction) -> Result<(), TuneError> {
    let targets = |t: &Transaction| -> Vec<String> {
        let steps = t.plan().map(|p| p.steps.as_slice()).unwrap_or_default();
        t.made().iter().filter_map(|m| Some(steps.get(m.step)?.target.to_string())).collect()
    };
    let mine = targets(transaction);
    let later = all.iter().filter(|t| t.number > transaction.number && !t.has_ended());
    for other in later {
        if let Some(target) = targets(other).iter().find(|t| mine.contains(t)) {
            return Err(TuneError::Covered { number: other.number, target: target.clone() });
        }
    }
    Ok(())
}
