// SPDX-License-Identifier: MIT OR Apache-2.0
//! What of a run enters a series: logarithms of its quantiles and of its usual maximum.
//!
//! Units: ns, natural logarithms of ns.

use serde::Serialize;
use tailbound_core::Run;
use tailbound_core::number::Real as _;

use crate::quantile::quantile;

/// Names of the figures, in order.
pub const FIGURES: [&str; 6] = ["p50", "p90", "p99", "p99.9", "p99.99", "block maximum"];

const PROBABILITIES: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 0.9999];

/// The figures of one run; those that its count does not support are absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Features {
    /// ns, as named by [`FIGURES`].
    pub ns: [Option<f64>; 6],
}

impl Features {
    /// The figures of all due activations of `run` where it was measured outermost; the last
    /// one is the median of the greatest value of each second, over all threads.
    #[must_use]
    pub fn of(run: &Run) -> Self {
        if run.threads.is_empty() {
            return Self::default();
        }
        let (_, due) = run.judged_total();
        let mut ns = [None; 6];
        for (place, p) in ns.iter_mut().zip(PROBABILITIES) {
            *place = quantile(&due, p).ns().filter(|v| *v > 0.0);
        }
        if let Some(last) = ns.last_mut() {
            *last = usual_maximum(run);
        }
        Self { ns }
    }

    /// The logarithm of figure `i`.
    #[must_use]
    pub fn ln(&self, i: usize) -> Option<f64> {
        self.ns.get(i).copied().flatten().map(f64::ln)
    }
}

fn usual_maximum(run: &Run) -> Option<f64> {
    let mut maxima = std::collections::BTreeMap::<u64, i64>::new();
    for s in run.seconds.iter().filter(|s| s.n > 0) {
        let max = maxima.entry(s.second).or_insert(i64::MIN);
        *max = (*max).max(s.max_ns);
    }
    let mut all: Vec<i64> = maxima.into_values().collect();
    all.sort_unstable();
    all.get(all.len() / 2).filter(|v| **v > 0).map(|v| v.real())
}
