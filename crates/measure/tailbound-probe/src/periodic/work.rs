// SPDX-License-Identifier: MIT OR Apache-2.0
//! An amount of work that is always the same, and the loop that does one on each due time.
//!
//! Context: HOT ([`Work::job`], [`run`]: no allocation, lock or panic), SETUP ([`Work::that_takes`]).
//! Units: ns; turns of a loop.
//! The work is arithmetic in registers: what varies is what the machine takes away, not what
//! caches hold.

use std::sync::atomic::{AtomicBool, Ordering};

use tailbound_rt::cyclic::{LoopEnd, Port as _, Schedule, Wake};
use tailbound_rt::recorder::Writer;
use tailbound_sys::clock::{CLOCK_MONOTONIC, Nanosleep, now_ns};

/// Turns timed at once while the speed is found.
const TRIAL_TURNS: u64 = 20_000;
/// Tries; the fastest counts: the others were disturbed.
const TRIES: usize = 40;

/// A fixed number of turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Work {
    pub(super) turns: u64,
}

impl Work {
    /// The work that takes `ns` on an undisturbed CPU like the caller's.
    pub(super) fn that_takes(ns: i64) -> Self {
        let trial = Self { turns: TRIAL_TURNS };
        let time = |_| {
            let from = now_ns(CLOCK_MONOTONIC);
            trial.job();
            now_ns(CLOCK_MONOTONIC).wrapping_sub(from).max(1)
        };
        let fastest = (0..TRIES).map(time).min().unwrap_or(1);
        let turns = i128::from(TRIAL_TURNS) * i128::from(ns.max(1)) / i128::from(fastest);
        Self { turns: u64::try_from(turns).unwrap_or(u64::MAX).max(1) }
    }

    /// Does it once.
    #[inline]
    pub(super) fn job(self) {
        let mut x = std::hint::black_box(1u64);
        let mut left = self.turns;
        while left > 0 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(left);
            left = left.wrapping_sub(1);
        }
        std::hint::black_box(x);
    }
}

/// One due time: its number, when it was due, and when the thread had woken for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    pub(super) n: u64,
    pub(super) due_ns: i64,
    pub(super) woken_ns: i64,
}

/// Does `job` on each due time; records from due to done. A job that is done after later ones
/// fell due has missed them.
#[inline]
pub(super) fn run(
    clock: i32,
    schedule: &Schedule,
    writer: &mut Writer<'_>,
    stop: &AtomicBool,
    mut job: impl FnMut(Due),
) -> LoopEnd {
    let mut sleep = Nanosleep(clock);
    let interval = schedule.interval_ns.max(1);
    let mut due = schedule.first_ns;
    let mut n = 0u64;
    let mut ended = LoopEnd::Complete;
    while n < schedule.activations {
        if stop.load(Ordering::Relaxed) {
            ended = LoopEnd::Stopped(n);
            break;
        }
        match sleep.sleep_until(due) {
            Wake::Due => {}
            Wake::Interrupted => continue,
            Wake::Failed(errno) => {
                ended = LoopEnd::Failed(errno, n);
                break;
            }
        }
        let woken_ns = sleep.now_ns();
        job(Due { n, due_ns: due, woken_ns });
        let done = sleep.now_ns();
        let left = schedule.activations.wrapping_sub(n).wrapping_sub(1);
        let late = done.wrapping_sub(due).max(0);
        let missed = late.checked_div(interval).map_or(0, i64::unsigned_abs).min(left);
        writer.wake(n, due, done, missed);
        let steps = missed.wrapping_add(1);
        n = n.wrapping_add(steps);
        due = due.wrapping_add(interval.wrapping_mul(steps.cast_signed()));
    }
    writer.finish();
    ended
}
