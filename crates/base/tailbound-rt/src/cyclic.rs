// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sleeps to absolute deadlines and records how late it woke.
//!
//! Context: HOT (no allocation, lock, panic; system calls: the port's sleep, and the
//! clock where it is not in the vDSO). Units: ns on the schedule's clock.
//! The schedule is absolute and every due activation is accounted for: measured, or
//! missed with the latency it would have had. Nothing is skipped silently.
//! Source: clock_nanosleep(2), TIMER_ABSTIME.

use core::sync::atomic::{AtomicBool, Ordering};

use crate::recorder::{Recorder, Writer};

/// How one sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// The time had come.
    Due,
    /// A signal came first: look at the stop flag, then sleep on.
    Interrupted,
    /// The kernel refused, with this errno.
    Failed(i32),
}

/// One measured thread's way to the kernel.
pub trait Port {
    /// Sleeps until `due_ns` on the port's clock.
    fn sleep_until(&mut self, due_ns: i64) -> Wake;
    /// Reads the port's clock.
    fn now_ns(&mut self) -> i64;
}

/// When the activations of one thread fall due: `first_ns + k * interval_ns`, k below `activations`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The first activation.
    pub first_ns: i64,
    /// From one to the next; at least 1.
    pub interval_ns: i64,
    /// How many there are.
    pub activations: u64,
}

/// Why a loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopEnd {
    /// Every activation of the schedule was accounted for.
    Complete,
    /// The stop flag was set; holds the number of activations accounted for.
    Stopped(u64),
    /// The sleep failed with this errno after this many activations.
    Failed(i32, u64),
}

/// Runs the schedule to its end or until `stop`.
///
/// Both timestamps of a cycle (due, woken) exist before anything is recorded.
#[inline]
pub fn run<P: Port>(
    port: &mut P,
    schedule: &Schedule,
    recorder: &Recorder,
    stop: &AtomicBool,
) -> LoopEnd {
    let interval = schedule.interval_ns.max(1);
    let mut writer = Writer::new(recorder, schedule.first_ns, interval);
    let mut due = schedule.first_ns;
    let mut activation = 0u64;
    let mut ended = LoopEnd::Complete;
    while activation < schedule.activations {
        if stop.load(Ordering::Relaxed) {
            ended = LoopEnd::Stopped(activation);
            break;
        }
        match port.sleep_until(due) {
            Wake::Due => {}
            Wake::Interrupted => continue,
            Wake::Failed(errno) => {
                ended = LoopEnd::Failed(errno, activation);
                break;
            }
        }
        let now = port.now_ns();
        let late = now.wrapping_sub(due);
        let left = schedule.activations.wrapping_sub(activation).wrapping_sub(1);
        let missed = if late < interval {
            0
        } else {
            late.checked_div(interval).map_or(0, i64::unsigned_abs).min(left)
        };
        writer.wake(activation, due, now, missed);
        let steps = missed.wrapping_add(1);
        activation = activation.wrapping_add(steps);
        due = due.wrapping_add(interval.wrapping_mul(steps.cast_signed()));
    }
    writer.finish();
    ended
}
