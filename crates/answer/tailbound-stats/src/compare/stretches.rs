// SPDX-License-Identifier: MIT OR Apache-2.0
//! A single run cut into stretches that are long enough to be nearly independent.
//!
//! Units: seconds, ns. A stretch has at least 10 s, and at least twice the time
//! after which the maxima of seconds are no longer correlated.
//! Not here: the recorder's stretches that these are made of ([`crate::blocks`]).
//! Source: Künsch 1989; Politis and Romano 1994 (block bootstrap).

use std::collections::BTreeMap;

use tailbound_core::Run;
use tailbound_core::number::Real as _;
use tailbound_core::record::BlockRecord;

use super::block::Block;
use super::refusal::Refusal;

/// Shortest stretch.
pub const LENGTH_MIN_S: u64 = 10;

/// The stretches of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretches {
    /// Seconds of each.
    pub length_s: u64,
    /// Seconds after which maxima are no longer correlated; `None` where they always are.
    pub lag_s: Option<u64>,
    /// The units, in order of time; what is left over at the end joins the last one.
    pub units: Vec<Block>,
}

/// Cuts `run`; for the comparison of two runs the greater `length_s` counts for both.
///
/// # Errors
/// The run has no record of stretches, or its maxima never cease to be correlated.
pub fn stretches(
    run: &Run,
    at_least_s: u64,
    deadline_ns: Option<i64>,
) -> Result<Stretches, Refusal> {
    if run.blocks.is_empty() {
        return Err(Refusal::NoStretches);
    }
    let maxima = maxima_by_second(run);
    let series: Vec<f64> =
        maxima.values().map(|v| (v.max(&1).unsigned_abs().real()).ln()).collect();
    let lag_s = vanishing_lag(&series);
    let Some(lag) = lag_s else {
        return Err(Refusal::Drifts);
    };
    let length_s = LENGTH_MIN_S.max(2 * lag).max(at_least_s);
    let mut by_stretch: BTreeMap<u64, Vec<&BlockRecord>> = BTreeMap::new();
    for b in &run.blocks {
        by_stretch.entry(b.second / length_s).or_default().push(b);
    }
    // The last stretch is whole or belongs to the one before it.
    let end = run.blocks.iter().map(|b| b.second + b.seconds).max().unwrap_or(0);
    if let Some(last) = by_stretch.keys().next_back().copied().filter(|k| *k > 0)
        && end < (last + 1) * length_s
        && let Some(rest) = by_stretch.remove(&last)
    {
        by_stretch.entry(last - 1).or_default().extend(rest);
    }
    let unit = |records: &Vec<&BlockRecord>| {
        let from = records.iter().map(|b| b.second).min().unwrap_or(0);
        let to = records.iter().map(|b| b.second + b.seconds).max().unwrap_or(0);
        let max_ns = maxima.range(from..to).map(|(_, v)| *v).max();
        Block::of_records(records, max_ns, deadline_ns)
    };
    Ok(Stretches { length_s, lag_s, units: by_stretch.values().map(unit).collect() })
}

fn maxima_by_second(run: &Run) -> BTreeMap<u64, i64> {
    let mut out: BTreeMap<u64, i64> = BTreeMap::new();
    for s in &run.seconds {
        out.entry(s.second).and_modify(|m| *m = (*m).max(s.max_ns)).or_insert(s.max_ns);
    }
    out
}

/// First lag whose autocorrelation is within what independent values would show; `None` if
/// there is none in the first third.
#[must_use]
pub fn vanishing_lag(values: &[f64]) -> Option<u64> {
    let n = values.len();
    let mean = values.iter().sum::<f64>() / n.max(1).real();
    let variance: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
    if n < 3 || variance <= 0.0 {
        return Some(1);
    }
    let limit = 1.96 / (n.real()).sqrt();
    let correlation = |lag: usize| {
        let pairs = values.iter().zip(values.iter().skip(lag));
        pairs.map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>() / variance
    };
    (1..=n / 3).find(|lag| correlation(*lag) < limit).map(|lag| lag as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn correlation_of_a_moving_sum_vanishes_after_its_length() {
        let mut random = Random::new(3);
        let noise: Vec<f64> = (0..4000).map(|_| random.uniform()).collect();
        assert!(vanishing_lag(&noise).is_some_and(|lag| lag <= 2));
        let moving: Vec<f64> = noise.windows(12).map(|w| w.iter().sum()).collect();
        let lag = vanishing_lag(&moving).unwrap_or(0);
        assert!((9..=40).contains(&lag), "{lag}");
        let drift: Vec<f64> = (0..200).map(f64::from).collect();
        assert!(vanishing_lag(&drift).is_none_or(|lag| lag > 40), "a drift lasts");
        assert_eq!(vanishing_lag(&[1.0, 1.0]), Some(1));
    }
}
