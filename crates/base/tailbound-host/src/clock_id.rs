// SPDX-License-Identifier: MIT OR Apache-2.0
//! A clock of a plan as the kernel takes it.
//!
//! Context: SETUP. Source: clock_gettime(2).

use tailbound_core::plan::Clock;
use tailbound_sys::clock;

/// The kernel's number of a clock.
#[must_use]
pub fn clock_id(clock: Clock) -> i32 {
    match clock {
        // A plan with a word of a later version is not run: `Plan::unknown_words`.
        Clock::Monotonic | Clock::Unknown(_) => clock::CLOCK_MONOTONIC,
        Clock::Tai => clock::CLOCK_TAI,
        Clock::Boottime => clock::CLOCK_BOOTTIME,
        Clock::Realtime => clock::CLOCK_REALTIME,
    }
}
