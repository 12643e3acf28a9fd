// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes of the machine that this runs on, one program at a time, by root alone.
//!
//! Context: SETUP, COLD. [`ForNow`] is a change for as long as a process lives: a guard, which is a
//! process of its own, undoes it where that process cannot.
//! Not here: how a plan is applied (`apply`) or undone (`undo`).

use std::ffi::OsString;
use std::io::{PipeWriter, pipe};
use std::os::fd::AsFd as _;
use std::time::Duration;

use tailbound_core::utc;
use tailbound_host::Root;
use tailbound_sys::{clock, process};

use crate::apply::{Applied, ApplyError, apply, find};
use crate::facts::machine_id;
use crate::holder::start_detached;
use crate::journal::{self, JournalError, Places, Transaction};
use crate::machine::Machine;
use crate::step::Plan;
use crate::undo::{Mode, UndoReport, undo};

/// Tries to get the lock from another program, and the time between two: some seconds.
const TRIES: u32 = 100;
const RETRY: Duration = Duration::from_millis(100);

/// Why this machine is not changed.
#[derive(Debug, thiserror::Error)]
pub enum HereError {
    /// Settings belong to root.
    #[error("only root may change settings: run it with sudo")]
    NotRoot,
    /// The journal cannot be kept or read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A kill has left a change half made.
    #[error(
        "change {0} was interrupted and is neither applied nor undone: run `tailbound tune undo {0}` first"
    )]
    Interrupted(u32),
    /// A step was refused, and those before it were undone.
    #[error("{0}. Leave that setting out with --without, or see `tailbound tune plan --all`")]
    Step(ApplyError),
    /// Nobody would undo it.
    #[error("the process that is to undo the change cannot be started: {0}")]
    Guard(String),
}

impl HereError {
    /// Is there no journal any more? Then nothing is known to undo.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Journal(e) if e.is_gone())
    }
}

/// The time, for the journal.
#[must_use]
pub fn now() -> String {
    utc::from_ns(clock::now_ns(clock::CLOCK_REALTIME))
}

/// # Errors
/// [`HereError::NotRoot`].
pub fn needs_root() -> Result<(), HereError> {
    if process::is_root() { Ok(()) } else { Err(HereError::NotRoot) }
}

/// Applies `plan`: all of it, or nothing.
///
/// # Errors
/// [`HereError`].
pub fn apply_here(plan: &Plan) -> Result<Applied, HereError> {
    needs_root()?;
    let places = Places::of_machine();
    let _lock = journal::lock(&places)?;
    let all = journal::all(&places)?;
    if let Some(cut) = all.iter().find(|t| !t.has_ended() && !t.is_applied()) {
        return Err(HereError::Interrupted(cut.number));
    }
    let mut machine = Machine::new(Root::real());
    apply(&mut machine, &places, plan, &now(), &mut |_, _| ()).map_err(|e| match e {
        ApplyError::Journal(e) => HereError::Journal(e),
        e @ ApplyError::Step { .. } => HereError::Step(e),
    })
}

/// Undoes a change of this machine; whoever calls holds the lock.
///
/// # Errors
/// [`JournalError`].
pub fn undo_here(
    places: &Places,
    transaction: &Transaction,
    force: bool,
) -> Result<UndoReport, JournalError> {
    let root = Root::real();
    let booted = transaction.plan().map(|p| p.machine.boot_id.clone()).unwrap_or_default();
    let mode = Mode { force, rebooted: booted != machine_id(&root).boot_id };
    let mut machine = Machine::new(root);
    undo(&mut machine, places, transaction, mode, &now())
}

/// Undoes change `number` unless that was done, or it was confirmed; waits for the lock.
///
/// # Errors
/// [`HereError`].
pub fn undo_unless_confirmed(number: u32) -> Result<Option<UndoReport>, HereError> {
    let places = Places::of_machine();
    let mut tries = TRIES;
    let _lock = loop {
        match journal::lock(&places) {
            Ok(lock) => break lock,
            Err(e) if tries == 0 || !e.is_held() => return Err(e.into()),
            Err(_) => std::thread::park_timeout(RETRY),
        }
        tries -= 1;
    };
    let found = find(&places, number)?.filter(|t| !t.has_ended() && !t.is_confirmed());
    Ok(found.map(|t| undo_here(&places, &t, false)).transpose()?)
}

/// Starts the process that undoes change `number`: after `after`, or, without it, when the pipe that
/// it returns is closed, which the end of this process does.
///
/// # Errors
/// The call that was refused.
pub fn start_guard(number: u32, after: Option<Duration>) -> Result<Option<PipeWriter>, String> {
    let ms = after.map_or(0, |t| t.as_millis().max(1));
    let words: [OsString; 3] =
        ["tune-guard".into(), number.to_string().into(), ms.to_string().into()];
    if after.is_some() {
        return start_detached(&words, None).map(|_| None);
    }
    let (read, write) = pipe().map_err(|e| e.to_string())?;
    start_detached(&words, Some(read.as_fd()))?;
    Ok(Some(write))
}

/// A change that is undone when this value, or the process that holds it, ends.
#[derive(Debug)]
pub struct ForNow {
    applied: Option<Applied>,
    _guarded: Option<PipeWriter>,
}

impl ForNow {
    /// Applies `plan` under guard.
    ///
    /// # Errors
    /// [`HereError`]: nothing is changed then.
    pub fn apply(plan: &Plan) -> Result<Self, HereError> {
        if plan.steps.is_empty() {
            return Ok(Self { applied: None, _guarded: None });
        }
        let applied = apply_here(plan)?;
        match start_guard(applied.number, None) {
            Ok(guarded) => Ok(Self { applied: Some(applied), _guarded: guarded }),
            Err(why) => {
                undo_unless_confirmed(applied.number)?;
                Err(HereError::Guard(why))
            }
        }
    }

    /// What was applied, where there was anything to change.
    #[must_use]
    pub fn applied(&self) -> Option<&Applied> {
        self.applied.as_ref()
    }

    /// Undoes it; what was left because others changed it too.
    ///
    /// # Errors
    /// [`HereError`]: the guard tries again.
    pub fn end(mut self) -> Result<UndoReport, HereError> {
        let Some(applied) = self.applied.take() else { return Ok(UndoReport::default()) };
        Ok(undo_unless_confirmed(applied.number)?.unwrap_or_default())
    }
}

impl Drop for ForNow {
    fn drop(&mut self) {
        if let Some(applied) = self.applied.take() {
            // The guard does what fails here.
            drop(undo_unless_confirmed(applied.number));
        }
    }
}
