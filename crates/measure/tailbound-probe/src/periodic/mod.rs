// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probes of threads that work in every period: deadline threads, fixed work, sets of tasks.
//!
//! Context: SETUP in `check` and `begin`, HOT in the bodies of the threads. Units: ns.
//! Source: sched(7); docs/probes/periodic.md.

pub(crate) mod deadline;
mod deadline_findings;
mod deadline_grid;
mod deadline_options;
pub(crate) mod fixed;
pub(crate) mod load;
mod work;

use tailbound_core::number::Real as _;
use tailbound_core::policy::Policy;

use crate::allowed::allowed;
use crate::error::ProbeError;
use crate::figures::figure;
use crate::kind::Setup;

/// The SCHED_FIFO priority of the plan, which must lie in `range`.
fn priority(
    setup: &Setup<'_>,
    range: std::ops::RangeInclusive<u8>,
    why: &str,
) -> Result<u8, ProbeError> {
    match setup.plan.policy {
        Policy::Fifo(p) if range.contains(&p) => Ok(p),
        // What a user who may not have real-time threads gets by default.
        Policy::Other if let Err(source) = allowed(Policy::Fifo(*range.start())) => {
            Err(ProbeError::NotAllowed { probe: setup.plan.probe.clone(), source })
        }
        policy => Err(ProbeError::Policy {
            probe: setup.plan.probe.clone(),
            policy,
            why: format!("{why}: write fifo:{} to fifo:{}", range.start(), range.end()),
        }),
    }
}

/// A span of time for people.
fn span(ns: i64) -> String {
    tailbound_core::units::format_ns(ns.real())
}
