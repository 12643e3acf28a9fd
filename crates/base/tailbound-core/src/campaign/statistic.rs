// SPDX-License-Identifier: MIT OR Apache-2.0
//! Statistics by name, and the units in which texts give them.
//!
//! Units: values of ours are ns for every time, shares from 0 to 1, percent for
//! an advantage, and per second for a rate; [`Unit`] says what a text wrote.

use crate::campaign::Fault;
use crate::context::Context;
use crate::number::Real as _;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::units::parse_ns;

/// Which time of a benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// Elapsed.
    Real,
    /// Processor time in user mode.
    User,
    /// Processor time in the kernel.
    Sys,
    /// Units of work over the elapsed time.
    Rate,
}

/// Which statistic of the repetitions of a benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// Their mean.
    Mean,
    /// Their standard deviation.
    Sd,
    /// By how much the system is slower than the first one without PREEMPT_RT, in percent.
    Advantage,
}

/// What is asked of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StatisticKind {
    /// Due activations.
    N,
    /// Earliest.
    Min,
    /// Latest.
    Max,
    /// Mean.
    Mean,
    /// Where values are densest.
    Mode,
    /// The quantile of a half.
    Median,
    /// Standard deviation.
    Sd,
    /// Skewness.
    Skewness,
    /// Excess kurtosis.
    Kurtosis,
    /// The quantile of this probability.
    Quantile(f64),
    /// Share of due activations not later than this latency (ns).
    Within(i64),
    /// Of the benchmarks.
    Benchmark(Cost, Of),
}

/// A statistic of a run, of its user's thread or of another context.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistic {
    /// `irq`, `thread`, …; none: the user's.
    pub context: Option<Context>,
    /// What is asked.
    pub what: StatisticKind,
}

impl Statistic {
    /// Is its value a time in ns?
    #[must_use]
    pub fn is_time(&self) -> bool {
        !matches!(
            self.what,
            StatisticKind::N
                | StatisticKind::Skewness
                | StatisticKind::Kurtosis
                | StatisticKind::Within(_)
                | StatisticKind::Benchmark(Cost::Rate, _)
                | StatisticKind::Benchmark(_, Of::Advantage)
        )
    }
}

pub(super) const WORDS: &str = "n, min, max, mean, mode, median, sd, skewness, kurtosis, pNN such as p99.9, \
                     within:TIME, or of benchmarks real, user, sys, rate with .mean, .sd, .advantage";

impl FromStr for Statistic {
    type Err = Fault;
    fn from_str(text: &str) -> Result<Self, Fault> {
        let (context, word) = match text.split_once('/') {
            Some((context, word)) if !context.is_empty() => (Some(Context::of(context)), word),
            _ => (None, text),
        };
        let unknown = || Fault::Statistic(text.to_owned());
        let what = match word {
            "n" => StatisticKind::N,
            "min" => StatisticKind::Min,
            "max" => StatisticKind::Max,
            "mean" => StatisticKind::Mean,
            "mode" => StatisticKind::Mode,
            "median" => StatisticKind::Median,
            "sd" => StatisticKind::Sd,
            "skewness" => StatisticKind::Skewness,
            "kurtosis" => StatisticKind::Kurtosis,
            _ => other(word).ok_or_else(unknown)?,
        };
        Ok(Self { context, what })
    }
}

fn other(word: &str) -> Option<StatisticKind> {
    if let Some(limit) = word.strip_prefix("within:") {
        return parse_ns(limit).ok().map(StatisticKind::Within);
    }
    if let Some((cost, of)) = word.split_once('.')
        && let Some(cost) = cost_of(cost)
    {
        let of = match of {
            "mean" => Of::Mean,
            "sd" => Of::Sd,
            "advantage" => Of::Advantage,
            _ => return None,
        };
        return Some(StatisticKind::Benchmark(cost, of));
    }
    let percent: f64 = word.strip_prefix('p')?.parse().ok()?;
    (percent > 0.0 && percent < 100.0).then(|| StatisticKind::Quantile(percent / 100.0))
}

fn cost_of(word: &str) -> Option<Cost> {
    Some(match word {
        "real" => Cost::Real,
        "user" => Cost::User,
        "sys" => Cost::Sys,
        "rate" => Cost::Rate,
        _ => return None,
    })
}

/// A value of a claim: `20us` in ns, `16.8%` in percent, `0.5` as it is.
///
/// # Errors
/// What was expected.
pub(super) fn value(text: &str) -> Result<f64, Fault> {
    if let Some(percent) = text.strip_suffix('%') {
        return percent.parse().map_err(|_| Fault::Percentage(text.to_owned()));
    }
    if let Ok(number) = text.parse::<f64>() {
        return Ok(number);
    }
    parse_ns(text)
        .map(|ns| ns.real())
        .map_err(|error| Fault::Value { text: text.to_owned(), error })
}

/// Unit of a publication's figure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Ns,
    /// Microseconds.
    #[serde(rename = "us")]
    Us,
    /// Milliseconds.
    #[serde(rename = "ms")]
    Ms,
    /// Seconds.
    #[serde(rename = "s")]
    S,
    /// Percent.
    #[serde(rename = "%")]
    Percent,
    /// Per second.
    #[serde(rename = "/s")]
    PerSecond,
    /// None: a count, a share, a shape.
    #[default]
    #[serde(rename = "")]
    Bare,
}

impl Unit {
    /// What one of it is in the units of ours.
    #[must_use]
    pub fn factor(self) -> f64 {
        match self {
            Self::Us => 1e3,
            Self::Ms => 1e6,
            Self::S => 1e9,
            Self::Ns | Self::Percent | Self::PerSecond | Self::Bare => 1.0,
        }
    }
    /// Is it one of time?
    #[must_use]
    pub fn is_time(self) -> bool {
        matches!(self, Self::Ns | Self::Us | Self::Ms | Self::S)
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ns => " ns",
            Self::Us => " µs",
            Self::Ms => " ms",
            Self::S => " s",
            Self::Percent => " %",
            Self::PerSecond => "/s",
            Self::Bare => "",
        })
    }
}
