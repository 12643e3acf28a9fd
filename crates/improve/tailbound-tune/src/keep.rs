// SPDX-License-Identifier: MIT OR Apache-2.0
//! A change for as long as this program runs, and for what appears meanwhile: threads and interrupts of a
//! device that was plugged in or a service that was started.
//!
//! What was there at the beginning is changed once: another program that changed it
//! since is reported by [`crate::verify()`], and no two programs write in turn.
//! Not here: what is printed of it (the caller).

use tailbound_host::Root;
use tailbound_sys::signal::Signals;

use crate::appeared::Appeared;
use crate::error::TuneError;
use crate::here::ForNow;
use crate::step::{Plan, Recipe};

/// Between two looks: a look reads the tables of all threads, some milliseconds.
const LOOK_EVERY_MS: i32 = 2_000;

/// What a caller is told while a change is kept.
#[derive(Debug)]
pub enum KeepEvent<'a> {
    /// This is done next.
    Planned(&'a Plan),
    /// It is done.
    InForce,
    /// Something appeared, and this was changed too.
    Appeared(&'a Plan),
    /// What appeared cannot be changed now; it is tried again at the next look.
    NotNow(TuneError),
    /// What undoing it came to.
    Remark(String),
}

/// Applies `recipe` until a signal comes, then undoes all of it; how many settings are not as they were.
///
/// # Errors
/// [`TuneError`], and those of `tell`.
pub fn keep<E: From<TuneError>>(
    recipe: &Recipe,
    tell: &mut dyn FnMut(KeepEvent<'_>) -> Result<(), E>,
) -> Result<usize, E> {
    // Before the first change: from here on an end by a signal is an end with everything undone.
    let signals = Signals::block_and_open().map_err(TuneError::from)?;
    let root = Root::real();
    let mut appeared = Appeared::since_now(&root).map_err(TuneError::Unreadable)?;
    let first = recipe.plan(&root).map_err(TuneError::from)?;
    tell(KeepEvent::Planned(&first))?;
    let mut changes = vec![ForNow::apply(&first).map_err(TuneError::from)?];
    tell(KeepEvent::InForce)?;
    while signals.wait(LOOK_EVERY_MS).is_none() {
        // What cannot be planned or applied now may be possible at the next look.
        let plan = match recipe.plan(&root) {
            Ok(plan) => appeared.of(plan),
            Err(e) => {
                tell(KeepEvent::NotNow(e.into()))?;
                continue;
            }
        };
        if plan.steps.is_empty() {
            continue;
        }
        match ForNow::apply(&plan) {
            Ok(change) => {
                changes.push(change);
                tell(KeepEvent::Appeared(&plan))?;
            }
            Err(e) => tell(KeepEvent::NotNow(e.into()))?,
        }
    }
    let mut left = 0;
    while let Some(change) = changes.pop() {
        let report = change.end().map_err(TuneError::from)?;
        for remark in report.remarks() {
            tell(KeepEvent::Remark(remark))?;
        }
        left += report.left();
    }
    Ok(left)
}
