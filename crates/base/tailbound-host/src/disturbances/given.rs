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
    Finding::listed(
        "not-realtime",
        Impact::Doubt,
        format!("the measured threads ran as {got}, not as {wanted}: {}", why.cause()),
    )
    .remedy(format!("{} To measure ordinary threads on purpose: --policy other.", why.remedy()))
}

/// Memory could not be locked, because of `why`.
#[must_use]
pub fn not_locked(why: &str) -> Finding {
    Finding::listed("not-locked", Impact::Notice, format!("memory is not locked: {why}"))
}
