// SPDX-License-Identifier: MIT OR Apache-2.0
//! Are the greatest few exceedances of the same kind as the rest? A second mechanism that was met a
//! few times bends the fit of the tail, and a bound from that fit fails.
//!
//! Units: those of the excesses.
//! The m greatest are set apart for m = 1 to [`APART_MAX`]: a generalised Pareto distribution is
//! fitted to the others, of the m it knows only that they are greater. How probable is then the gap
//! below the m, at best, that is with the parameters that make gap and others together most likely?
//! The least of these probabilities, as minus its natural logarithm, is the statistic; its critical
//! value was found by simulation (docs/results/bound.md).
//! Source: the spacings of exponential order statistics are independent (Rényi 1953); likelihood of
//! type II censored samples (Lawless 2003, 5.2).

use serde::Serialize;
use tailbound_core::number::Real as _;

use super::gpd::{SHAPE_MAX, SHAPE_MIN};
use crate::optimise::maximise;

/// Most exceedances that are set apart.
pub const APART_MAX: usize = 25;

/// A greater surprise refuses a bound: sound tails reach it in less than 1 %.
pub const SURPRISE_MAX: f64 = 10.0;

/// Steps of the search over θ = shape/scale, on each side of 0.
const STEPS: u32 = 40;

/// The gap that the rest explains least.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Few {
    /// How many exceedances lie above it.
    pub count: usize,
    /// The greatest value below it.
    pub below: f64,
    /// The least value above it.
    pub above: f64,
    /// Minus the natural logarithm of its probability at best.
    pub surprise: f64,
}

impl Few {
    /// Of excesses in descending order; `None` if they are too few.
    #[must_use]
    pub fn of(descending: &[f64]) -> Option<Self> {
        let k = descending.len();
        let most = APART_MAX.min(k / 2);
        (1..=most)
            .filter_map(|m| {
                let (above, below) = (*descending.get(m - 1)?, *descending.get(m)?);
                let rest = descending.get(m..)?;
                let surprise = surprise(rest, m.real(), above)?;
                Some(Self { count: m, below, above, surprise })
            })
            .max_by(|a, b| a.surprise.total_cmp(&b.surprise))
    }
}

/// Minus the logarithm of the probability that the least of `m` values beyond `rest` (descending)
/// is `above` or more.
fn surprise(rest: &[f64], m: f64, above: f64) -> Option<f64> {
    let below = *rest.first()?;
    let n = rest.len().real();
    let mean = rest.iter().sum::<f64>() / n;
    if mean <= 0.0 || below <= 0.0 {
        return None;
    }
    let censored = Censored { rest, n, m, below, mean };
    let best = censored.search(below, |_, likelihood| likelihood);
    let with_gap = censored.search(above, |theta, likelihood| {
        let shape = censored.shape(theta);
        let step = if shape.abs() < 1e-9 {
            (above - below) / censored.mean_scale()
        } else {
            ((theta * above).ln_1p() - (theta * below).ln_1p()) / shape
        };
        likelihood - m * step
    });
    (best.is_finite() && with_gap.is_finite()).then_some((best - with_gap).max(0.0))
}

/// A sample of which the `m` greatest are known only to be beyond the others.
struct Censored<'a> {
    rest: &'a [f64],
    n: f64,
    m: f64,
    below: f64,
    mean: f64,
}

impl Censored<'_> {
    /// Scale of the exponential fit.
    fn mean_scale(&self) -> f64 {
        self.mean + self.m * self.below / self.n
    }

    fn logs(&self, theta: f64) -> f64 {
        // One logarithm for eight factors: they stay far within the range of a double.
        self.rest
            .chunks(8)
            .map(|eight| eight.iter().fold(1.0, |p, y| p * (1.0 + theta * y)).ln())
            .sum()
    }

    /// The shape that is best at θ.
    fn shape(&self, theta: f64) -> f64 {
        (self.logs(theta) + self.m * (theta * self.below).ln_1p()) / self.n
    }

    fn likelihood(&self, theta: f64) -> f64 {
        if (theta * self.mean).abs() < 1e-7 {
            return -self.n * self.mean_scale().ln() - self.n;
        }
        let logs = self.logs(theta);
        let shape = (logs + self.m * (theta * self.below).ln_1p()) / self.n;
        if !(SHAPE_MIN..=SHAPE_MAX).contains(&shape) {
            return f64::NEG_INFINITY;
        }
        -self.n * (shape / theta).ln() - logs - self.n
    }

    /// The greatest of `value(θ, likelihood)` over θ for which the distribution reaches `end`.
    fn search(&self, end: f64, value: impl Fn(f64, f64) -> f64) -> f64 {
        let at = |theta: f64| {
            if 1.0 + theta * end <= 0.0 {
                return f64::NEG_INFINITY;
            }
            let likelihood = self.likelihood(theta);
            if likelihood.is_finite() { value(theta, likelihood) } else { likelihood }
        };
        let mut thetas = vec![0.0];
        for i in 0..STEPS {
            let share = f64::from(i) / f64::from(STEPS - 1);
            // Above 0 by ratio; below 0 towards the end of the distribution.
            thetas.push(1e-3 / self.mean * 3e4f64.powf(share));
            thetas.push(-(1.0 - 1e-6) / end * 1e-3f64.powf(share));
        }
        thetas.sort_unstable_by(f64::total_cmp);
        let values: Vec<f64> = thetas.iter().map(|t| at(*t)).collect();
        let greatest = values.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
        let best = greatest.map_or(0, |(i, _)| i);
        let low = thetas.get(best.saturating_sub(1)).copied().unwrap_or(0.0);
        let high = thetas.get(best + 1).or(thetas.last()).copied().unwrap_or(0.0);
        let (_, refined) = maximise(low, high, 1e-5 * (high - low).abs().max(1e-12), at);
        values.get(best).copied().unwrap_or(f64::NEG_INFINITY).max(refined)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn top(values: &mut [f64], k: usize) -> Vec<f64> {
        values.sort_unstable_by(f64::total_cmp);
        values.reverse();
        values.iter().take(k).map(|v| v - values[k]).collect()
    }

    #[test]
    fn three_far_above_are_set_apart_and_a_heavy_tail_is_not() {
        let mut random = Random::new(3);
        let mut values: Vec<f64> = (0..3600).map(|_| -random.uniform().ln()).collect();
        let calm = Few::of(&top(&mut values.clone(), 180)).expect("enough");
        assert!(calm.surprise < SURPRISE_MAX, "{calm:?}");
        for (v, far) in values.iter_mut().zip([40.0, 44.0, 52.0]) {
            *v = far;
        }
        let few = Few::of(&top(&mut values, 180)).expect("enough");
        assert!(few.count == 3 && few.surprise > 1.5 * SURPRISE_MAX, "{few:?}");
        let alarms = (0..40)
            .filter(|seed| {
                let mut random = Random::new(100 + seed);
                let mut heavy: Vec<f64> = (0..3600).map(|_| random.uniform().powf(-0.3)).collect();
                Few::of(&top(&mut heavy, 180)).is_some_and(|f| f.surprise > SURPRISE_MAX)
            })
            .count();
        assert_eq!(alarms, 0, "of 40 tails of shape 0.3");
    }
}
