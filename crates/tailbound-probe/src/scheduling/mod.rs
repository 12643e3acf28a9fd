// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probes that try the kernel's scheduler and its locks: who runs while who should.
//!
//! Context: SETUP in `check` and `begin`, HOT in the bodies of the threads. Units: ns.
//! Each trial sets up a situation with one right outcome and lets its players stamp what they
//! see; the director, which is above all of them, judges the stamps when the trial is over. A
//! violation is a finding with its proof, and fails the run whatever the latencies are.
//! Source: sched(7), futex(2); docs/probes/scheduling.md.

mod bell;
mod ledger;
mod pace;
pub(crate) mod pi;
mod trials;

use tailbound_core::plan::Plan;
use tailbound_core::policy::Policy;

use crate::arm::{ProbeError, allowed};

/// The errno of a system call the kernel does not have.
const ENOSYS: i32 = 38;

/// The priority of the director: that of the plan, which must leave room for the players.
fn director_priority(plan: &Plan, at_least: u8) -> Result<u8, ProbeError> {
    match plan.policy {
        Policy::Fifo(p) if p >= at_least => Ok(p),
        other => Err(ProbeError::Usage(format!(
            "probe {}: --policy {other}: its director needs fifo:{at_least} or higher, above all its players",
            plan.probe
        ))),
    }
}

/// Refuses where threads of SCHED_FIFO are not allowed.
fn realtime_allowed(priority: u8) -> Result<(), ProbeError> {
    allowed(Policy::Fifo(priority)).map_err(|e| ProbeError::Cannot(e.to_string()))
}

/// A span of time for people.
#[expect(clippy::cast_precision_loss, reason = "for people")]
fn span(ns: i64) -> String {
    tailbound_core::units::format_ns(ns as f64)
}
