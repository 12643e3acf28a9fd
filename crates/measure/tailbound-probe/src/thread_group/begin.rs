// SPDX-License-Identifier: MIT OR Apache-2.0
//! An instant of CLOCK_REALTIME as one of the clock that is measured on, shortly before it.
//!
//! Context: SETUP. Units: ns. Converted at the last moment, so that a step of the clock meanwhile does no harm.

use std::thread;
use std::time::Duration;

use tailbound_sys::clock::{self, CLOCK_REALTIME};

use super::ProbeError;

/// So long before it the clocks are compared.
const MARGIN_NS: i64 = 20_000_000;
/// Of the margin this must be left for the threads.
const LEAST_NS: i64 = 500_000;
const LOOK_NS: i64 = 100_000_000;
/// Pairs of readings; the one that took least is used.
const READINGS: usize = 16;

/// Waits until shortly before it.
pub(super) fn appointed(at_ns: i64, id: i32) -> Result<i64, ProbeError> {
    loop {
        let left_ns = at_ns.saturating_sub(clock::now_ns(CLOCK_REALTIME));
        if left_ns <= MARGIN_NS {
            break;
        }
        let pause_ns = (left_ns - MARGIN_NS).min(LOOK_NS);
        thread::park_timeout(Duration::from_nanos(pause_ns.unsigned_abs()));
    }
    let epoch_ns = at_ns.saturating_add(ahead_ns(id));
    let left_ns = epoch_ns.saturating_sub(clock::now_ns(id));
    if left_ns < LEAST_NS {
        return Err(ProbeError::Late { late_ns: LEAST_NS - left_ns });
    }
    Ok(epoch_ns)
}

/// By how much clock `id` is ahead of CLOCK_REALTIME.
fn ahead_ns(id: i32) -> i64 {
    if id == CLOCK_REALTIME {
        return 0;
    }
    let reading = || {
        let before = clock::now_ns(CLOCK_REALTIME);
        let its = clock::now_ns(id);
        let took = clock::now_ns(CLOCK_REALTIME).saturating_sub(before);
        (took, its.saturating_sub(before.saturating_add(took / 2)))
    };
    // A clock that was stepped back took less than nothing.
    let best = (0..READINGS).map(|_| reading()).filter(|(took, _)| *took >= 0).min();
    best.map_or(0, |(_, ahead)| ahead)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_met_and_one_that_is_over_is_refused() {
        let monotonic = tailbound_sys::clock::CLOCK_MONOTONIC;
        let at_ns = clock::now_ns(CLOCK_REALTIME) + 5_000_000_000;
        let epoch_ns = appointed(at_ns, CLOCK_REALTIME).expect("in time");
        assert_eq!(epoch_ns, at_ns);
        let left_ns = at_ns - clock::now_ns(CLOCK_REALTIME);
        assert!(left_ns <= MARGIN_NS, "{left_ns}");
        let over = appointed(clock::now_ns(CLOCK_REALTIME) - 1_000_000_000, monotonic);
        let over = over.expect_err("over").to_string();
        assert!(over.contains("is over by 1."), "{over}");
    }
}
