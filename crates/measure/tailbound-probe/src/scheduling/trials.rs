// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs one trial at every due activation of a schedule, and accounts for all of them.
//!
//! Context: HOT. Units: ns on the plan's clock.
//! What is recorded of a trial is what the probe times in it, from stamp to stamp. Activations
//! that fell due before a trial was over are missed, with the latency the next one would have
//! begun with had it been theirs: the end of that trial less their due time.
//! Source: clock_nanosleep(2), TIMER_ABSTIME.

use std::sync::atomic::{AtomicBool, Ordering};

use tailbound_rt::cyclic::{LoopEnd, Port, Schedule, Wake};
use tailbound_rt::recorder::{Recorder, Writer};
use tailbound_sys::clock;

/// What a trial timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Timed {
    /// The first stamp.
    pub(super) from_ns: i64,
    /// The second.
    pub(super) to_ns: i64,
}

impl Timed {
    /// From the first to the second.
    pub(super) fn span_ns(self) -> i64 {
        self.to_ns.saturating_sub(self.from_ns)
    }
    /// Enters it as what was timed in trial `trial`.
    #[inline]
    pub(super) fn enter(self, trial: u64, writer: &mut Writer<'_>) {
        writer.wake(trial, self.from_ns, self.to_ns, 0);
    }
}

/// A writer into `recorder` for the trials of `schedule`.
pub(super) fn writer<'r>(recorder: &'r Recorder, schedule: &Schedule) -> Writer<'r> {
    Writer::new(recorder, schedule.first_ns, schedule.interval_ns.max(1))
}

/// Runs `play` at every due activation; it gets the `writers`, and enters one time into each.
/// `false` from it ends the run before its time.
///
/// The writers are the caller's: made on its stack or before the phases, because memory that is
/// allocated here may be a page fault in the measured loop.
pub(super) fn run<'r>(
    clock: i32,
    schedule: &Schedule,
    writers: &mut [Writer<'r>],
    stop: &AtomicBool,
    mut play: impl FnMut(u64, &mut [Writer<'r>]) -> bool,
) -> LoopEnd {
    let mut port = clock::Nanosleep(clock);
    let interval = schedule.interval_ns.max(1);
    let (mut due, mut trial) = (schedule.first_ns, 0u64);
    let mut ended = LoopEnd::Complete;
    while trial < schedule.activations {
        if stop.load(Ordering::Relaxed) {
            ended = LoopEnd::Stopped(trial);
            break;
        }
        match port.sleep_until(due) {
            Wake::Due => {}
            Wake::Interrupted => continue,
            Wake::Failed(errno) => {
                ended = LoopEnd::Failed(errno, trial);
                break;
            }
        }
        if !play(trial, writers) {
            ended = LoopEnd::Stopped(trial);
            break;
        }
        let late = port.now_ns().saturating_sub(due).max(0);
        let left = schedule.activations.saturating_sub(trial).saturating_sub(1);
        let missed = (late / interval).unsigned_abs().min(left);
        writers.iter_mut().for_each(|w| w.skipped(late, missed));
        let steps = missed.saturating_add(1);
        trial = trial.saturating_add(steps);
        due = due.saturating_add(interval.saturating_mul(steps.cast_signed()));
    }
    writers.iter_mut().for_each(Writer::finish);
    ended
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_falls_due_during_a_trial_is_missed() {
        let clock = clock::CLOCK_MONOTONIC;
        let schedule =
            Schedule { first_ns: clock::now_ns(clock), interval_ns: 1_000_000, activations: 20 };
        let recorder = Box::<Recorder>::default();
        let stop = AtomicBool::new(false);
        let mut played = Vec::new();
        let ended =
            run(clock, &schedule, &mut [writer(&recorder, &schedule)], &stop, |trial, writers| {
                played.push(trial);
                let from_ns = clock::now_ns(clock);
                // The first one lasts until four more have fallen due, whichever it is where this
                // thread came late.
                let due_ns = schedule.first_ns + 1_000_000 * trial.cast_signed();
                while played.len() == 1 && clock::now_ns(clock) < due_ns + 4_500_000 {}
                let timed = Timed { from_ns, to_ns: from_ns + 10 };
                writers.iter_mut().for_each(|w| timed.enter(trial, w));
                true
            });
        assert_eq!(ended, LoopEnd::Complete);
        let (n, missed) = (recorder.wakeups().n, recorder.missed().n);
        assert_eq!(n, played.len() as u64);
        assert_eq!(n + missed, 20, "every due trial");
        assert!(missed >= 4, "{missed} missed; played {played:?}");
        let ended = run(clock, &schedule, &mut [writer(&recorder, &schedule)], &stop, |_, _| false);
        assert_eq!(ended, LoopEnd::Stopped(0));
    }
}
