// SPDX-License-Identifier: MIT OR Apache-2.0
//! The process that undoes a change nobody confirmed.
//!
//! It outlives the command and the session that started it, and its priority is
//! above that of what it may have to rescue: a machine that does not answer is why it exists.
//! A guard that spins is ended by RLIMIT_RTTIME.

use std::io::BufRead as _;
use std::time::{Duration, Instant};

use tailbound_sys::limits;
use tailbound_sys::sched::{self, Attributes};
use tailbound_sys::signal::Signals;

use crate::error::TuneError;
use crate::here::{GUARD_DONE, GUARD_LOCK, undo_under, undo_unless_confirmed};
use crate::journal::Lock;

/// Above every thread that a profile sets.
const PRIORITY: u32 = 98;
/// What it may spend without sleeping: an undo is some milliseconds a step.
const BUSY_NS: i64 = 20_000_000_000;
/// Tries to undo, and the time between two: an hour.
const TRIES: u32 = 3600;
const RETRY: Duration = Duration::from_secs(1);

/// Undoes change `number` after so many milliseconds; 0: when standard input ends. It stands before the change is made.
///
/// # Errors
/// [`TuneError`].
pub fn guard(number: u32, ms: u64) -> Result<(), TuneError> {
    // A hang-up of the terminal must not end it.
    let signals = Signals::block_and_open()?;
    limits::guard_realtime(BUSY_NS)?;
    // Without the right it still guards, only less urgently.
    let urgent =
        Attributes { policy: sched::SCHED_FIFO, priority: PRIORITY, ..Attributes::default() };
    drop(sched::set_without_children(0, &urgent));
    let mut lock = Lock::inherited(GUARD_LOCK).ok();
    let mut input = std::io::stdin().lock();
    let mut word = String::new();
    // What cannot be read is the end of whoever makes the change, as no word is.
    drop(input.read_line(&mut word));
    if word.trim_end() == GUARD_DONE {
        return Ok(());
    }
    if !word.is_empty() {
        // The change is made. Whoever made it may be killed before it unlocks.
        lock.take().into_iter().for_each(Lock::release);
    }
    match ms {
        _ if word.is_empty() => {}
        // The end of the pipe is the end of whoever changed something for a while.
        0 => drop(std::io::copy(&mut input, &mut std::io::sink())),
        ms => wait(&signals, Duration::from_millis(ms)),
    }
    // Another program may hold the lock for long, and a full disk may get room.
    let mut tries = TRIES;
    loop {
        let undone = match lock.take() {
            // It was killed in the middle of it, and left the lock to this process: nobody else has this number.
            Some(lock) => {
                let undone = undo_under(&lock, number);
                lock.release();
                undone
            }
            None => undo_unless_confirmed(number),
        };
        match undone {
            Ok(_) => return Ok(()),
            Err(e) if tries == 0 || e.is_gone() => return Err(e.into()),
            Err(_) => std::thread::park_timeout(RETRY),
        }
        tries -= 1;
    }
}

fn wait(signals: &Signals, length: Duration) {
    let until = Instant::now() + length;
    while let Some(left) = until.checked_duration_since(Instant::now()) {
        let ms = i32::try_from(left.as_millis()).unwrap_or(i32::MAX).saturating_add(1);
        signals.wait(ms);
    }
}
