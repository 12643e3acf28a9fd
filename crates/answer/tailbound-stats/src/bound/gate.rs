// SPDX-License-Identifier: MIT OR Apache-2.0
//! Do the block maxima look like independent draws from one distribution? Five tests, because
//! no bound holds on what drifts, repeats or comes in phases.
//!
//! Units: none; the order of the values is time.
//! The tests see normal scores of ranks, so that heavy tails do not disturb them. Each is at
//! 1 %: data without fault fails one of them in about 4 % of all cases.
//! The test of periods is there because Ljung–Box sees two of its twenty lags of something that
//! comes every tenth second: on a heavy tail it missed nine of ten.
//! Source: Ljung and Box 1978; Kwiatkowski, Phillips, Schmidt and Shin 1992 (level,
//! Bartlett weights); Wald and Wolfowitz 1940; the test of periods is that of van der Waerden for
//! equal groups, by Bonferroni over the periods.

use serde::Serialize;

use crate::chi::chi_square_above;
use crate::{normal, phrases};
use tailbound_core::number::{Real as _, Whole as _};

/// Level of each test.
pub const ALPHA: f64 = 0.01;

/// Critical value of the KPSS statistic at 1 %.
pub const KPSS_LIMIT: f64 = 0.739;

/// Lags of the Ljung–Box test.
const LAGS: usize = 20;

/// Longest period that is looked for, in blocks.
pub const PERIOD_MAX: usize = 60;

/// Parts of the run that the great values are counted in.
const SLICES: usize = 10;

/// The quantile above which they are counted.
const SLICED_ABOVE: f64 = 0.9;

/// The tests of one series.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Gate {
    /// How many maxima.
    pub blocks: usize,
    /// Ljung–Box p over 20 lags: neighbours resemble each other if it is small.
    pub ljung_box_p: f64,
    /// KPSS statistic of the level: it wanders if it is 0.739 or more.
    pub kpss: f64,
    /// p of the runs above and below the median.
    pub runs_p: f64,
    /// p that the great values are spread evenly over ten slices of the run.
    pub slices_p: f64,
    /// The period, in blocks, at which they repeat most clearly.
    pub period: usize,
    /// p that no period up to [`PERIOD_MAX`] repeats.
    pub period_p: f64,
}

impl Gate {
    /// Tests a series in its order of time.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        let scores = scores(values);
        let lags = LAGS.min(values.len() / 10);
        let ordered = ordered(values);
        let (period, period_p) = period(&scores);
        Self {
            blocks: values.len(),
            ljung_box_p: ljung_box(&scores, lags),
            kpss: kpss(&scores),
            runs_p: runs(values, at_quantile(&ordered, 0.5)),
            slices_p: slices(values, at_quantile(&ordered, SLICED_ABOVE)),
            period,
            period_p,
        }
    }

    /// Did it pass all of them?
    #[must_use]
    pub fn passed(&self) -> bool {
        self.failed().is_empty()
    }

    /// Are all values equal? No test can be made then, and none is passed.
    #[must_use]
    pub fn constant(&self) -> bool {
        self.period <= 1 && self.period_p <= 0.0
    }

    /// What it failed, in words.
    #[must_use]
    pub fn failed(&self) -> Vec<String> {
        if self.constant() {
            return vec!["all are equal".to_owned()];
        }
        let period = format!(
            "every {} differs from the others (test of periods)",
            phrases::ordinal(self.period)
        );
        let tests = [
            (self.period_p > ALPHA, period.as_str()),
            (self.ljung_box_p > ALPHA, "neighbouring ones resemble each other (Ljung–Box)"),
            (self.kpss < KPSS_LIMIT, "their level wanders (KPSS)"),
            (self.runs_p > ALPHA, "high and low ones come in runs (runs test)"),
            (
                self.slices_p > ALPHA,
                "the great ones are not spread evenly over the run (ten slices)",
            ),
        ];
        tests.into_iter().filter(|(passed, _)| !passed).map(|(_, words)| words.to_owned()).collect()
    }
}

/// The maxima of `factor` neighbours each; what is left over at the end is dropped.
#[must_use]
pub fn regroup(values: &[f64], factor: usize) -> Vec<f64> {
    values
        .chunks_exact(factor.max(1))
        .map(|c| c.iter().copied().fold(f64::NEG_INFINITY, f64::max))
        .collect()
}

pub(crate) fn ordered(values: &[f64]) -> Vec<f64> {
    let mut ordered = values.to_vec();
    ordered.sort_unstable_by(f64::total_cmp);
    ordered
}

/// The quantile of ascending values, linear between ranks.
pub(crate) fn at_quantile(ordered: &[f64], p: f64) -> f64 {
    let at = p * ordered.len().saturating_sub(1).real();
    let i = at.floor().whole_usize();
    let value = |i: usize| ordered.get(i).or(ordered.last()).copied().unwrap_or(f64::NAN);
    value(i) + (at - i.real()) * (value(i + 1) - value(i))
}

/// Normal scores of the ranks; equal values share the mean of theirs.
pub(crate) fn scores(values: &[f64]) -> Vec<f64> {
    let n = values.len().real();
    let mut order: Vec<(f64, usize)> =
        values.iter().copied().enumerate().map(|(i, v)| (v, i)).collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut scores = vec![0.0; values.len()];
    let mut before = 0;
    for equal in order.chunk_by(|a, b| a.0.total_cmp(&b.0).is_eq()) {
        let rank = before.real() + f64::midpoint(1.0, equal.len().real());
        let score = normal::quantile((rank - 0.5) / n);
        for (_, i) in equal {
            if let Some(slot) = scores.get_mut(*i) {
                *slot = score;
            }
        }
        before += equal.len();
    }
    scores
}

fn centred(scores: &[f64]) -> Vec<f64> {
    let mean = scores.iter().sum::<f64>() / scores.len().real();
    scores.iter().map(|s| s - mean).collect()
}

/// Sum of products of values `lag` apart.
fn lagged(e: &[f64], lag: usize) -> f64 {
    e.iter().zip(e.iter().skip(lag)).map(|(a, b)| a * b).sum()
}

fn ljung_box(scores: &[f64], lags: usize) -> f64 {
    let e = centred(scores);
    let (n, power) = (e.len().real(), lagged(&e, 0));
    if power <= 0.0 || lags == 0 {
        return 0.0;
    }
    let sum: f64 = (1..=lags).map(|h| (lagged(&e, h) / power).powi(2) / (n - h.real())).sum();
    chi_square_above(lags.real(), n * (n + 2.0) * sum)
}

/// The period of the clearest repetition, and the p of all of them together.
fn period(scores: &[f64]) -> (usize, f64) {
    let e = centred(scores);
    let variance = lagged(&e, 0) / e.len().real();
    if variance.is_nan() || variance <= 0.0 {
        return (1, 0.0);
    }
    let longest = PERIOD_MAX.min(e.len() / 10);
    let p = |period: usize| {
        let mut sums = vec![(0.0, 0.0); period];
        for group in e.chunks(period) {
            for (sum, v) in sums.iter_mut().zip(group) {
                sum.0 += v;
                sum.1 += 1.0;
            }
        }
        let between: f64 = sums.iter().map(|(sum, n): &(f64, f64)| sum * sum / n).sum();
        chi_square_above(period.real() - 1.0, between / variance)
    };
    let tested = longest.saturating_sub(1).real();
    (2..=longest)
        .map(|period| (period, p(period)))
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .map_or((1, 1.0), |(period, p)| (period, (p * tested).min(1.0)))
}

fn kpss(scores: &[f64]) -> f64 {
    let e = centred(scores);
    let n = e.len().real();
    let lags = (4.0 * (n / 100.0).powf(0.25)).ceil().whole_usize();
    let weighed: f64 =
        (1..=lags).map(|h| (1.0 - h.real() / (lags + 1).real()) * lagged(&e, h) / n).sum();
    let variance = lagged(&e, 0) / n + 2.0 * weighed;
    let mut walk = 0.0;
    let squares: f64 = e
        .iter()
        .map(|v| {
            walk += v;
            walk * walk
        })
        .sum();
    let statistic = squares / (n * n) / variance;
    // Nothing varies, or neighbours alternate: no statistic is no pass.
    if statistic.is_finite() && variance > 0.0 { statistic } else { f64::INFINITY }
}

fn runs(values: &[f64], median: f64) -> f64 {
    let above = |v: &f64| *v > median;
    let high = values.iter().filter(|v| above(v)).count().real();
    let low = values.len().real() - high;
    let changes = values.windows(2).filter(|w| above(&w[0]) != above(&w[1])).count().real();
    let mean = 2.0 * high * low / (high + low) + 1.0;
    let variance = (mean - 1.0) * (mean - 2.0) / (high + low - 1.0);
    if variance.is_nan() || variance <= 0.0 {
        return 0.0;
    }
    2.0 * normal::above((changes + 1.0 - mean).abs() / variance.sqrt())
}

fn slices(values: &[f64], limit: f64) -> f64 {
    // As even as whole numbers allow, the longer ones first.
    let (size, longer) = (values.len() / SLICES, values.len() % SLICES);
    let mut rest = values;
    let counts: Vec<f64> = (0..SLICES)
        .map(|i| {
            let (slice, left) = rest.split_at(size + usize::from(i < longer));
            rest = left;
            slice.iter().filter(|v| **v > limit).count().real()
        })
        .collect();
    even_p(&counts)
}

/// Chi-square p that counts are draws of one rate.
pub(crate) fn even_p(counts: &[f64]) -> f64 {
    let expected = counts.iter().sum::<f64>() / counts.len().real();
    if expected <= 0.0 {
        return 1.0;
    }
    let statistic: f64 = counts.iter().map(|c| (c - expected).powi(2) / expected).sum();
    chi_square_above(counts.len().real() - 1.0, statistic)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn draws(seed: u64, n: usize) -> Vec<f64> {
        let mut random = Random::new(seed);
        (0..n).map(|_| -random.uniform().ln()).collect()
    }

    #[test]
    fn each_fault_is_named() {
        let calm = draws(1, 3600);
        assert!(Gate::of(&calm).passed(), "{:?}", Gate::of(&calm));
        let drift: Vec<f64> =
            calm.iter().zip(0u32..).map(|(v, i)| v + f64::from(i) / 3600.0).collect();
        assert!(Gate::of(&drift).failed().iter().any(|w| w.contains("KPSS")));
        let beat: Vec<f64> =
            calm.iter().enumerate().map(|(i, v)| if i % 10 == 0 { v + 3.0 } else { *v }).collect();
        let beat = Gate::of(&beat);
        assert_eq!((beat.period, beat.period_p < 1e-6), (10, true), "{beat:?}");
        let burst: Vec<f64> = calm
            .iter()
            .enumerate()
            .map(|(i, v)| if (1000..1100).contains(&i) { v + 2.0 } else { *v })
            .collect();
        assert!(Gate::of(&burst).failed().iter().any(|w| w.contains("slices")));
        let constant = Gate::of(&vec![7.0; 2000]);
        assert!(!constant.passed(), "what never varies cannot be tested");
        assert_eq!(constant.failed(), ["all are equal"], "and no test of it means anything");
        let second: Vec<f64> =
            calm.iter().enumerate().map(|(i, v)| v + 3.0 * (i % 2).real()).collect();
        assert!(Gate::of(&second).failed().iter().any(|w| w.contains("every 2nd differs")));
    }

    #[test]
    fn groups_keep_the_greatest() {
        assert_eq!(regroup(&[1.0, 5.0, 2.0, 3.0, 9.0], 2), [5.0, 3.0]);
        assert_eq!(at_quantile(&[1.0, 2.0, 3.0], 0.75), 2.5);
    }
}
