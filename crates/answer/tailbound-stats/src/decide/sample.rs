// SPDX-License-Identifier: MIT OR Apache-2.0
//! A handful of repetitions: their number, mean and standard deviation.
//!
//! Units: the caller's.

use serde::Serialize;

/// What is left of repetitions when only their mean and deviation are told.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// How many.
    pub n: u32,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation, of n - 1; 0 where there is one.
    pub sd: f64,
}

impl Sample {
    /// The sample of `values`; `None` of nothing.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let n = u32::try_from(values.len()).ok().filter(|n| *n > 0)?;
        let mean = values.iter().sum::<f64>() / f64::from(n);
        let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        let sd = if n > 1 { (squares / f64::from(n - 1)).sqrt() } else { 0.0 };
        Some(Self { n, mean, sd })
    }

    /// The square of the standard error of the mean.
    #[must_use]
    pub fn error_squared(&self) -> f64 {
        self.sd * self.sd / f64::from(self.n.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deviation_is_that_of_the_sample() {
        let s = Sample::of(&[1.0, 2.0, 3.0]).unwrap();
        assert_eq!((s.n, s.mean, s.sd), (3, 2.0, 1.0));
        assert_eq!(Sample::of(&[7.0]).map(|s| s.sd), Some(0.0));
        assert_eq!(Sample::of(&[]), None);
    }
}
