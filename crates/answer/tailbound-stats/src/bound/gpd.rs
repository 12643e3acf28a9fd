// SPDX-License-Identifier: MIT OR Apache-2.0
//! The generalised Pareto distribution: its likelihood, its fit, and the level it exceeds with
//! a given probability.
//!
//! Units: those of the excesses (values above a threshold); the shape has none.
//! Shape above 0: heavy tail, no end. 0: exponential. Below 0: the tail ends at -scale/shape.
//! Not here: limits ([`super::limits`]), goodness of fit ([`super::anderson`]).
//! Source: Grimshaw 1993, profile of one variable, θ = shape/scale: shape(θ) = mean ln(1+θy),
//! log-likelihood -k ln(scale) - k shape - k.

use crate::optimise::maximise;
use tailbound_core::number::Real as _;

/// Least shape that is considered: below it the maximum of the likelihood has no meaning.
pub const SHAPE_MIN: f64 = -0.5;
/// Greatest shape that is considered: from 1 on the tail has no mean.
pub const SHAPE_MAX: f64 = 1.0;

/// Below this a shape is exponential.
const EXPONENTIAL: f64 = 1e-9;

/// Points of the search below and above θ = 0.
const BELOW: u32 = 80;
const ABOVE: u32 = 140;

/// A fitted distribution of excesses.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Gpd {
    /// ξ.
    pub shape: f64,
    /// σ.
    pub scale: f64,
    /// Its logarithm at the fit.
    pub log_likelihood: f64,
}

impl Gpd {
    /// The excess that is exceeded by one in `r` of the excesses.
    #[must_use]
    pub fn level(&self, r: f64) -> f64 {
        level(self.shape, self.scale, r)
    }

    /// The probability of an excess above `y`.
    #[must_use]
    pub fn above(&self, y: f64) -> f64 {
        if self.shape.abs() < EXPONENTIAL {
            return (-y / self.scale).exp();
        }
        (1.0 + self.shape * y / self.scale).max(0.0).powf(-1.0 / self.shape)
    }
}

/// The excess that one in `r` exceeds, at a shape and a scale.
pub(crate) fn level(shape: f64, scale: f64, r: f64) -> f64 {
    if shape.abs() < EXPONENTIAL {
        scale * r.ln()
    } else {
        scale * (shape * r.ln()).exp_m1() / shape
    }
}

/// The scale at which one in `r` exceeds `z`.
pub(crate) fn scale_of_level(shape: f64, z: f64, r: f64) -> f64 {
    if shape.abs() < EXPONENTIAL { z / r.ln() } else { z * shape / (shape * r.ln()).exp_m1() }
}

/// Excesses above a threshold, with what the likelihood needs of them again and again.
#[derive(Clone, Debug, PartialEq)]
pub struct Excesses {
    values: Vec<f64>,
    sum: f64,
    max: f64,
}

impl Excesses {
    /// Of the positive ones of `values`; `None` if there are fewer than two.
    #[must_use]
    pub fn new(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let values: Vec<f64> = values.into_iter().filter(|y| *y > 0.0 && y.is_finite()).collect();
        let sum = values.iter().sum();
        let max = values.iter().copied().fold(0.0, f64::max);
        (values.len() >= 2).then_some(Self { values, sum, max })
    }

    /// How many.
    #[must_use]
    pub fn k(&self) -> f64 {
        self.values.len().real()
    }

    /// The excesses.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Their mean.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.sum / self.k()
    }

    /// Standard deviation over mean: 1 for an exponential tail.
    #[must_use]
    pub fn variation(&self) -> f64 {
        let mean = self.mean();
        let squares: f64 = self.values.iter().map(|y| (y - mean).powi(2)).sum();
        (squares / (self.k() - 1.0)).sqrt() / mean
    }

    /// Without one of the greatest.
    #[must_use]
    pub fn without_largest(&self) -> Option<Self> {
        let at = self.values.iter().position(|y| y.total_cmp(&self.max).is_ge())?;
        Self::new(self.values.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, y)| *y))
    }

    /// Sum of ln(1 + c·y); `None` where the distribution would end before an excess.
    fn sum_of_logs(&self, c: f64) -> Option<f64> {
        if 1.0 + c * self.max <= 0.0 {
            return None;
        }
        if (c * self.max).abs() < 1e-3 {
            return Some(self.values.iter().map(|y| (c * y).ln_1p()).sum());
        }
        // One logarithm for eight factors: they stay far within the range of a double.
        Some(
            self.values
                .chunks(8)
                .map(|eight| eight.iter().fold(1.0, |p, y| p * (1.0 + c * y)).ln())
                .sum(),
        )
    }

    /// The log-likelihood at a shape and a scale; minus infinity where they are impossible.
    pub(crate) fn log_likelihood(&self, shape: f64, scale: f64) -> f64 {
        let k = self.k();
        if scale.is_nan() || scale <= 0.0 {
            return f64::NEG_INFINITY;
        }
        if shape.abs() < EXPONENTIAL {
            return -k * scale.ln() - self.sum / scale;
        }
        self.sum_of_logs(shape / scale)
            .map_or(f64::NEG_INFINITY, |s| -k * scale.ln() - (1.0 + 1.0 / shape) * s)
    }

    /// The profile at θ: log-likelihood and shape.
    fn profile(&self, theta: f64, shape_min: f64, shape_max: f64) -> (f64, f64) {
        let (k, mean) = (self.k(), self.mean());
        if theta.abs() < EXPONENTIAL / mean {
            let at = if shape_min <= 0.0 { -k * mean.ln() - k } else { f64::NEG_INFINITY };
            return (at, 0.0);
        }
        let Some(sum) = self.sum_of_logs(theta) else { return (f64::NEG_INFINITY, 0.0) };
        let shape = sum / k;
        if shape < shape_min - 1e-9 || shape > shape_max + 1e-9 {
            return (f64::NEG_INFINITY, shape);
        }
        (-k * (shape / theta).ln() - k * shape - k, shape)
    }

    /// The fit of greatest likelihood with a shape between `shape_min` and `shape_max`.
    #[must_use]
    pub fn fit(&self, shape_min: f64, shape_max: f64) -> Gpd {
        let (k, mean) = (self.k(), self.mean());
        let spread = |i: u32, n: u32, low: f64, high: f64| {
            low * (high / low).powf(f64::from(i) / f64::from(n - 1))
        };
        let mut points: Vec<f64> = Vec::new();
        if shape_min < 0.0 {
            points.extend((0..BELOW).map(|i| -(1.0 - spread(i, BELOW, 1e-6, 1.0)) / self.max));
        }
        points.push(0.0);
        points.extend((0..ABOVE).map(|i| spread(i, ABOVE, 1e-4, 1e3) / mean));
        points.sort_unstable_by(f64::total_cmp);
        points.dedup();
        let at: Vec<f64> =
            points.iter().map(|t| self.profile(*t, shape_min, shape_max).0).collect();
        let exponential = Gpd { shape: 0.0, scale: mean, log_likelihood: -k * mean.ln() - k };
        let best = at.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).map_or(0, |(i, _)| i);
        let point = |i: usize| points.get(i).copied();
        let (Some(here), Some(&at_here)) = (point(best), at.get(best)) else { return exponential };
        let low = point(best.saturating_sub(1)).unwrap_or(here);
        let high = point(best + 1).unwrap_or(here);
        let (mut theta, mut l) = maximise(low, high, 1e-10 * (high - low).abs(), |t| {
            self.profile(t, shape_min, shape_max).0
        });
        if l < at_here {
            (theta, l) = (here, at_here);
        }
        if !l.is_finite() || exponential.log_likelihood >= l && shape_min <= 0.0 {
            return exponential;
        }
        let shape = self.profile(theta, shape_min, shape_max).1;
        if theta.abs() < EXPONENTIAL / mean {
            return exponential;
        }
        Gpd { shape, scale: shape / theta, log_likelihood: l }
    }
}
