// SPDX-License-Identifier: MIT OR Apache-2.0
//! The clock that a trace runs on beside a schedule.
//!
//! Context: SETUP. Source: Documentation/trace/ftrace.rst, "trace_clock".

use tailbound_core::plan::Clock;
use tailbound_sys::clock;

/// The kernel's number of the clock that a trace beside a schedule on `clock` runs on.
#[must_use]
pub fn trace_clock_id(clock: Clock) -> i32 {
    match clock {
        Clock::Boottime => clock::CLOCK_BOOTTIME,
        Clock::Tai => clock::CLOCK_TAI,
        // The realtime clock may be stepped: no trace runs on it.
        Clock::Monotonic | Clock::Realtime | Clock::Unknown(_) => clock::CLOCK_MONOTONIC,
    }
}

/// Its name, as the file `trace_clock` takes it.
pub(crate) fn trace_clock_name(clock: Clock) -> &'static str {
    match trace_clock_id(clock) {
        clock::CLOCK_BOOTTIME => "boot",
        clock::CLOCK_TAI => "tai",
        _ => "mono",
    }
}
