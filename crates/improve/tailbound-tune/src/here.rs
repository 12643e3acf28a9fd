// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes of the machine that this runs on, one program at a time, by root alone.
//!
//! Context: SETUP, COLD. [`ForNow`] is a change for as long as a process lives: a guard, which is a
//! process of its own, undoes it where that process cannot.
//! Not here: how a plan is applied (`apply`) or undone (`undo`).

use std::ffi::OsString;
use std::io::{self, PipeWriter, Write as _, pipe};
use std::os::fd::AsFd as _;
use std::time::Duration;

use tailbound_core::utc;
use tailbound_host::Root;
use tailbound_sys::{clock, process};

use crate::apply::{Applied, ApplyError, apply, find};
use crate::facts::machine_id;
use crate::holder::{HolderError, start_detached};
use crate::journal::{self, JournalError, Lock, Places, Transaction};
use crate::machine::Machine;
use crate::step::Plan;
use crate::undo::{Mode, UndoReport, undo};

/// Tries to get the lock from another program, and the time between two: some seconds.
const TRIES: u32 = 100;
const RETRY: Duration = Duration::from_millis(100);

/// Where a guard has the lock.
pub const GUARD_LOCK: i32 = 3;
/// What a guard is told: the change is made, and the lock is not the guard's any more; nothing is left to do.
const GUARD_APPLIED: &str = "applied";
/// What a guard is told at the end: nothing is left to do.
pub const GUARD_DONE: &str = "done";

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
    Guard(HolderError),
    /// Whoever was to undo it is gone.
    #[error("the process that is to undo the change cannot be started: it has ended: {0}")]
    GuardEnded(io::Error),
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
    let ready = Ready::new()?;
    ready.apply(plan)
}

/// The machine may be changed: nobody else does, and nothing is half made.
struct Ready {
    places: Places,
    lock: Lock,
    /// Of the change to come.
    number: u32,
}

impl Ready {
    fn new() -> Result<Self, HereError> {
        needs_root()?;
        let places = Places::of_machine();
        let lock = journal::lock(&places)?;
        let all = journal::all(&places)?;
        if let Some(cut) = all.iter().find(|t| !t.has_ended() && !t.is_applied()) {
            return Err(HereError::Interrupted(cut.number));
        }
        Ok(Self { places, lock, number: journal::next_number(&all) })
    }

    fn apply(&self, plan: &Plan) -> Result<Applied, HereError> {
        let mut machine = Machine::new(Root::real());
        apply(&mut machine, &self.places, plan, &now(), &mut |_, _| ()).map_err(|e| match e {
            ApplyError::Journal(e) => HereError::Journal(e),
            e @ ApplyError::Step { .. } => HereError::Step(e),
        })
    }
}

/// Settings that another writer has changed since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignValues {
    /// Put back too.
    Overwritten,
    /// Left.
    Left,
}

impl ForeignValues {
    /// As `--force` says.
    #[must_use]
    pub fn overwritten_if(force: bool) -> Self {
        if force { Self::Overwritten } else { Self::Left }
    }
}

/// Undoes a change of this machine; whoever calls holds the lock.
///
/// # Errors
/// [`JournalError`].
pub fn undo_here(
    places: &Places,
    transaction: &Transaction,
    foreign: ForeignValues,
) -> Result<UndoReport, JournalError> {
    let root = Root::real();
    let booted = transaction.plan().map(|p| p.machine.boot_id.clone()).unwrap_or_default();
    let mode = Mode {
        force: foreign == ForeignValues::Overwritten,
        rebooted: booted != machine_id(&root).boot_id,
    };
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
    let lock = loop {
        match journal::lock(&places) {
            Ok(lock) => break lock,
            Err(e) if tries == 0 || !e.is_held() => return Err(e.into()),
            Err(_) => std::thread::park_timeout(RETRY),
        }
        tries -= 1;
    };
    undo_under(&lock, number)
}

/// The same for whoever has the lock.
///
/// # Errors
/// [`HereError`].
pub fn undo_under(_lock: &Lock, number: u32) -> Result<Option<UndoReport>, HereError> {
    let places = Places::of_machine();
    let found = find(&places, number)?.filter(|t| !t.has_ended() && !t.is_confirmed());
    Ok(found.map(|t| undo_here(&places, &t, ForeignValues::Left)).transpose()?)
}

/// Applies `plan` under a guard, which is a process that undoes it: `after` a time, or, without one, when the
/// pipe that this returns is closed, which the end of this process does.
///
/// The guard stands before anything is changed, and has the lock as well, so that where this process is
/// killed meanwhile nobody else takes the number of the change before the guard has undone it.
///
/// # Errors
/// [`HereError`]: nothing is changed then.
pub fn apply_guarded(
    plan: &Plan,
    after: Option<Duration>,
) -> Result<(Applied, PipeWriter), HereError> {
    let ready = Ready::new()?;
    let mut guard = start_guard(&ready, after).map_err(HereError::Guard)?;
    let applied = ready.apply(plan);
    let word = if applied.is_ok() { GUARD_APPLIED } else { GUARD_DONE };
    // One write, which is whole or not at all.
    let told = guard.write_all(format!("{word}\n").as_bytes());
    ready.lock.release();
    let applied = applied?;
    if let Err(e) = told {
        undo_unless_confirmed(applied.number)?;
        return Err(HereError::GuardEnded(e));
    }
    Ok((applied, guard))
}

fn start_guard(ready: &Ready, after: Option<Duration>) -> Result<PipeWriter, HolderError> {
    let ms = after.map_or(0, |t| t.as_millis().max(1));
    let words: [OsString; 3] =
        ["tune-guard".into(), ready.number.to_string().into(), ms.to_string().into()];
    let (read, write) = pipe()?;
    start_detached(&words, Some(read.as_fd()), Some((ready.lock.as_fd(), GUARD_LOCK)))?;
    Ok(write)
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
        let (applied, guarded) = apply_guarded(plan, None)?;
        Ok(Self { applied: Some(applied), _guarded: Some(guarded) })
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
