// SPDX-License-Identifier: MIT OR Apache-2.0
//! One distribution in the figures that every report shows: extremes, moments, median, mode,
//! quantiles, and what the source lost.
//!
//! Units: ns. The same struct is the JSON of reports and the input of the
//! text, so that they cannot disagree. A figure that is absent is `null` or says why.
//! Not here: rendering (`tailbound-report`), rates and verdict ([`crate::rates`],
//! [`mod@crate::verdict`]).

use serde::Serialize;
use tailbound_core::Distribution;
use tailbound_core::number::Real as _;

use crate::moments::Moments;
use crate::precision::Precision;
use crate::quantile::{Mode, Quantile, STANDARD, mode, quantile};

/// The standard figures of one distribution.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Number of values.
    pub n: u64,
    /// Exact least value.
    pub min_ns: Option<i64>,
    /// Exact greatest value.
    pub max_ns: Option<i64>,
    /// Mean: exact from the sums, from the histogram where some are clamped, else the source's own.
    pub mean_ns: Option<f64>,
    /// Standard deviation over n-1; absent where the source gave no sums of all values.
    pub sd_ns: Option<f64>,
    /// Skewness g1.
    pub skewness: Option<f64>,
    /// Excess kurtosis g2.
    pub kurtosis: Option<f64>,
    /// Values that the moments cover: fewer than `n` while a run is read live.
    pub moments_n: u64,
    /// Values longer than the sums hold (2.1 s): mean and sd are then those of the histogram.
    pub clamped: u64,
    /// The quantile of 0.5.
    pub median: Quantile,
    /// Where values are densest.
    pub mode: Option<Mode>,
    /// The quantiles of [`STANDARD`], each with its probability.
    pub quantiles: Vec<(f64, Quantile)>,
    /// Values of 17.2 s or more.
    pub over_range: u64,
    /// Values that the source put into no bucket.
    pub unbinned: u64,
    /// Step of the source's values.
    pub resolution_ns: u64,
    /// How well the figures are known, where somebody asked; it says why where they are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precision: Option<Precision>,
}

impl Summary {
    /// The figures of `d`.
    #[must_use]
    pub fn of(d: &Distribution) -> Self {
        let sums = d.sums.filter(|s| d.unbinned == 0 || s.n == d.n);
        let moments = Moments::of_distribution(d);
        Self {
            n: d.n,
            min_ns: d.min_ns,
            max_ns: d.max_ns,
            mean_ns: moments.mean_ns.or(d.mean_ns),
            sd_ns: moments.sd_ns,
            skewness: moments.skewness,
            kurtosis: moments.kurtosis,
            moments_n: moments.n,
            clamped: sums.map_or(0, |s| s.clamped),
            median: quantile(d, 0.5),
            mode: mode(d),
            quantiles: STANDARD.iter().map(|p| (*p, quantile(d, *p))).collect(),
            over_range: d.over_range,
            unbinned: d.unbinned,
            resolution_ns: d.resolution_ns,
            precision: None,
        }
    }

    /// The same with how well they are known.
    #[must_use]
    pub fn with_precision(self, precision: Precision) -> Self {
        Self { precision: Some(precision), ..self }
    }

    /// Where the mode is the lowest step of a source of coarse steps: it is less than this, no more
    /// is known.
    #[must_use]
    pub fn mode_below(&self) -> Option<i64> {
        let step = i64::try_from(self.resolution_ns).ok().filter(|step| *step > 1)?;
        self.mode.filter(|m| m.ns >= 0.0 && m.ns < step.real()).map(|_| step)
    }

    /// The quantile of probability `p`, if it is one of [`STANDARD`].
    #[must_use]
    pub fn quantile(&self, p: f64) -> Option<Quantile> {
        self.quantiles.iter().find(|(q, _)| (q - p).abs() < 1e-12).map(|(_, q)| *q)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_says_what_is_not_known() {
        let mut d = Distribution::default();
        (0..300).for_each(|v| d.add(v * 1000));
        let json = serde_json::to_value(Summary::of(&d)).unwrap_or_default();
        assert_eq!(json["n"], 300);
        assert_eq!(json["max_ns"], 299_000);
        assert_eq!(json["median"]["kind"], "value");
        assert_eq!(json["quantiles"][7][1]["kind"], "needs");
        assert_eq!(json["quantiles"][7][1]["more"], 1_000_000 - 300);
        let empty = serde_json::to_value(Summary::of(&Distribution::default())).unwrap_or_default();
        assert!(empty["mean_ns"].is_null() && empty["mode"].is_null());
    }

    #[test]
    fn sums_without_the_unbinned_values_are_not_used() {
        let mut d = Distribution::default();
        d.add(10);
        d.add(20);
        d.n += 1;
        d.unbinned = 1;
        d.unbinned_from_ns = Some(400);
        let s = Summary::of(&d);
        assert_eq!((s.mean_ns, s.sd_ns, s.unbinned), (None, None, 1));
    }
}
