// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lines that hold whatever the distribution: how often seconds with something later than
//! a threshold come, and how much great values cluster.
//!
//! Units: ns; seconds.
//! Not here: the limits themselves and their words ([`crate::rates`]).

use std::collections::BTreeSet;

use super::gate::{at_quantile, ordered};
use super::input::BlockMaxima;
use super::statement::{Clustering, FreeLine, Settings};
use crate::extremal::extremal_index;
use crate::{phrases, rates};
use tailbound_core::number::Real as _;

/// Round thresholds that are added, at most.
const ROUND_MAX: usize = 3;

/// Round thresholds are exceeded in at most this share of the seconds.
const ROUND_SHARE: f64 = 0.5;

/// The lines of a run: deadline, what was asked, observed maximum, and round values below it.
pub(crate) fn lines(maxima: &BlockMaxima, settings: &Settings) -> Vec<FreeLine> {
    if maxima.maxima_ns.is_empty() {
        return Vec::new();
    }
    let mut seen = BTreeSet::new();
    let asked = settings.above_ns.iter().map(|t| (*t, "asked"));
    let deadline = settings.deadline_ns.map(|d| (d, "deadline"));
    let max = maxima.observed_max_ns().map(|m| (m, "observed-max"));
    let mut wanted: Vec<(i64, &'static str)> =
        deadline.into_iter().chain(asked).chain(max).collect();
    if settings.above_ns.is_empty() {
        wanted.extend(round(maxima).into_iter().map(|t| (t, "round")));
    }
    wanted
        .into_iter()
        .filter(|(threshold, _)| seen.insert(*threshold))
        .filter_map(|(threshold_ns, why)| line(maxima, threshold_ns, why, settings.confidence))
        .collect()
}

fn line(
    maxima: &BlockMaxima,
    threshold_ns: i64,
    why: &'static str,
    confidence: f64,
) -> Option<FreeLine> {
    let (count, seconds) = (maxima.hits(threshold_ns), maxima.seconds);
    let rate = rates::rate_upper(count, seconds.real(), confidence);
    let what = format!("{}s later than {}", maxima.event, phrases::exactly(threshold_ns));
    Some(FreeLine {
        threshold_ns,
        why,
        count,
        seconds,
        rate_upper_per_s: rate,
        mean_time_between_s: 1.0 / rate,
        sentence: phrases::as_sentence(&rates::frequency(&what, count, seconds, confidence)?),
    })
}

/// 1, 2 and 5 times powers of ten below the maximum that some seconds exceed, the greatest first.
fn round(maxima: &BlockMaxima) -> Vec<i64> {
    let Some(max) = maxima.observed_max_ns() else { return Vec::new() };
    let most = maxima.seconds.real() * ROUND_SHARE;
    let powers = (0..13u32).rev().map(|p| 10i64.pow(p));
    // One that says the same as the last says nothing.
    let mut last = 0;
    powers
        .flat_map(|p| [5 * p, 2 * p, p])
        .skip_while(|t| *t >= max)
        .take_while(|t| (maxima.hits(*t).real()) <= most)
        .filter(|t| {
            let hits = maxima.hits(*t);
            std::mem::replace(&mut last, hits) != hits
        })
        .take(ROUND_MAX)
        .collect()
}

/// How much great values cluster: of single activations where all were kept, else of seconds.
pub(crate) fn clustering(maxima: &BlockMaxima) -> Option<Clustering> {
    if let Some(index) = extremal_index(&maxima.exceedances) {
        return Some(put(index, "activations", &maxima.exceedances));
    }
    if maxima.seconds_lost + maxima.seconds_empty > 0 {
        return None;
    }
    let values: Vec<f64> = maxima.maxima_ns.iter().map(|m| m.real()).collect();
    let limit = at_quantile(&ordered(&values), 0.95);
    let times: Vec<u64> =
        (0u64..).zip(&values).filter(|(_, v)| **v > limit).map(|(t, _)| t).collect();
    extremal_index(&times).map(|index| put(index, "seconds", &times))
}

/// The most of ascending `times` that follow each other directly.
fn longest_row(times: &[u64]) -> usize {
    times.chunk_by(|a, b| b.saturating_sub(*a) <= 1).map(<[u64]>::len).max().unwrap_or(0)
}

fn put(index: f64, of: &'static str, times: &[u64]) -> Clustering {
    let exceedances = times.len();
    let group = 1.0 / index.max(1e-3);
    let row = longest_row(times);
    let sentence = if index >= 0.9 && row > 2 {
        format!(
            "Late {of} mostly come one by one (extremal index {index:.2}), but also up to {row} in a \
             row."
        )
    } else if index >= 0.9 {
        format!("Late {of} come one by one (extremal index {index:.2}).")
    } else {
        format!(
            "Late {of} come in groups of about {group:.1} (extremal index {index:.2}): counted \
             one by one they would be taken for {group:.1} times as many independent events."
        )
    };
    Clustering { index, of, exceedances, sentence }
}
