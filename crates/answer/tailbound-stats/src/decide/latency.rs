// SPDX-License-Identifier: MIT OR Apache-2.0
//! Start latency of a system, at the mean, far in the tail and at worst, each with its interval
//! where the data supports one.
//!
//! Units: ns, per due activation.
//! Where runs were cut into stretches the intervals are those of [`crate::precision`]; without
//! stretches the activations are taken as independent, and that is said. The worst value seen
//! has no upper end: nothing here extrapolates.

use serde::Serialize;
use tailbound_core::number::Real as _;
use tailbound_core::{Distribution, Run};

use crate::precision::Precision;
use crate::quantile::{self, Quantile};
use crate::{moments, student};

/// Quantiles of the choice, besides the mean and the worst.
pub const QUANTILES: [f64; 3] = [0.999, 0.9999, 0.99999];
/// The confidence of the intervals.
const CONFIDENCE: f64 = 0.95;

/// One statistic of the start latency.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// `mean`, `p99.9`, `p99.99`, `p99.999`, `worst`.
    pub statistic: String,
    /// Its value.
    pub ns: Option<f64>,
    /// Lower end of its interval.
    pub low_ns: Option<f64>,
    /// Upper end; the worst has none.
    pub high_ns: Option<f64>,
    /// Activations more that it would take.
    pub more: Option<u64>,
}

/// Start latency of one system.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// Due activations.
    pub n: u64,
    /// What the intervals rest on.
    pub intervals: String,
    /// Every statistic.
    pub figures: Vec<Figure>,
    /// How often it was later than a deadline, where there is one.
    pub deadline: Option<Deadline>,
}

/// What was seen against a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Deadline {
    /// The deadline.
    pub ns: i64,
    /// Activations that were later.
    pub beyond: u64,
    /// Those that may have been: their bucket holds the deadline.
    pub unknown: u64,
}

impl Latency {
    /// The statistic of that name.
    #[must_use]
    pub fn figure(&self, statistic: &str) -> Option<&Figure> {
        self.figures.iter().find(|f| f.statistic == statistic)
    }
}

/// Start latency over `runs` of one system; `None` where nothing was measured.
#[must_use]
pub fn latency(runs: &[&Run], deadline_ns: Option<i64>) -> Option<Latency> {
    let mut due = Distribution::default();
    let mut blocks = Vec::new();
    let mut before = 0u64;
    for run in runs {
        due.merge(&run.judged_total().1);
        // One after the other, as if they were one run.
        let end = run.blocks.iter().map(|b| b.second + b.seconds).max().unwrap_or(0);
        blocks.extend(run.blocks.iter().cloned().map(|mut b| {
            b.second = b.second.saturating_add(before);
            b
        }));
        before = before.saturating_add(end);
    }
    if due.n == 0 {
        return None;
    }
    let precision = Precision::of(&blocks, None, &QUANTILES);
    let independent = precision.why_not.is_some();
    let mut figures = vec![mean(&due, &precision)];
    figures.extend(QUANTILES.iter().map(|p| tail(&due, *p, &precision)));
    figures.push(Figure {
        statistic: "worst".to_owned(),
        ns: due.max_ns.map(|ns| ns.real()),
        low_ns: due.max_ns.map(|ns| ns.real()),
        high_ns: None,
        more: None,
    });
    let intervals = match precision.why_not {
        Some(why) if independent => format!(
            "95 %, as if activations were independent of each other ({why}): too narrow where they are not"
        ),
        _ => format!("95 %, {}, {} stretches", precision.method, precision.stretches),
    };
    let deadline = deadline_ns.map(|ns| {
        let (beyond, unknown) = due.beyond(ns);
        Deadline { ns, beyond, unknown }
    });
    Some(Latency { n: due.n, intervals, figures, deadline })
}

fn mean(due: &Distribution, precision: &Precision) -> Figure {
    let ns = due.mean();
    let alone = || {
        let sd = moments::Moments::of_distribution(due).sd_ns?;
        let n = due.n.real();
        Some(student::quantile(f64::midpoint(CONFIDENCE, 1.0), n - 1.0) * sd / n.sqrt())
    };
    let half = if precision.why_not.is_none() { precision.mean_ns } else { alone() };
    let half = half.filter(|h| h.is_finite());
    Figure {
        statistic: "mean".to_owned(),
        ns,
        low_ns: ns.zip(half).map(|(m, h)| m - h),
        high_ns: ns.zip(half).map(|(m, h)| m + h),
        more: None,
    }
}

fn tail(due: &Distribution, p: f64, precision: &Precision) -> Figure {
    let found = quantile::quantile(due, p);
    let more = match found {
        Quantile::Needs { more } => Some(more),
        _ => None,
    };
    let (low_ns, high_ns) = match precision.quantile(p) {
        Some(width) => (width.low_ns, width.high_ns),
        None => {
            // Normal limits of the binomial rank.
            let half = 1.96 * (p * (1.0 - p) / due.n.real()).sqrt();
            (at(due, p - half), at(due, p + half))
        }
    };
    let ns = found.ns();
    let known = |end: Option<f64>| ns.and(end);
    Figure {
        statistic: quantile::label(p),
        ns,
        low_ns: known(low_ns),
        high_ns: known(high_ns),
        more,
    }
}

fn at(due: &Distribution, p: f64) -> Option<f64> {
    if p < 1.0 { quantile::quantile(due, p).ns() } else { None }
}
