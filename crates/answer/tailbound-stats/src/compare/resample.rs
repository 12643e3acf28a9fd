// SPDX-License-Identifier: MIT OR Apache-2.0
//! The figures that are compared, of all units together, of bootstrap replicates and under
//! exchanged labels.
//!
//! Units: ns. Rounds are resampled whole and for both systems alike (paired);
//! units that were not made in turn are resampled for each system by itself.
//! Under exchange, the two runs of a round change places with probability one half; units that
//! were not made in turn are dealt anew.
//! Source: Davison and Hinkley 1997, 3.8 and 4.3; Good 2005 (exact permutation tests).

use super::block::Block;
use super::design::Design;
use super::matrix::{Matrix, weigh_all};
use crate::random::Random;
use tailbound_core::number::Real as _;

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
    /// Of paired systems unit k of both is round k. `probabilities` ascend.
    pub(super) fn new(a: &[Block], b: &[Block], design: Design, probabilities: &'p [f64]) -> Self {
        let maxima = |blocks: &[Block]| -> Vec<f64> {
            let unknown = |u: &Block| u.censored_from().map_or(0.0, |_| f64::INFINITY);
            blocks.iter().map(|u| u.max_ns.map_or_else(|| unknown(u), |max| max.real())).collect()
        };
        let maxima = [maxima(a), maxima(b)];
        let order = |values: &Vec<f64>| {
            let mut order: Vec<usize> = (0..values.len()).collect();
            let at = |i: usize| values.get(i).copied().unwrap_or(0.0);
            order.sort_by(|x, y| at(*x).total_cmp(&at(*y)));
            order
        };
        let by_maximum = [order(&maxima[0]), order(&maxima[1])];
        Self {
            matrix: Matrix::of(a, b),
            maxima,
            by_maximum,
            paired: design.is_paired(),
            probabilities,
        }
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
    fn weighted(&self, weights: &Weights) -> Figures {
        let sums = self.sums(std::slice::from_ref(weights));
        sums.first().map(|s| self.figures(s, weights)).unwrap_or_default()
    }

    /// Both systems' sums over the buckets, under each of `weightings`.
    pub(super) fn sums(&self, weightings: &[Weights]) -> Vec<[Vec<f64>; 2]> {
        let buckets = self.matrix.buckets();
        let [rows_a, rows_b] = &self.matrix.rows;
        let a: Vec<&[f64]> = weightings.iter().map(|w| w.a.as_slice()).collect();
        let b: Vec<&[f64]> = weightings.iter().map(|w| w.b.as_slice()).collect();
        let b = weigh_all(rows_b, &b, buckets);
        weigh_all(rows_a, &a, buckets).into_iter().zip(b).map(|(a, b)| [a, b]).collect()
    }

    /// The figures of a weighting and of the sums it comes to.
    pub(super) fn figures(&self, sums: &[Vec<f64>; 2], weights: &Weights) -> Figures {
        let mut out = Figures::default();
        let [maxima_a, maxima_b] = &self.maxima;
        let [order_a, order_b] = &self.by_maximum;
        let [sum_a, sum_b] = sums;
        for (figures, sum, maxima, order, weights) in [
            (&mut out.a, sum_a, maxima_a, order_a, &weights.a),
            (&mut out.b, sum_b, maxima_b, order_b, &weights.b),
        ] {
            self.matrix.quantiles(sum, self.probabilities, figures);
            figures.push(weighted_median(maxima, order, weights));
        }
        out
    }

    /// The quantiles of a whole grid, of the same sums.
    pub(super) fn along(&self, sums: &[Vec<f64>; 2], grid: &[f64]) -> Figures {
        let mut out = Figures::default();
        let [sum_a, sum_b] = sums;
        self.matrix.quantiles(sum_a, grid, &mut out.a);
        self.matrix.quantiles(sum_b, grid, &mut out.b);
        out
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

    /// Labels dealt anew: for each unit, those of the first system first, whether it is now of
    /// the second.
    pub(super) fn deal(&self, random: &mut Random) -> Vec<bool> {
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
        to_b
    }

    /// All units of both systems together.
    pub(super) fn total(&self) -> Vec<f64> {
        let [a, b] = self.units();
        let ones = [Weights { a: vec![1.0; a], b: vec![1.0; b] }];
        let [all_a, all_b] = self.sums(&ones).pop().unwrap_or_default();
        all_a.iter().zip(&all_b).map(|(x, y)| x + y).collect()
    }

    /// The figures under each of some permutations of the labels, and the two sums they come from;
    /// `all` is [`Self::total`].
    pub(super) fn exchanged(
        &self,
        deals: &[Vec<bool>],
        all: &[f64],
    ) -> Vec<(Figures, [Vec<f64>; 2])> {
        let [a, _] = self.units();
        let moved = |deal: &Vec<bool>| -> Weights {
            let weight = |b: &bool| if *b { 1.0 } else { 0.0 };
            Weights {
                a: deal.iter().take(a).map(weight).collect(),
                b: deal.iter().skip(a).map(weight).collect(),
            }
        };
        let moved: Vec<Weights> = deals.iter().map(moved).collect();
        let one = |(deal, [from_a, from_b]): (&Vec<bool>, [Vec<f64>; 2])| {
            let sum_b: Vec<f64> = from_a.iter().zip(&from_b).map(|(x, y)| x + y).collect();
            let sum_a: Vec<f64> = all.iter().zip(&sum_b).map(|(x, y)| x - y).collect();
            let mut maxima = [Vec::new(), Vec::new()];
            for (maximum, b) in self.maxima.iter().flatten().zip(deal) {
                maxima[usize::from(*b)].push(*maximum);
            }
            let mut out = Figures::default();
            self.matrix.quantiles(&sum_a, self.probabilities, &mut out.a);
            self.matrix.quantiles(&sum_b, self.probabilities, &mut out.b);
            let [in_a, in_b] = maxima.map(median);
            out.a.push(in_a);
            out.b.push(in_b);
            (out, [sum_a, sum_b])
        };
        deals.iter().zip(self.sums(&moved)).map(one).collect()
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
