// SPDX-License-Identifier: MIT OR Apache-2.0
//! How often each system is later than the deadline, and the ratio of the two rates.
//!
//! Units: shares of due activations.
//! Half a count is added on both sides of the ratio, so that a replicate without exceedances
//! has one too (Haldane); the rates themselves are as counted.

use serde::Serialize;
use tailbound_core::number::Real as _;

use super::block::Block;
use super::interval::{Interval, intervals};
use super::resample::Weights;

/// Exceedances of the deadline on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Exceedance {
    /// The deadline.
    pub deadline_ns: i64,
    /// Later than it, of the first system and of the second.
    pub beyond: [u64; 2],
    /// Number of due activations.
    pub due: [u64; 2],
    /// Ratio of the rates, second to first, with its pointwise interval; absent where neither
    /// system was later, or there are too few units.
    pub ratio: Option<Interval>,
}

/// Counts of all units; `None` where a unit does not know.
pub(super) fn counts(a: &[Block], b: &[Block], deadline_ns: i64) -> Option<Exceedance> {
    let beyond = |units: &[Block]| units.iter().map(|u| u.beyond).sum::<Option<u64>>();
    let due = |units: &[Block]| units.iter().map(|u| u.n).sum::<u64>();
    Some(Exceedance {
        deadline_ns,
        beyond: [beyond(a)?, beyond(b)?],
        due: [due(a), due(b)],
        ratio: None,
    })
}

/// ln of the ratio of the rates under a weighting.
pub(super) fn log_ratio(a: &[Block], b: &[Block], weights: &Weights) -> f64 {
    let rate = |units: &[Block], weights: &[f64]| {
        let (mut beyond, mut due) = (0.5, 1.0);
        for (unit, w) in units.iter().zip(weights) {
            beyond += w * unit.beyond.unwrap_or(0).real();
            due += w * unit.n.real();
        }
        beyond / due
    };
    (rate(b, &weights.b) / rate(a, &weights.a)).ln()
}

/// The interval of the ratio from its replicates.
pub(super) fn interval(
    estimate: f64,
    replicates: Vec<f64>,
    widening: f64,
    confidence: f64,
) -> Option<Interval> {
    let found = intervals(&[estimate], &[replicates], widening, confidence);
    found.first().map(|i| i.map(f64::exp))
}
