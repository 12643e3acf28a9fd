// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the options of the probe `deadline` say.
//!
//! Context: SETUP. Units: ns.

use tailbound_core::number::{Real as _, Whole as _};
use tailbound_core::policy::Policy;
use tailbound_sys::deadline::THREADS_MAX;

use crate::error::ProbeError;
use crate::kind::{PlantedFault, Setup};

/// What the options say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    pub(super) threads: u32,
    pub(super) runtime_ns: u64,
    pub(super) period_ns: i64,
    pub(super) work_ns: i64,
    pub(super) planted: PlantedFault,
}

impl Options {
    /// Reads them.
    ///
    /// # Errors
    /// What the kernel could not do, and how to ask for it.
    pub(super) fn of(setup: &Setup<'_>) -> Result<Self, ProbeError> {
        let options = setup.options();
        let plan = setup.plan;
        let interval = plan.interval_ns;
        let (runtime_ns, period_ns) = match plan.policy {
            Policy::Deadline { runtime_ns, period_ns } => (runtime_ns, period_ns.cast_signed()),
            policy => {
                return Err(ProbeError::Policy {
                    probe: "deadline".to_owned(),
                    policy,
                    why: "its threads are of SCHED_DEADLINE; write for example --policy deadline:200us/1ms".to_owned(),
                });
            }
        };
        if period_ns != interval {
            return Err(ProbeError::OtherPeriod { period_ns, interval_ns: interval });
        }
        let threads = match options.text("threads") {
            None => u64::try_from(setup.cpus().len()).unwrap_or(1).max(1),
            Some(_) => options.count("threads", 1..=THREADS_MAX as u64)?,
        };
        let busy = options.number("busy", 0.0..=10.0)?;
        let work_ns = (runtime_ns.real() * busy).whole_i64();
        let planted = options.plant("stall")?;
        let threads = u32::try_from(threads).unwrap_or(1);
        Ok(Self { threads, runtime_ns, period_ns, work_ns, planted })
    }
}
