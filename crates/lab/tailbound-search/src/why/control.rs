// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run that is varied by nothing must be the same: stopped and let go, and with the state of its random numbers written as it was.
//!
//! Units: ns of the guest's virtual time, by QEMU's clock.

use tailbound_lab::LabError;
use tailbound_lab::error::WatchError;
use tailbound_lab::progress::{Moved, Step, TaskListener};
use tailbound_paths::inevitable::Outcome;
use tailbound_paths::random_numbers::RandomNumbers;
use tailbound_paths::varied::{self, Reached, Varies};

use super::base::Base;
use crate::error::SearchError;

/// One outcome, and its instant.
pub(super) type Varied = (Outcome, Option<Reached>);

/// So long before the due time.
const BEFORE_NS: u64 = 1000;

/// The run, varied at an instant.
pub(super) fn one(base: &Base<'_>, at_ns: u64, varies: Varies<'_>) -> Result<Varied, LabError> {
    let variation = base.variation(at_ns, varies);
    let mut log = base.varied(&base.plan, &variation)?;
    let reached = varied::reached(&mut log).map_err(WatchError::Log)?;
    let outcome = base.sample.outcome(&mut log, base.plan.marks()).map_err(WatchError::Log)?;
    let exchanged = reached.and_then(|r| r.exchanged);
    match varies {
        // Nothing is said of numbers that are not known to be others.
        Varies::Numbers(_, seed) if exchanged.is_none_or(|n| (n == 0) != (seed == 0)) => {
            Err(WatchError::RandomNumbers.into())
        }
        _ => Ok((outcome, reached)),
    }
}

/// The sample of the run that is kept in its middle, stopped again and let go, must be the same; if it is not, that of the run from its
/// beginning. None: Ctrl-C came.
pub(super) fn rewound(
    base: &mut Base<'_>,
    shown: &dyn TaskListener,
) -> Result<Option<i64>, SearchError> {
    shown.moved(0, Moved::Step(Step::Control));
    match base.rewind() {
        Err(LabError::Interrupted) => return Ok(None),
        done => done?,
    }
    match same(base, Varies::Not) {
        Err(why) if base.forget_rewound() => {
            shown.note(&format!("each variation begins at the run's beginning: {why}"));
            same(base, Varies::Not)
        }
        found => found,
    }
}

/// As [`rewound`], with the state of the random numbers written as it was.
pub(super) fn numbers(
    base: &Base<'_>,
    numbers: &RandomNumbers,
) -> Result<Option<i64>, SearchError> {
    same(base, Varies::Numbers(numbers, 0))
}

fn same(base: &Base<'_>, varies: Varies<'_>) -> Result<Option<i64>, SearchError> {
    let at = base.sample.due_ns.saturating_sub(BEFORE_NS);
    let outcome = match one(base, at, varies) {
        Err(LabError::Interrupted) => return Ok(None),
        outcome => outcome?.0,
    };
    base.bench.hear();
    let how = match varies {
        Varies::Numbers(..) => "with its random numbers written as they were",
        Varies::Not | Varies::Stop | Varies::Until(_) => "stopped and let go without a change",
    };
    match outcome {
        Outcome::Latency(ns) if ns == base.sample.latency_ns => Ok(Some(ns)),
        Outcome::Latency(ns) => {
            Err(SearchError::ControlDiffers { how, ns, sample_ns: base.sample.latency_ns })
        }
        Outcome::Missed => Err(SearchError::ControlMissed { how }),
    }
}
