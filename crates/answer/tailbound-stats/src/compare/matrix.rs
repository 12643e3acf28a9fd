// SPDX-License-Identifier: MIT OR Apache-2.0
//! Units times buckets: the counts of all units of two systems over the union of their occupied
//! buckets, and the quantiles of any weighting of them.
//!
//! Units: ns. Rows are sparse: a weighted sum costs what is occupied.
//! Quantile of probability p: the value of rank p·n, linear inside its bucket; infinite where that
//! rank is a censored value's.

use super::block::{Block, OPEN};
use tailbound_core::number::Real as _;

/// One unit: indices of buckets and their counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    entries: Vec<(u32, f64)>,
}

/// The units of two systems over one set of buckets.
#[derive(Clone, Debug)]
pub(super) struct Matrix {
    /// Lower edge of each bucket.
    low: Vec<f64>,
    /// Width of each; infinite for censored values, which are the last bucket.
    width: Vec<f64>,
    /// Rows of the first and of the second system.
    pub(super) rows: [Vec<Row>; 2],
}

impl Matrix {
    /// Over the union of what is occupied.
    pub(super) fn of(a: &[Block], b: &[Block]) -> Self {
        let mut edges: Vec<(i64, u64)> = a
            .iter()
            .chain(b)
            .flat_map(|block| block.cells.iter().map(|c| (c.low_ns, c.width_ns)))
            .collect();
        edges.sort_unstable();
        edges.dedup();
        let row = |block: &Block| {
            let mut at = 0usize;
            let entries = block.cells.iter().filter_map(|c| {
                let rest = edges.get(at..)?;
                at += rest.partition_point(|e| *e < (c.low_ns, c.width_ns));
                Some((u32::try_from(at).ok()?, c.count.real()))
            });
            Row { entries: entries.collect() }
        };
        Self {
            rows: [a.iter().map(row).collect(), b.iter().map(row).collect()],
            low: edges.iter().map(|e| e.0.real()).collect(),
            width: edges
                .iter()
                .map(|e| if e.1 == OPEN { f64::INFINITY } else { e.1.real() })
                .collect(),
        }
    }

    /// Number of buckets.
    pub(super) fn buckets(&self) -> usize {
        self.low.len()
    }

    /// Lower edge and width of bucket `i`.
    pub(super) fn bucket(&self, i: usize) -> (f64, f64) {
        (self.low.get(i).copied().unwrap_or(0.0), self.width.get(i).copied().unwrap_or(1.0))
    }

    /// Quantiles of a weighting `sum`; `probabilities` ascend.
    pub(super) fn quantiles(&self, sum: &[f64], probabilities: &[f64], out: &mut Vec<f64>) {
        let n: f64 = sum.iter().sum();
        out.clear();
        let (mut below, mut i) = (0.0, 0);
        let last = sum.len().saturating_sub(1);
        for p in probabilities {
            let rank = p * n;
            let mut count = sum.get(i).copied().unwrap_or(0.0);
            while i < last && below + count < rank {
                below += count;
                i += 1;
                count = sum.get(i).copied().unwrap_or(0.0);
            }
            let (low, width) = self.bucket(i);
            // Among censored values nothing is known but that it is great.
            let known = width.is_finite();
            let at = || low + width * (rank - below) / count.max(1.0);
            out.push(if known { at() } else { f64::INFINITY });
        }
    }
}

impl Row {
    /// Adds this unit `weight` times to `sum`.
    pub(super) fn add_to(&self, sum: &mut [f64], weight: f64) {
        for (i, count) in &self.entries {
            if let Some(s) = sum.get_mut(*i as usize) {
                *s += weight * count;
            }
        }
    }
}

/// Weightings that are summed at once: a row is fetched once for all of them, and with a
/// thousand units the fetching is what takes long.
pub(super) const AT_ONCE: usize = 8;

/// The sums of all rows under each of `weightings`. Counts and weights are whole numbers, so the
/// sums are exact and do not depend on their order.
pub(super) fn weigh_all(rows: &[Row], weightings: &[&[f64]], buckets: usize) -> Vec<Vec<f64>> {
    let mut out = Vec::with_capacity(weightings.len());
    for some in weightings.chunks(AT_ONCE) {
        let mut sums = vec![[0.0; AT_ONCE]; buckets];
        for (i, row) in rows.iter().enumerate() {
            let mut weights = [0.0; AT_ONCE];
            for (weight, all) in weights.iter_mut().zip(some) {
                *weight = all.get(i).copied().unwrap_or(0.0);
            }
            if weights.iter().all(|w| *w == 0.0) {
                continue;
            }
            for (at, count) in &row.entries {
                if let Some(sum) = sums.get_mut(*at as usize) {
                    sum.iter_mut().zip(&weights).for_each(|(s, w)| *s += w * count);
                }
            }
        }
        let one = |k: usize| sums.iter().map(|s| s.get(k).copied().unwrap_or(0.0)).collect();
        out.extend((0..some.len()).map(one));
    }
    out
}

/// The sum of all rows, each with its weight.
pub(super) fn weigh(rows: &[Row], weights: &[f64], sum: &mut [f64]) {
    sum.fill(0.0);
    for (row, weight) in rows.iter().zip(weights).filter(|(_, w)| **w != 0.0) {
        row.add_to(sum, *weight);
    }
}
