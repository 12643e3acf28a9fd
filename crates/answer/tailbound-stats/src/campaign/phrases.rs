// SPDX-License-Identifier: MIT OR Apache-2.0
//! Statistics and their values as the judgements of claims say them.
//!
//! Units: ns and shares in, people's units out.

use tailbound_core::campaign::{Cost, Of, Statistic, StatisticKind};
use tailbound_core::number::Real as _;
use tailbound_core::units::{format_ns, grouped, trimmed};

use super::value::Value;
use crate::quantile;

/// Four digits of a number, more where it is close to 1.
#[must_use]
pub fn number(v: f64) -> String {
    let a = v.abs();
    let decimals = match a {
        _ if a > 0.99 && a < 1.0 => 7,
        _ if a >= 1000.0 => 0,
        _ if a >= 100.0 => 1,
        _ if a >= 1.0 => 2,
        _ => 4,
    };
    let text = trimmed(v, decimals);
    match text.parse::<u64>() {
        Ok(n) if a >= 10_000.0 => grouped(n),
        _ => text,
    }
}

/// `1/100`, or a percentage where that is not even; `none` of it.
#[must_use]
pub fn part_of(share: f64) -> String {
    if share <= 0.0 {
        return "none".to_owned();
    }
    let times = 1.0 / share;
    if share < 0.6 && (times - times.round()).abs() < 0.01 * times {
        return format!("1/{}", number(times.round()));
    }
    format!("{} %", number(share * 100.0))
}

/// Ours in people's units, with its interval.
#[must_use]
pub fn shown(value: &Value, statistic: &Statistic) -> String {
    let Some(v) = value.value else { return word(statistic) };
    let half = match (value.half_width(), value.low, value.high) {
        (Some(h), ..) if h > 0.0 => format!(" ±{}", plain(h, statistic)),
        (None, Some(low), Some(high)) => {
            format!(" ({} to {})", plain(low, statistic), plain(high, statistic))
        }
        _ => String::new(),
    };
    format!("{} {}{half}", word(statistic), plain(v, statistic))
}

/// A bare value in people's units.
#[must_use]
pub fn plain(v: f64, statistic: &Statistic) -> String {
    if statistic.is_time() {
        return format_ns(v);
    }
    match statistic.what {
        StatisticKind::Benchmark(_, Of::Advantage) => format!("{} %", number(v)),
        StatisticKind::Benchmark(Cost::Rate, _) => format!("{}/s", number(v)),
        _ => number(v),
    }
}

/// A statistic in words.
#[must_use]
pub fn word(statistic: &Statistic) -> String {
    let of = match statistic.what {
        StatisticKind::N => "activations".to_owned(),
        StatisticKind::Min => "earliest".to_owned(),
        StatisticKind::Max => "latest".to_owned(),
        StatisticKind::Mean => "mean".to_owned(),
        StatisticKind::Mode => "mode".to_owned(),
        StatisticKind::Median => "median".to_owned(),
        StatisticKind::Sd => "standard deviation".to_owned(),
        StatisticKind::Skewness => "skewness".to_owned(),
        StatisticKind::Kurtosis => "kurtosis".to_owned(),
        StatisticKind::Quantile(p) => quantile::label(p),
        StatisticKind::Within(ns) => format!("share within {}", format_ns(ns.real())),
        StatisticKind::Benchmark(cost, of) => {
            let cost = match cost {
                Cost::Real => "real time",
                Cost::User => "user time",
                Cost::Sys => "system time",
                Cost::Rate => "rate",
            };
            match of {
                Of::Mean => format!("mean {cost}"),
                Of::Sd => format!("deviation of the {cost}"),
                Of::Advantage => format!("surplus of the {cost}"),
            }
        }
    };
    match &statistic.context {
        Some(context) => format!("{context} {of}"),
        None => of,
    }
}
