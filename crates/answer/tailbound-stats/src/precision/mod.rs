// SPDX-License-Identifier: MIT OR Apache-2.0
//! How well the figures of a run are known: the 95 % half-width of every one, from the stretches
//! it was cut into.
//!
//! Units: ns; shares and counts without.
//! Activations depend on each other, so their number says little: of one real run 4.5 million
//! were worth a thousand independent ones for the median, and half a million for p99.9. Here
//! the stretches are the unit. Moments: each stretch's influence on the figure, and their spread
//! (batch means; for the mean exactly that). Quantiles: the spread of the counts beyond the
//! quantile against what independent activations would have, which is the design effect of that
//! quantile; then the binomial order statistics of the reduced number of activations.
//! Where neighbouring stretches are correlated, because states of the machine outlast them, they are
//! put together to longer ones; where that is not enough, [`Precision::lasting`] says that the
//! half-widths are lower limits.
//! Needs eight stretches; with fewer, [`Precision::why_not`] says so.
//! Not here: cutting a run ([`crate::blocks`]), how long would be enough ([`crate::planning`]).
//! Source: Law and Kelton on batch means; Kish 1965 on design effects; Efron 1982 on influence.

mod batches;
pub mod series;
pub mod study;
mod widths;

use serde::Serialize;
use tailbound_core::record::BlockRecord;
use tailbound_core::{Context, Run};

use crate::quantile::STANDARD;

pub(crate) use batches::batches;
pub use series::Series;
pub use widths::quantiles as quantile_widths;

/// Version of the method, part of every answer.
pub const METHOD: &str = "batch-means/2";

/// Confidence of every half-width.
pub const CONFIDENCE: f64 = 0.95;

/// Stretches below which nothing is said.
pub const STRETCHES_MIN: usize = 8;

/// Stretches that must remain when shorter ones are put together.
pub const GROUPED_MIN: usize = 20;

/// Length to which shorter stretches are put together where the run is long enough.
pub const STRETCH_S: u64 = 10;

/// What is known of one quantile.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct QuantileWidth {
    /// Its probability.
    pub p: f64,
    /// Autocorrelation factor, for this quantile: its activations hold as much as that many times fewer independent ones.
    pub design_effect: f64,
    /// Independent activations that the run is worth, for this quantile.
    pub n_effective: f64,
    /// Lower end of the interval; `None`: not bounded by what was seen.
    pub low_ns: Option<f64>,
    /// Upper end; `None`: not bounded by what was seen.
    pub high_ns: Option<f64>,
    /// Half of the interval; `None` where an end is missing.
    pub half_ns: Option<f64>,
}

/// How well the figures of one distribution are known.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Precision {
    /// [`METHOD`].
    pub method: &'static str,
    /// [`CONFIDENCE`].
    pub confidence: f64,
    /// Stretches that it comes from.
    pub stretches: usize,
    /// Length of each.
    pub stretch_s: u64,
    /// Why there is nothing.
    pub why_not: Option<String>,
    /// Correlation of neighbouring stretches beyond chance, where no longer ones are left: states
    /// outlast them, and the true half-widths are at least those given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lasting: Option<f64>,
    /// Half-width of the mean.
    pub mean_ns: Option<f64>,
    /// Of the standard deviation.
    pub sd_ns: Option<f64>,
    /// Of the skewness.
    pub skewness: Option<f64>,
    /// Of the excess kurtosis.
    pub kurtosis: Option<f64>,
    /// Of every standard quantile.
    pub quantiles: Vec<QuantileWidth>,
    /// Decimals of a µs to which the mean is known: the half-width is at most half of the last
    /// one. `None`: no decimal of a µs is significant, or not known.
    pub mean_decimals_us: Option<u32>,
}

impl Precision {
    /// Nothing is known, and why.
    #[must_use]
    pub fn absent(why: impl Into<String>) -> Self {
        Self {
            method: METHOD,
            confidence: CONFIDENCE,
            stretches: 0,
            stretch_s: 0,
            why_not: Some(why.into()),
            lasting: None,
            mean_ns: None,
            sd_ns: None,
            skewness: None,
            kurtosis: None,
            quantiles: Vec::new(),
            mean_decimals_us: None,
        }
    }

    /// What the stretches of `thread` say (`None`: of all threads together) of the quantiles
    /// `probabilities`.
    #[must_use]
    pub fn of(blocks: &[BlockRecord], thread: Option<u32>, probabilities: &[f64]) -> Self {
        Self::of_series(&Series::of(blocks, thread), probabilities)
    }

    /// What a series of stretches says.
    #[must_use]
    pub fn of_series(series: &Series, probabilities: &[f64]) -> Self {
        let series = series.grouped(STRETCH_S, GROUPED_MIN);
        let stretches = series.stretches.len();
        if stretches < STRETCHES_MIN {
            return Self {
                stretches,
                stretch_s: series.length_s,
                ..Self::absent(TooFewStretches { stretches, least: STRETCHES_MIN }.to_string())
            };
        }
        let (series, lasting) = batches(series);
        let stretches = series.stretches.len();
        let [mean_ns, sd_ns, skewness, kurtosis] = widths::moments(&series, CONFIDENCE);
        Self {
            method: METHOD,
            confidence: CONFIDENCE,
            stretches,
            stretch_s: series.length_s,
            why_not: None,
            lasting,
            mean_ns,
            sd_ns,
            skewness,
            kurtosis,
            quantiles: widths::quantiles(&series, probabilities, CONFIDENCE),
            mean_decimals_us: mean_ns.filter(|_| lasting.is_none()).and_then(decimals_us),
        }
    }

    /// What is known of the quantile `p`.
    #[must_use]
    pub fn quantile(&self, p: f64) -> Option<&QuantileWidth> {
        self.quantiles.iter().find(|q| (q.p - p).abs() < 1e-12)
    }

    /// `the mean is known to ±0.012 µs at 95 %: one decimal of a µs`.
    #[must_use]
    pub fn mean_sentence(&self) -> Option<String> {
        let half_ns = self.mean_ns?;
        let decimals = match self.mean_decimals_us {
            None => "no decimal of a µs is significant".to_owned(),
            Some(0) => "whole µs".to_owned(),
            Some(1) => "one decimal of a µs".to_owned(),
            Some(2) => "two decimals of a µs".to_owned(),
            Some(n) => format!("{n} decimals of a µs"),
        };
        let digits = usize::from(half_ns < 9950.0) + 2 * usize::from(half_ns < 995.0);
        if self.lasting.is_some() {
            return Some(format!(
                "the mean is known to no better than ±{:.digits$} µs: states of the machine outlast \
                 the stretches, and every half-width is at least as given; measure for longer",
                half_ns / 1e3
            ));
        }
        Some(format!(
            "the mean is known to ±{:.digits$} µs at 95 % confidence: {decimals}",
            half_ns / 1e3
        ))
    }
}

/// What is known of `thread` of `context`; `None`: of all of its threads together.
#[must_use]
pub fn of_run(run: &Run, context: Context, thread: Option<u32>) -> Precision {
    let own = |t: u32| run.threads.iter().any(|o| o.thread == t && o.context == context);
    if !matches!(context, Context::External | Context::User | Context::Completion | Context::Start)
    {
        return Precision::absent(
            "stretches of the schedule are kept of the measured threads alone",
        );
    }
    if context != Context::User
        && !run.blocks.is_empty()
        && !run.blocks.iter().any(|b| own(b.thread))
    {
        return Precision::absent("stretches of the schedule are kept of the completion alone");
    }
    if run.blocks.is_empty() && run.header.source.is_some() {
        return Precision::absent("the source keeps no stretches of time");
    }
    Precision::of(&run.blocks, thread, &STANDARD)
}

/// A run whose stretches are not enough for a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", too_few(*.stretches, *.least))]
pub struct TooFewStretches {
    /// Those it has.
    pub stretches: usize,
    /// Those it takes.
    pub least: usize,
}

fn too_few(stretches: usize, least: usize) -> String {
    match stretches {
        0 => "the run file has no stretches of the schedule".to_owned(),
        _ => format!("the run is too short: measure for at least {least} s"),
    }
}

/// The most decimals of a µs of which the last one is right: half of it is not exceeded.
#[must_use]
pub fn decimals_us(half_ns: f64) -> Option<u32> {
    let half = half_ns.max(1e-3);
    (0..=6).rev().find(|d| half <= 500.0 / 10f64.powi(i32::try_from(*d).unwrap_or(0)))
}
