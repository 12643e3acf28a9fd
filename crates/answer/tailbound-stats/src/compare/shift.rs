// SPDX-License-Identifier: MIT OR Apache-2.0
//! The shift curve: the ratio of two systems' quantiles over the whole range of probabilities.
//!
//! Units: none. Its simultaneous band holds over the whole curve.
//! Source: Doksum 1974; Rousselet, Pernet and Wilcox 2017.

use serde::Serialize;

use super::interval::{Interval, intervals};
use super::resample::Figures;
use crate::quantile::needed;

/// Probabilities of a decade of the tail.
const PER_DECADE: u32 = 8;

/// One point of the curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ShiftPoint {
    /// Probability of being no later.
    pub probability: f64,
    /// Quantile of the second system over that of the first.
    pub ratio: Interval,
}

/// The probabilities that `n` activations have, ascending: from the lowest twentieth on.
pub(super) fn probabilities(n: u64) -> Vec<f64> {
    let body = (1..=9).map(|i| f64::from(i) / 20.0);
    let tail =
        (0..=PER_DECADE * 6).map(|k| 1.0 - 0.5 * 10f64.powf(-f64::from(k) / f64::from(PER_DECADE)));
    body.chain(tail).filter(|p| needed(*p) <= n).collect()
}

/// The curve; points where a quantile is early, zero or censored have no ratio and are left out.
pub(super) fn points(
    grid: &[f64],
    estimate: &Figures,
    replicates: &[Figures],
    wider: f64,
    confidence: f64,
) -> Vec<ShiftPoint> {
    let ratio = |f: &Figures, i: usize| {
        let (a, b) = f.a.get(i).zip(f.b.get(i))?;
        (*a > 0.0 && *b > 0.0 && a.is_finite() && b.is_finite()).then(|| (b / a).ln())
    };
    let mut kept = Vec::new();
    let mut logs = Vec::new();
    let mut columns = Vec::new();
    for (i, p) in grid.iter().enumerate() {
        let column: Option<Vec<f64>> = replicates.iter().map(|f| ratio(f, i)).collect();
        if let Some((log, column)) = ratio(estimate, i).zip(column) {
            kept.push(*p);
            logs.push(log);
            columns.push(column);
        }
    }
    let found = intervals(&logs, &columns, wider, confidence);
    kept.into_iter()
        .zip(found)
        .map(|(probability, i)| ShiftPoint { probability, ratio: i.map(f64::exp) })
        .collect()
}
