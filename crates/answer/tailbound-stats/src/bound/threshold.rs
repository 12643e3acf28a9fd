// SPDX-License-Identifier: MIT OR Apache-2.0
//! From which value on is the tail a generalised Pareto distribution? The lowest threshold at
//! which the fit is not rejected, and neither at the next two higher ones.
//!
//! Units: those of the values.
//! Not the best-looking of many: candidates are fixed beforehand and taken from the most data
//! down. Whether the exceedances come evenly in time is asked of the one that was taken.
//! Source: the method of docs/results/bound.md.

use serde::Serialize;

use super::anderson;
use super::gate::even_p;
use super::gpd::{Excesses, SHAPE_MAX, SHAPE_MIN};
use crate::normal::kolmogorov_above;
use tailbound_core::number::{Real as _, Whole as _};

/// Fewest exceedances that are fitted.
pub const EXCEEDANCES_MIN: usize = 50;

/// Most exceedances that are fitted.
const EXCEEDANCES_MAX: usize = 2000;

/// At most this share of the blocks is the tail, as 1/20.
const SHARE: usize = 20;

/// A fit with a smaller p is rejected; the second one counts where the first leaves nothing.
///
/// With the first alone, sound tails were refused in 2 to 3 % of all cases; what is no Pareto
/// tail has far smaller p.
const P_MIN: [f64; 2] = [0.1, 0.05];

/// Thresholds that must fit, from the one that is taken upwards.
const IN_A_ROW: usize = 3;

/// Least p of the tests of time.
const TIME_P_MIN: f64 = 0.01;

/// The threshold that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Threshold {
    /// How many values are above it.
    pub exceedances: usize,
    /// Its value.
    pub value: f64,
    /// Anderson–Darling p of the fit above it.
    pub fit_p: f64,
}

/// How many exceedances are tried, the most first.
pub(crate) fn candidates(blocks: usize) -> Vec<usize> {
    candidates_from(EXCEEDANCES_MAX.min(blocks / SHARE))
}

/// Numbers of exceedances from `k` down to the fewest, each √2 fewer.
pub(crate) fn candidates_from(k: usize) -> Vec<usize> {
    let mut k = k.real();
    let mut out = Vec::new();
    while k >= EXCEEDANCES_MIN.real() {
        out.push(k.whole_usize());
        k /= std::f64::consts::SQRT_2;
    }
    if out.last().is_some_and(|k| *k != EXCEEDANCES_MIN) {
        out.push(EXCEEDANCES_MIN);
    }
    out
}

/// The excesses of the `k` greatest of descending values over the next one.
#[must_use]
pub fn excesses(descending: &[f64], k: usize) -> Option<Excesses> {
    let limit = *descending.get(k)?;
    Excesses::new(descending.iter().take(k).map(|v| v - limit))
}

/// Chooses a threshold for values in descending order; `None`: nowhere does the fit hold.
#[must_use]
pub fn choose(descending: &[f64]) -> Option<Threshold> {
    let candidates = candidates(descending.len());
    let p: Vec<f64> = candidates
        .iter()
        .map(|k| {
            excesses(descending, *k)
                // Fewer: the threshold lies on a value that many share.
                .filter(|e| e.k() >= 0.9 * k.real())
                .map_or(0.0, |e| anderson::p_value(&e, &e.fit(SHAPE_MIN, SHAPE_MAX)))
        })
        .collect();
    let fits = |i: usize, p_min: f64| p.iter().skip(i).take(IN_A_ROW).all(|p| *p >= p_min);
    let first = P_MIN.into_iter().find_map(|min| (0..p.len()).find(|i| fits(*i, min)))?;
    let exceedances = *candidates.get(first)?;
    Some(Threshold { exceedances, value: *descending.get(exceedances)?, fit_p: *p.get(first)? })
}

/// Whether exceedances come evenly in time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Kolmogorov–Smirnov p that their times are uniform.
    pub uniform_p: f64,
    /// Chi-square p that they do not come in bursts, in slices of five on average.
    pub dispersion_p: f64,
}

impl Spread {
    /// Of the blocks of `values` (in order of time) above `limit`.
    #[must_use]
    pub fn of(values: &[f64], limit: f64) -> Self {
        let (m, times): (f64, Vec<usize>) = (
            values.len().real(),
            values.iter().enumerate().filter(|(_, v)| **v > limit).map(|(i, _)| i).collect(),
        );
        let n = times.len().real();
        let distance = times
            .iter()
            .enumerate()
            .map(|(rank, i)| {
                let at = (i.real() + 0.5) / m;
                (at - rank.real() / n).abs().max(((rank + 1).real() / n - at).abs())
            })
            .fold(0.0, f64::max);
        let slices = (times.len() / 5).max(5);
        let mut counts = vec![0.0; slices];
        for i in &times {
            if let Some(c) = counts.get_mut(i * slices / values.len().max(1)) {
                *c += 1.0;
            }
        }
        Self { uniform_p: kolmogorov_above(distance, times.len()), dispersion_p: even_p(&counts) }
    }

    /// Do they?
    #[must_use]
    pub fn passed(&self) -> bool {
        self.uniform_p >= TIME_P_MIN && self.dispersion_p >= TIME_P_MIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn candidates_go_down_to_fifty() {
        assert_eq!(candidates(3600), [180, 127, 89, 63, 50]);
        assert_eq!(candidates(1000), [50]);
        assert!(candidates(900).is_empty());
    }

    #[test]
    fn a_smooth_tail_is_taken_whole_and_a_mixed_one_not_at_all() {
        let mut random = Random::new(9);
        let mut values: Vec<f64> = (0..3600).map(|_| -random.uniform().ln()).collect();
        let sorted = |v: &[f64]| {
            let mut v = v.to_vec();
            v.sort_unstable_by(f64::total_cmp);
            v.reverse();
            v
        };
        let taken = choose(&sorted(&values)).expect("an exponential tail fits");
        assert!(taken.exceedances >= 89, "{taken:?}");
        assert!(Spread::of(&values, taken.value).passed());
        for (i, v) in values.iter_mut().enumerate().filter(|(i, _)| i % 90 == 0) {
            *v = 20.0 + (i % 7).real() / 1000.0;
        }
        assert_eq!(choose(&sorted(&values)), None);
        // All exceedances in one tenth of the time.
        let late: Vec<f64> =
            (0..3600)
                .map(|i| {
                    if (360..540).contains(&i) { 10.0 + random.uniform() } else { random.uniform() }
                })
                .collect();
        assert!(!Spread::of(&late, 5.0).passed());
    }
}
