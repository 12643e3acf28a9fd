// SPDX-License-Identifier: MIT OR Apache-2.0
//! The measuring loop over a schedule whose intervals are drawn at random around the nominal one.
//!
//! Context: HOT. Units: ns on the schedule's clock.
//! Not here: the even schedule ([`crate::cyclic`]), how due times are drawn ([`crate::spread`]).

use core::sync::atomic::{AtomicBool, Ordering};

use crate::cyclic::{LoopEnd, Port, Schedule, Wake};
use crate::recorder::{Recorder, Writer};
use crate::spread::Spread;

/// Runs the schedule, spread, to its end or until `stop`.
#[inline]
pub fn run<P: Port>(
    port: &mut P,
    schedule: &Schedule,
    spread: &Spread,
    recorder: &Recorder,
    stop: &AtomicBool,
) -> LoopEnd {
    let interval = schedule.interval_ns.max(1);
    let spread = Spread { window_ns: spread.window_ns.min(interval.wrapping_sub(1)), ..*spread };
    let mut writer = Writer::spread(recorder, schedule.first_ns, interval, spread);
    let due_of = |k: u64| {
        schedule
            .first_ns
            .wrapping_add(interval.wrapping_mul(k.cast_signed()))
            .wrapping_add(spread.delay_ns(k))
    };
    let mut activation = 0u64;
    let mut ended = LoopEnd::Complete;
    while activation < schedule.activations {
        if stop.load(Ordering::Relaxed) {
            ended = LoopEnd::Stopped(activation);
            break;
        }
        let due = due_of(activation);
        match port.sleep_until(due) {
            Wake::Due => {}
            Wake::Interrupted => continue,
            Wake::Failed(errno) => {
                ended = LoopEnd::Failed(errno, activation);
                break;
            }
        }
        let now = port.now_ns();
        // Number of whole intervals that have passed: activations before that one are due, those
        // after it are not.
        let passed = now.wrapping_sub(schedule.first_ns).max(0).checked_div(interval);
        let within = passed.map_or(0, i64::unsigned_abs).min(schedule.activations);
        let is_due = within < schedule.activations && due_of(within) <= now;
        let next = within.wrapping_add(u64::from(is_due)).max(activation.wrapping_add(1));
        let missed = next.wrapping_sub(activation).wrapping_sub(1);
        writer.wake(activation, due, now, missed);
        activation = next;
    }
    writer.finish();
    ended
}
