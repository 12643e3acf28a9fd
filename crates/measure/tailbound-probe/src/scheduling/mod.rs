// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probes that try the kernel's scheduler and its locks: who runs while who should.
//!
//! Context: SETUP in `check` and `begin`, HOT in the bodies of the threads. Units: ns.
//! Each trial sets up a situation with one right outcome and lets its players stamp what they
//! see; the controller, which is above all of them, judges the stamps when the trial is over. A
//! violation is a finding with its proof, and fails the run whatever the latencies are.
//! Source: sched(7), futex(2); docs/probes/scheduling.md.

mod asleep;
mod bell;
pub(crate) mod football;
mod ledger;
pub(crate) mod migrate;
mod pace;
pub(crate) mod pi;
pub(crate) mod preempt;
pub(crate) mod process;
pub(crate) mod step;
mod trials;
pub(crate) mod wake;

use tailbound_core::number::Real as _;
use tailbound_core::plan::Plan;
use tailbound_core::policy::Policy;
use tailbound_core::record::FigureRecord;
use tailbound_rt::recorder::Recorder;

use crate::allowed::allowed;
use crate::error::ProbeError;
use crate::figures::figure;
use crate::kind::Setup;
use crate::thread_group::Recorders;

/// The errno of a system call the kernel does not have.
const ENOSYS: i32 = 38;

/// The priority of the controller: that of the plan, which must leave room for the players.
fn controller_priority(plan: &Plan, at_least: u8) -> Result<u8, ProbeError> {
    match plan.policy {
        Policy::Fifo(p) if p >= at_least => Ok(p),
        // What a user who may not have real-time threads gets by default.
        Policy::Other if let Err(source) = allowed(Policy::Fifo(at_least)) => {
            Err(ProbeError::NotAllowed { probe: plan.probe.clone(), source })
        }
        policy => Err(ProbeError::Policy {
            probe: plan.probe.clone(),
            policy,
            why: format!("its controller needs fifo:{at_least} or higher, above all its players"),
        }),
    }
}

/// Refuses where threads of SCHED_FIFO are not allowed.
fn realtime_allowed(setup: &Setup<'_>, priority: u8) -> Result<(), ProbeError> {
    allowed(Policy::Fifo(priority))
        .map_err(|source| ProbeError::NotAllowed { probe: setup.plan.probe.clone(), source })
}

/// A span of time for people.
fn span(ns: i64) -> String {
    tailbound_core::units::format_ns(ns.real())
}

/// A part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    WarmUp,
    Measurement,
}

/// The recorder of this part.
fn of_phase(recorders: &Recorders, phase: Phase) -> &Recorder {
    match phase {
        Phase::WarmUp => &recorders.warm_up,
        Phase::Measurement => &recorders.measured,
    }
}

/// A count as a figure of the probe.
fn count(name: &str, n: u64, note: &str) -> FigureRecord {
    figure(name, n.real(), "1", note)
}
