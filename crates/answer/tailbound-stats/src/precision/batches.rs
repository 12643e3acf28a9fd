// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long stretches must be so that neighbours say something new: doubled until their lag-1
//! correlation is no more than chance, and once again where it was not at first.
//!
//! Units: seconds of the schedule.
//! Where a state of the machine lasts longer than a stretch, neighbours are of one state: their
//! spread is too small, and so are all half-widths. Correlation is looked for in the shares of values
//! beyond the run's median, p90 and p99.
//! Source: Law and Carson 1979 (sequential batch means); Fishman and Yarberry 1997 (doubling).

use tailbound_core::number::Real as _;

use super::series::Series;

/// Fewest stretches that are left.
const LEFT_MIN: usize = 10;

/// Quantile of the normal distribution that a correlation must exceed.
const BEYOND_CHANCE: f64 = 1.645;

/// Probabilities of the quantiles whose counts are correlated.
const LOOKED_AT: [f64; 3] = [0.5, 0.9, 0.99];

/// The stretches that half-widths come from, and the correlation of neighbours that is left: `None`
/// where it is no more than chance.
pub(crate) fn batches(series: Series) -> (Series, Option<f64>) {
    let mut series = series;
    let edges = edges(&series);
    let mut lasting = false;
    loop {
        let n = series.stretches.len();
        let found = correlation(&series, &edges);
        let doubled = series.grouped(series.length_s.saturating_mul(2), LEFT_MIN);
        let can = doubled.stretches.len() < n;
        if found <= BEYOND_CHANCE / n.real().sqrt() {
            return (if lasting && can { doubled } else { series }, None);
        }
        if !can {
            return (series, Some(found));
        }
        (series, lasting) = (doubled, true);
    }
}

/// The edges of buckets nearest to the quantiles looked at.
fn edges(series: &Series) -> Vec<i64> {
    let mut all = std::collections::BTreeMap::<i64, u64>::new();
    for (edge, count) in series.stretches.iter().flat_map(|s| &s.cells) {
        let c = all.entry(*edge).or_default();
        *c = c.saturating_add(*count);
    }
    let n = all.values().fold(0u64, |n, c| n.saturating_add(*c)).real();
    let mut below = 0.0;
    let mut wanted = LOOKED_AT.iter().peekable();
    let mut out = Vec::new();
    for (edge, count) in all {
        below += count.real();
        while wanted.next_if(|p| below >= **p * n).is_some() {
            out.push(edge);
        }
    }
    out.dedup();
    out
}

/// The greatest lag-1 correlation of the shares beyond an edge; what chance takes off is added.
fn correlation(series: &Series, edges: &[i64]) -> f64 {
    let k = series.stretches.len().real();
    let n = series.stretches.iter().fold(0u64, |n, s| n.saturating_add(s.n)).real().max(1.0);
    let of = |edge: &i64| {
        let above: Vec<f64> = series.stretches.iter().map(|s| s.above(*edge).real()).collect();
        let share = above.iter().sum::<f64>() / n;
        let off: Vec<f64> =
            above.iter().zip(&series.stretches).map(|(a, s)| a - share * s.n.real()).collect();
        let power: f64 = off.iter().map(|d| d * d).sum();
        let products: f64 = off.windows(2).map(|w| w[0] * w[1]).sum();
        if power > 0.0 { products / power + 1.0 / k } else { 0.0 }
    };
    edges.iter().map(of).fold(0.0, f64::max)
}
