// SPDX-License-Identifier: MIT OR Apache-2.0
//! Findings about privileges that the caller could not get: worded here, so that every way
//! to start a run says the same.
//!
//! Source: sched(7), mlockall(2).

use tailbound_core::{Finding, Impact, Policy};

use crate::realtime_right::RealtimeRight;

/// The measured threads could not have `wanted` and ran as `got`, because of `why`.
#[must_use]
pub fn not_realtime(wanted: Policy, got: Policy, why: &RealtimeRight) -> Finding {
    Finding::new(
        "not-realtime",
        Impact::Doubt,
        format!("the measured threads ran as {got}, not as {wanted}: {}", why.cause()),
    )
    .meaning("Without a real-time policy any other program may run first, and the kernel may delay timers by the timer slack (50 µs). The figures do not describe a real-time thread, and cannot show that a deadline is met.")
    .remedy(format!("{} To measure ordinary threads on purpose: --policy other.", why.remedy()))
}

/// Memory could not be locked, because of `why`.
#[must_use]
pub fn not_locked(why: &str) -> Finding {
    Finding::new("not-locked", Impact::Notice, format!("memory is not locked: {why}"))
        .meaning("The kernel may take a page of the measuring loop away at any time, and the next access waits for it; faults inside the loop are counted, and reported if there were any.")
        .remedy("Run as root, give the program CAP_IPC_LOCK, or raise RLIMIT_MEMLOCK (limits.conf: memlock unlimited).")
}
