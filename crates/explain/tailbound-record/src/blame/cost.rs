// SPDX-License-Identifier: MIT OR Apache-2.0
//! What recording one event costs the thread that makes it, measured on this machine.
//!
//! Context: SETUP. Units: ns. An event that a harmless system call of our own makes is switched on and
//! off: `timer:itimer_state`, by setitimer(2) of a timer that is not set. The difference of the
//! quickest of several rounds is the cost.

use tailbound_sys::{clock, timer};

use crate::own_trace::OwnTrace;

const EVENT: &str = "events/timer/itimer_state/enable";
const ROUNDS: usize = 7;
const CALLS: i64 = 200;

/// Nanoseconds of one event; `None` where it cannot be measured.
pub(crate) fn event_ns(trace: &OwnTrace) -> Option<i64> {
    let instance = &trace.instance;
    let mut quickest = [i64::MAX; 2];
    for _ in 0..ROUNDS {
        for (on, best) in ["0", "1"].into_iter().zip(&mut quickest) {
            instance.set(EVENT, on).ok()?;
            instance.set("tracing_on", on).ok()?;
            let begin = clock::now_ns(clock::CLOCK_MONOTONIC);
            (0..CALLS).for_each(|_| timer::clear_profiling_timer());
            let ns = clock::now_ns(clock::CLOCK_MONOTONIC).saturating_sub(begin);
            *best = (*best).min(ns);
        }
    }
    drop(instance.set("tracing_on", "0"));
    drop(instance.set(EVENT, "0"));
    // What was recorded for this is not of the run.
    drop(instance.set("trace", ""));
    let [without, with] = quickest;
    Some(with.saturating_sub(without).max(0) / CALLS).filter(|ns| *ns > 0)
}
