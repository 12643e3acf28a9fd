// SPDX-License-Identifier: MIT OR Apache-2.0
//! The figures that are compared, of all units together, of bootstrap replicates and under
//! exchanged labels.
//!
//! Context: COLD. Units: ns. Rounds are resampled whole and for both systems alike (paired);
//! units that were not made in turn are resampled for each system by itself.
//! Under exchange, the two runs of a round change places with probability one half; units that
//! were not made in turn are dealt anew.
//! Source: Davison and Hinkley 1997, 3.8 and 4.3; Good 2005 (exact permutation tests).

use super::block::Block;
use super::matrix::{Matrix, Row, weigh};
use crate::random::Random;

/// Both systems' figures: quantiles in the order asked for, then the median block maximum.
#[derive(Clone, Debug, Default)]
pub(super) struct Figures {
    pub(super) a: Vec<f64>,
    pub(super) b: Vec<f64>,
}

/// The units of two systems and what is asked of them.
#[derive(Debug)]
pub(super) struct Resampler<'p> {
    pub(super) matrix: Matrix,
    /// Latest of each unit.
    maxima: [Vec<f64>; 2],
    /// Indices of the units by their maxima.
    by_maximum: [Vec<usize>; 2],
    paired: bool,
    probabilities: &'p [f64],
}

/// One weighting of the units.
#[derive(Debug)]
pub(super) struct Weights {
    pub(super) a: Vec<f64>,
    pub(super) b: Vec<f64>,
}

impl<'p> Resampler<'p> {
    /// `paired`: unit k of both systems is round k. `probabilities` ascend.
    pub(super) fn new(a: &[Block], b: &[Block], paired: bool, probabilities: &'p [f64]) -> Self {
        let maxima = |blocks: &[Block]| -> Vec<f64> {
            blocks.iter().map(|u| u.max_ns.unwrap_or(0) as f64).collect()
        };
        let maxima = [maxima(a), maxima(b)];
        let order = |values: &Vec<f64>| {
            let mut order: Vec<usize> = (0..values.len()).collect();
            let at = |i: usize| values.get(i).copied().unwrap_or(0.0);
            order.sort_by(|x, y| at(*x).total_cmp(&at(*y)));
            order
        };
        let by_maximum = [order(&maxima[0]), order(&maxima[1])];
        Self { matrix: Matrix::of(a, b), maxima, by_maximum, paired, probabilities }
    }

    fn units(&self) -> [usize; 2] {
        [self.matrix.rows[0].len(), self.matrix.rows[1].len()]
    }

    /// The figures of all units as they are.
    pub(super) fn estimate(&self) -> Figures {
        let [a, b] = self.units();
        self.weighted(&Weights { a: vec![1.0; a], b: vec![1.0; b] })
    }

    /// The figures under a weighting.
    pub(super) fn weighted(&self, weights: &Weights) -> Figures {
        self.weighted_along(weights, &[]).0
    }

    /// The figures under a weighting, and the quantiles of a whole grid from the same sums.
    pub(super) fn weighted_along(&self, weights: &Weights, grid: &[f64]) -> (Figures, Figures) {
        let (mut out, mut along) = (Figures::default(), Figures::default());
        let mut sum = vec![0.0; self.matrix.buckets()];
        let sides =
            [(&weights.a, &mut out.a, &mut along.a), (&weights.b, &mut out.b, &mut along.b)];
        for (side, (w, figures, curve)) in sides.into_iter().enumerate() {
            let (rows, maxima, order) = match side {
                0 => (&self.matrix.rows[0], &self.maxima[0], &self.by_maximum[0]),
                _ => (&self.matrix.rows[1], &self.maxima[1], &self.by_maximum[1]),
            };
            weigh(rows, w, &mut sum);
            self.matrix.quantiles(&sum, self.probabilities, figures);
            figures.push(weighted_median(maxima, order, w));
            self.matrix.quantiles(&sum, grid, curve);
        }
        (out, along)
    }

    /// One draw of units with replacement.
    pub(super) fn draw(&self, random: &mut Random) -> Weights {
        let [a, b] = self.units();
        let one = |n: usize, random: &mut Random| {
            let mut weights = vec![0.0; n];
            for _ in 0..n {
                if let Some(w) = weights.get_mut(random.below(n)) {
                    *w += 1.0;
                }
            }
            weights
        };
        let wa = one(a, random);
        let wb = if self.paired { wa.clone() } else { one(b, random) };
        Weights { a: wa, b: wb }
    }

    /// The figures after labels were exchanged at random, and the two sums they come from.
    pub(super) fn exchanged(&self, random: &mut Random) -> (Figures, [Vec<f64>; 2]) {
        let [a, b] = self.units();
        let mut to_b: Vec<bool> = std::iter::repeat_n(false, a).chain(vec![true; b]).collect();
        if self.paired {
            for round in 0..a.min(b) {
                if random.coin() {
                    to_b.swap(round, a + round);
                }
            }
        } else {
            random.shuffle(&mut to_b);
        }
        let mut sums = [vec![0.0; self.matrix.buckets()], vec![0.0; self.matrix.buckets()]];
        let mut maxima = [Vec::new(), Vec::new()];
        let [sum_a, sum_b] = &mut sums;
        let rows: Vec<(&Row, f64)> = self
            .matrix
            .rows
            .iter()
            .zip(&self.maxima)
            .flat_map(|(rows, maxima)| rows.iter().zip(maxima.iter().copied()))
            .collect();
        for ((row, maximum), b) in rows.into_iter().zip(&to_b) {
            row.add_to(if *b { sum_b } else { sum_a }, 1.0);
            maxima[usize::from(*b)].push(maximum);
        }
        let mut out = Figures::default();
        self.matrix.quantiles(sum_a, self.probabilities, &mut out.a);
        self.matrix.quantiles(sum_b, self.probabilities, &mut out.b);
        let [in_a, in_b] = maxima.map(median);
        out.a.push(in_a);
        out.b.push(in_b);
        (out, sums)
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    super::interval::quantile_sorted(&values, 0.5)
}

/// The median of values that occur as often as their weights (whole numbers) say.
fn weighted_median(values: &[f64], order: &[usize], weights: &[f64]) -> f64 {
    let n: f64 = weights.iter().sum();
    let (mut below, mut lower) = (0.0, None);
    for i in order {
        let (Some(value), Some(weight)) = (values.get(*i), weights.get(*i)) else { continue };
        below += weight;
        if lower.is_none() && below * 2.0 >= n && *weight > 0.0 {
            // Of an even number the two in the middle.
            if below * 2.0 > n {
                return *value;
            }
            lower = Some(*value);
        } else if let Some(lower) = lower.filter(|_| *weight > 0.0) {
            return f64::midpoint(lower, *value);
        }
    }
    lower.unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weighted_median_is_that_of_the_repeated_values() {
        let values = [5.0, 1.0, 3.0, 9.0];
        let order = [1, 2, 0, 3];
        for (weights, expected) in [
            ([1.0, 1.0, 1.0, 1.0], 4.0),
            ([0.0, 2.0, 0.0, 2.0], 5.0),
            ([3.0, 1.0, 0.0, 0.0], 5.0),
            ([0.0, 0.0, 0.0, 4.0], 9.0),
            ([1.0, 1.0, 1.0, 0.0], 3.0),
        ] {
            assert_eq!(weighted_median(&values, &order, &weights), expected, "{weights:?}");
        }
    }
}
