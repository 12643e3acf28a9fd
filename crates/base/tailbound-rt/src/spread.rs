// SPDX-License-Identifier: MIT OR Apache-2.0
//! The measuring loop over a schedule whose intervals are drawn at random around the nominal one.
//!
//! Context: HOT. Units: ns on the schedule's clock.
//! Activation k falls due `k * interval` after the first and a random part of a window later. So
//! every due time is known from k alone: the schedule stays absolute, drifts nowhere, and what a
//! late thread missed can be told one by one, and how many those are without a look at each. The
//! window is narrower than the interval, so due times stay in order.
//! Not here: the even schedule ([`crate::cyclic`]).
//! Source: the mixing function is that of SplitMix64 (Steele, Lea, Flood, 2014).

use core::sync::atomic::{AtomicBool, Ordering};

use crate::cyclic::{LoopEnd, Port, Schedule, Wake};
use crate::recorder::{Recorder, Writer};

/// How due times are spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    /// Where the random numbers begin.
    pub seed: u64,
    /// Most that an activation falls due later than on the even schedule; less than the interval.
    pub window_ns: i64,
}

impl Spread {
    /// How much later than on the even schedule activation `k` falls due.
    #[must_use]
    #[inline]
    pub fn delay_ns(&self, k: u64) -> i64 {
        if self.window_ns <= 0 {
            return 0;
        }
        let mut z = self.seed.wrapping_add(k.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        let scaled = u128::from(z).wrapping_mul(u128::from(self.window_ns.unsigned_abs()));
        i64::try_from(scaled >> 64).unwrap_or(0)
    }
}

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
