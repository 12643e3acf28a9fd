// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernel calls the clock and the policy of a plan, and whether it allows the policy.
//!
//! Context: SETUP. Units: ns.
//! Source: clock_gettime(2), sched_setattr(2).

use tailbound_core::plan::Clock;
use tailbound_core::policy::Policy;
use tailbound_sys::clock;
use tailbound_sys::error::SysError;
use tailbound_sys::thread;

use crate::thread_group::thread_spec;

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

/// May this process create threads of `policy`? Tries it.
///
/// # Errors
/// What the kernel refused, and what it would need.
pub fn allowed(policy: Policy) -> Result<(), SysError> {
    thread::spawn(thread_spec(policy, Vec::new()), || ())?.join()
}
