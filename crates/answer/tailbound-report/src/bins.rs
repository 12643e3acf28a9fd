// SPDX-License-Identifier: MIT OR Apache-2.0
//! Histograms re-binned for the eye: about twenty bins a decade, never finer than the source.
//!
//! Units: ns. Every count arrives in exactly one bin; what the source kept
//! out of its buckets is carried beside them, and the greatest value stays exact.
//! Not here: drawing (`svg`, `text::bars`), quantiles (`tailbound-stats`).

use tailbound_core::number::Whole as _;
use tailbound_core::{Distribution, Histogram};

/// Bins of a decade in pictures.
pub const PER_DECADE: u32 = 20;

/// One bin: `low_ns <= value < high_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bin {
    /// Lowest value.
    pub low_ns: u64,
    /// First value that is too great.
    pub high_ns: u64,
    /// Values in it.
    pub count: u64,
}

/// A histogram for display.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bins {
    /// Consecutive bins from the first to the last that holds something, empty ones between included.
    pub bins: Vec<Bin>,
    /// The exact greatest value of what is shown, where known.
    pub max_ns: Option<u64>,
    /// Values that have no bucket, and the least they can be.
    pub unbinned: Option<(u64, u64)>,
}

/// Edges of the bins over all that a histogram can hold, for values in steps of `step_ns`.
#[must_use]
pub fn edges(per_decade: u32, step_ns: u64) -> Vec<u64> {
    let (per_decade, step) = (per_decade.clamp(1, 100), step_ns.max(1));
    let mut out = vec![0];
    for k in 0..=(per_decade * 11) {
        let exact = 10f64.powf(f64::from(k) / f64::from(per_decade));
        let whole = exact.round().whole_u64();
        let edge = whole.div_ceil(step).saturating_mul(step);
        if out.last().is_none_or(|last| edge > *last) {
            out.push(edge);
        }
    }
    out
}

fn rebin(histogram: &Histogram, edges: &[u64]) -> Vec<Bin> {
    let mut counts = vec![0u64; edges.len()];
    for b in histogram.buckets() {
        // Buckets are a hundred times finer than bins: which side of an edge the bucket's
        // middle lies on decides, and a bucket of one value is placed exactly.
        let middle = b.low_ns + (b.width_ns - 1) / 2;
        let at = edges.partition_point(|e| *e <= middle).saturating_sub(1);
        if let Some(c) = counts.get_mut(at) {
            *c = c.saturating_add(b.count);
        }
    }
    let first = counts.iter().position(|c| *c > 0);
    let last = counts.iter().rposition(|c| *c > 0);
    let (Some(first), Some(last)) = (first, last) else {
        return Vec::new();
    };
    let bin = |i: usize| {
        let low_ns = edges.get(i).copied().unwrap_or(0);
        let high_ns = edges.get(i + 1).copied().unwrap_or(low_ns.saturating_mul(2).max(1));
        Bin { low_ns, high_ns, count: counts.get(i).copied().unwrap_or(0) }
    };
    (first..=last).map(bin).collect()
}

impl Bins {
    /// The values at or after their due time.
    #[must_use]
    pub fn late(d: &Distribution, per_decade: u32) -> Self {
        let unbinned = (d.unbinned > 0)
            .then(|| (d.unbinned, u64::try_from(d.unbinned_from_ns.unwrap_or(0)).unwrap_or(0)));
        Self {
            bins: rebin(&d.late, &edges(per_decade, d.resolution_ns)),
            max_ns: d.max_ns.and_then(|m| u64::try_from(m).ok()),
            unbinned,
        }
    }

    /// The values before their due time, by how much.
    #[must_use]
    pub fn early(d: &Distribution, per_decade: u32) -> Self {
        Self {
            bins: rebin(&d.early, &edges(per_decade, d.resolution_ns)),
            max_ns: d.min_ns.filter(|m| *m < 0).map(i64::unsigned_abs),
            unbinned: None,
        }
    }

    /// A bare histogram.
    #[must_use]
    pub fn of(histogram: &Histogram, per_decade: u32) -> Self {
        Self { bins: rebin(histogram, &edges(per_decade, 1)), max_ns: None, unbinned: None }
    }

    /// The greatest count of a bin, unbinned values included.
    #[must_use]
    pub fn peak(&self) -> u64 {
        let binned = self.bins.iter().map(|b| b.count).max().unwrap_or(0);
        binned.max(self.unbinned.map_or(0, |u| u.0))
    }

    /// Least and greatest value that a log axis must reach; `None` if there is nothing.
    #[must_use]
    pub fn span(&self) -> Option<(u64, u64)> {
        let low = self.bins.iter().map(|b| b.low_ns.max(1)).next();
        let low = low.or(self.unbinned.map(|u| u.1.max(1)))?;
        let high = self.bins.last().map_or(0, |b| b.high_ns);
        Some((low, high.max(self.max_ns.unwrap_or(0)).max(self.unbinned.map_or(0, |u| u.1))))
    }

    /// Is this bin the only full one among its neighbours, or does it hold a single value?
    #[must_use]
    pub fn stands_alone(&self, i: usize) -> bool {
        let count = |i: Option<usize>| i.and_then(|i| self.bins.get(i)).map_or(0, |b| b.count);
        let here = count(Some(i));
        here == 1 || (here > 0 && count(i.checked_sub(1)) == 0 && count(Some(i + 1)) == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_count_is_lost_and_none_invented() {
        let mut d = Distribution::default();
        for (v, c) in [(0, 2), (1, 1), (999, 5), (1000, 7), (54_025_926, 1), (i64::MAX, 3)] {
            d.add_many(v, c);
        }
        d.add(-5000);
        let b = Bins::late(&d, PER_DECADE);
        assert_eq!(b.bins.iter().map(|b| b.count).sum::<u64>(), 19);
        for w in b.bins.windows(2) {
            assert_eq!(w[0].high_ns, w[1].low_ns, "bins touch");
        }
        assert_eq!(Bins::early(&d, PER_DECADE).bins.iter().map(|b| b.count).sum::<u64>(), 1);
        assert_eq!(Bins::early(&d, PER_DECADE).max_ns, Some(5000));
    }

    #[test]
    fn a_coarse_source_has_no_comb() {
        let mut d = Distribution { resolution_ns: 1000, ..Distribution::default() };
        for us in 0..40 {
            d.add_many(us * 1000, 10);
        }
        assert!(Bins::late(&d, PER_DECADE).bins.iter().all(|b| b.count > 0));
    }
}
