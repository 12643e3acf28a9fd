// SPDX-License-Identifier: MIT OR Apache-2.0
//! The process that undoes a change nobody confirmed, and the one that holds a request open.
//!
//! Context: COLD. It outlives the command and the session that started it, and its priority is
//! above that of what it may have to rescue: a machine that does not answer is why it exists.
//! A guard that spins is ended by RLIMIT_RTTIME.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use tailbound_sys::limits;
use tailbound_sys::sched::{self, Attributes};
use tailbound_sys::signal::Signals;
use tailbound_tune::holder;
use tailbound_tune::journal::{self, Places};

use crate::say::Failure;

use super::undo;

/// Above every thread that a profile sets.
const PRIORITY: u32 = 98;
/// What it may spend without sleeping: an undo is some milliseconds a step.
const BUSY_NS: i64 = 20_000_000_000;
/// Between two tries to get the lock.
const RETRY: Duration = Duration::from_millis(100);

/// Starts the process that undoes change `number` after `after_ns`.
pub(super) fn start(number: u32, after_ns: i64) -> Result<(), Failure> {
    let ms = (after_ns / 1_000_000).max(1).to_string();
    holder::start_detached(&["tune-guard".into(), number.to_string().into(), ms.into()])
        .map(drop)
        .map_err(|e| Failure::cannot(format!("the change is applied, and nobody guards it: {e}")))
}

/// `tailbound tune-guard NUMBER MILLISECONDS`
pub(crate) fn guard(number: u32, ms: u64) -> Result<ExitCode, Failure> {
    // A hang-up of the terminal must not end it.
    let signals = Signals::block_and_open().map_err(Failure::cannot)?;
    limits::guard_realtime(BUSY_NS).map_err(Failure::cannot)?;
    // Without the right it still guards, only less urgently.
    let urgent =
        Attributes { policy: sched::SCHED_FIFO, priority: PRIORITY, ..Attributes::default() };
    drop(sched::set_without_children(0, &urgent));
    let until = Instant::now() + Duration::from_millis(ms);
    while let Some(left) = until.checked_duration_since(Instant::now()) {
        let wait = i32::try_from(left.as_millis()).unwrap_or(i32::MAX).saturating_add(1);
        signals.wait(wait);
    }
    let places = Places::of_machine();
    loop {
        let Ok(_lock) = journal::lock(&places) else {
            std::thread::park_timeout(RETRY);
            continue;
        };
        let found = tailbound_tune::find(&places, number).map_err(Failure::cannot)?;
        if let Some(transaction) = found.filter(|t| !t.has_ended() && !t.is_confirmed()) {
            undo::of(&places, &transaction, false)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
}

/// `tailbound tune-holder MICROSECONDS NOTE`
pub(crate) fn hold(us: i32, note: &Path) -> Result<ExitCode, Failure> {
    holder::hold(us, note).map_err(Failure::cannot)?;
    Ok(ExitCode::SUCCESS)
}
