// SPDX-License-Identifier: MIT OR Apache-2.0
//! P²: estimates of quantiles from five markers each, without keeping the values.
//!
//! Units: those of the values. Memory: 112 bytes per quantile, fixed.
//! The estimates are approximate and must be shown as such: on wake-ups with bursts they were
//! measured to be off by a factor of two and more, and rounded input misleads them. They
//! cannot be merged, and no verdict rests on them. Desired positions are computed from the
//! count, not by increments, which accumulate rounding.
//! Not here: the quantiles that reports rest on ([`mod@crate::quantile`]).
//! Source: Jain and Chlamtac 1985, "The P² algorithm for dynamic calculation of quantiles and
//! histograms without storing observations"; Akinshin 2021 on its positions.

use tailbound_core::number::Real as _;

/// P² estimators of several quantiles, fed with the same values.
#[derive(Clone, Debug, PartialEq)]
pub struct P2 {
    estimators: Vec<Estimator>,
    ignored: u64,
}

/// The estimator of one quantile: plain memory, laid out for C as it stands here.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct Estimator {
    p: f64,
    count: u64,
    heights: [f64; 5],
    /// Ranks of the markers, from 1.
    ranks: [f64; 5],
}

impl P2 {
    /// Estimators of the quantiles `probabilities`, each clamped to 0 to 1.
    #[must_use]
    pub fn new(probabilities: &[f64]) -> Self {
        Self { estimators: probabilities.iter().map(|p| Estimator::new(*p)).collect(), ignored: 0 }
    }

    /// Adds one value; one that is not finite is only counted, in [`P2::ignored`].
    pub fn add(&mut self, x: f64) {
        if !x.is_finite() {
            self.ignored = self.ignored.saturating_add(1);
            return;
        }
        self.estimators.iter_mut().for_each(|e| e.add(x));
    }

    /// Values that were not finite.
    #[must_use]
    pub fn ignored(&self) -> u64 {
        self.ignored
    }

    /// Each probability with its estimate; `None` before the first value.
    #[must_use]
    pub fn estimates(&self) -> Vec<(f64, Option<f64>)> {
        self.estimators.iter().map(|e| (e.p, e.estimate())).collect()
    }
}

impl Estimator {
    /// An estimator of the quantile `p`, clamped to 0 to 1.
    #[must_use]
    pub fn new(p: f64) -> Self {
        let ranks = [1.0, 2.0, 3.0, 4.0, 5.0];
        Self { p: p.clamp(0.0, 1.0), count: 0, heights: [0.0; 5], ranks }
    }

    /// Adds one value, which must be finite.
    pub fn add(&mut self, x: f64) {
        let seen = usize::try_from(self.count).unwrap_or(usize::MAX);
        self.count = self.count.saturating_add(1);
        if let Some(height) = self.heights.get_mut(seen) {
            *height = x;
            if let Some(first) = self.heights.get_mut(..=seen) {
                first.sort_unstable_by(f64::total_cmp);
            }
            return;
        }
        let [q0, q1, q2, q3, q4] = self.heights;
        // The number of the cell that x falls into; the markers above it move up.
        let cell = if x < q0 {
            self.heights[0] = x;
            0
        } else if x >= q4 {
            self.heights[4] = x;
            3
        } else {
            [q1, q2, q3].iter().filter(|q| x >= **q).count()
        };
        self.ranks.iter_mut().skip(cell + 1).for_each(|rank| *rank += 1.0);
        let last = (self.count - 1).real();
        let p = self.p;
        for (i, share) in [(1, p / 2.0), (2, p), (3, f64::midpoint(1.0, p))] {
            self.adjust(i, last * share + 1.0);
        }
    }

    /// Moves marker `i` (1 to 3) by at most one rank towards `desired`.
    fn adjust(&mut self, i: usize, desired: f64) {
        let [below, here, above] = [i - 1, i, i + 1].map(|k| self.ranks[k]);
        let [low, q, high] = [i - 1, i, i + 1].map(|k| self.heights[k]);
        let distance = desired - here;
        let step = if distance >= 1.0 && above - here > 1.0 {
            1.0
        } else if distance <= -1.0 && below - here < -1.0 {
            -1.0
        } else {
            return;
        };
        let parabolic = q + step / (above - below)
            * ((here - below + step) * (high - q) / (above - here)
                + (above - here - step) * (q - low) / (here - below));
        self.heights[i] = if low < parabolic && parabolic < high {
            parabolic
        } else if step > 0.0 {
            q + (high - q) / (above - here)
        } else {
            q - (low - q) / (below - here)
        };
        self.ranks[i] += step;
    }

    /// The estimate; `None` before the first value.
    #[must_use]
    pub fn estimate(&self) -> Option<f64> {
        if self.count > 5 {
            return Some(self.heights[2]);
        }
        // The values are all there: the exact one of rank ceil(p·n).
        let rank = (1..self.count).filter(|r| (r.real()) < self.p * self.count.real()).count();
        let seen = usize::try_from(self.count).unwrap_or(0);
        self.heights.get(..seen).and_then(|q| q.get(rank)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PAPER: [f64; 20] = [
        0.02, 0.15, 0.74, 3.39, 0.83, 22.37, 10.15, 15.43, 38.62, 15.92, 34.60, 10.28, 1.47, 0.40,
        0.05, 11.39, 0.27, 0.42, 0.09, 11.37,
    ];

    /// The worked example of the paper, markers 2 to 4 and all ranks after each value from the
    /// fifth on. (Marker 1 and 5 are the extremes.)
    const STEPS: [([f64; 3], [u32; 5]); 16] = [
        ([0.15, 0.74, 0.83], [1, 2, 3, 4, 5]),
        ([0.15, 0.74, 0.83], [1, 2, 3, 4, 6]),
        ([0.15, 0.74, 4.465], [1, 2, 3, 5, 7]),
        ([0.15, 2.178_333, 8.5925], [1, 2, 4, 6, 8]),
        ([0.869_444, 4.752_685, 15.516_991], [1, 3, 5, 7, 9]),
        ([0.869_444, 4.752_685, 15.516_991], [1, 3, 5, 7, 10]),
        ([0.869_444, 9.274_705, 21.572_663], [1, 3, 6, 8, 11]),
        ([0.869_444, 9.274_705, 21.572_663], [1, 3, 6, 9, 12]),
        ([2.132_463, 9.274_705, 21.572_663], [1, 4, 7, 10, 13]),
        ([2.132_463, 9.274_705, 21.572_663], [1, 5, 8, 11, 14]),
        ([0.730_843, 6.297_302, 21.572_663], [1, 5, 8, 12, 15]),
        ([0.730_843, 6.297_302, 21.572_663], [1, 5, 8, 13, 16]),
        ([0.588_675, 6.297_302, 17.203_904], [1, 5, 9, 13, 17]),
        ([0.588_675, 6.297_302, 17.203_904], [1, 6, 10, 14, 18]),
        ([0.493_895, 4.440_634, 17.203_904], [1, 6, 10, 15, 19]),
        ([0.493_895, 4.440_634, 17.203_904], [1, 6, 10, 16, 20]),
    ];

    #[test]
    fn the_papers_example_to_every_printed_digit() {
        let mut p2 = P2::new(&[0.5]);
        let mut steps = STEPS.iter();
        for (i, x) in PAPER.into_iter().enumerate() {
            p2.add(x);
            if i < 4 {
                continue;
            }
            let Some((markers, ranks)) = steps.next() else { panic!("a step for every value") };
            let e = &p2.estimators[0];
            for (k, want) in markers.iter().enumerate() {
                assert!((e.heights[k + 1] - want).abs() < 5.001e-7, "value {i}: {:?}", e.heights);
            }
            assert_eq!(e.ranks, ranks.map(f64::from), "value {i}");
        }
        assert_eq!(p2.estimators[0].heights[4], 38.62);
        let (_, Some(estimate)) = p2.estimates()[0] else { panic!("twenty values suffice") };
        assert!((estimate - 4.440_634_353_260_338).abs() < 1e-14, "{estimate}");
    }

    #[test]
    fn few_values_are_exact_and_odd_ones_counted() {
        let mut p2 = P2::new(&[0.0, 0.5, 1.0]);
        assert_eq!(p2.estimates()[1], (0.5, None));
        [3.0, f64::NAN, 1.0, 2.0, f64::INFINITY].into_iter().for_each(|x| p2.add(x));
        let estimates: Vec<_> = p2.estimates().iter().map(|e| e.1).collect();
        assert_eq!(estimates, [Some(1.0), Some(2.0), Some(3.0)]);
        assert_eq!(p2.ignored(), 2);
    }

    proptest! {
        #[test]
        fn never_leaves_the_range(values in prop::collection::vec(-1e9f64..1e9, 1..300), p in 0.0f64..1.0) {
            let mut p2 = P2::new(&[p]);
            values.iter().for_each(|x| p2.add(*x));
            let low = values.iter().copied().fold(f64::INFINITY, f64::min);
            let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let got = p2.estimates()[0].1;
            prop_assert!(got.is_some_and(|x| (low..=high).contains(&x)), "{got:?}");
        }
    }
}
