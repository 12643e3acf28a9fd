// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two ends of a search as they were measured, and the limit between them.

use tailbound_lab::LabError;

use crate::bisect::{Ends, Limit, Measured, Step};
use crate::error::SearchError;

/// The two ends, as they were measured.
pub(super) struct Measurements {
    pub(super) good: Step,
    pub(super) bad: Step,
    pub(super) controls: Vec<Step>,
}

/// The ends, in the order they were asked for; each must have a figure.
pub(super) fn measured(steps: Vec<Option<Step>>) -> Result<Measurements, SearchError> {
    let mut all = Vec::new();
    for step in steps.into_iter().flatten() {
        if let Measured::Unfit(why) = &step.measured {
            let title = step.title.clone().unwrap_or_else(|| step.key.clone());
            return Err(SearchError::EndUnfit { title, why: why.clone() });
        }
        all.push(step);
    }
    let mut all = all.into_iter();
    match (all.next(), all.next()) {
        (Some(good), Some(bad)) => Ok(Measurements { good, bad, controls: all.collect() }),
        _ => Err(LabError::Bug.into()),
    }
}

/// The figure of a step that has one.
pub(super) fn value(step: &Step) -> Option<i64> {
    match step.measured {
        Measured::ValueNs(ns) => Some(ns),
        Measured::Unfit(_) => None,
    }
}

/// What is later is bad: as asked, or between the ends.
pub(super) fn limit(m: &Measurements, asked: Option<i64>) -> Result<Limit, SearchError> {
    let control = |at: usize| m.controls.get(at).and_then(value);
    let ends = Ends {
        good_ns: value(&m.good).into_iter().chain(control(0)).collect(),
        bad_ns: value(&m.bad).into_iter().chain(control(1)).collect(),
    };
    ends.limit(asked).map_err(SearchError::Ends)
}
