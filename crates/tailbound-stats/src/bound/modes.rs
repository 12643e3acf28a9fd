// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the great values lie: the modes of a tail, so that each can be asked for its cause.
//!
//! Context: COLD. Units: ns.
//! A mode is a hill of the histogram in eighths of octaves: it ends where the counts fall far
//! below it and rise again by more than chance (three standard deviations).
//! Not here: whether the tail can be extrapolated ([`super::threshold`]).

use serde::{Deserialize, Serialize};
use tailbound_core::Distribution;

use crate::quantile::{Quantile, quantile};

/// Buckets an octave, as a power of two.
const PRECISION: u32 = 3;

/// Modes that are listed.
const LISTED: usize = 8;

/// One hill of a tail.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TailMode {
    /// Least value of its buckets.
    pub low_ns: i64,
    /// Greatest value.
    pub high_ns: i64,
    /// How many values.
    pub count: u64,
    /// Of all due activations.
    pub share: f64,
}

/// A hill while it is put together: its values, its highest bucket.
#[derive(Clone, Copy)]
struct Hill {
    low: u64,
    high: u64,
    count: u64,
    peak: u64,
}

/// The modes of the values above `above_ns`, the greatest value first; at most eight.
#[must_use]
pub fn tail_modes(d: &Distribution, above_ns: i64) -> Vec<TailMode> {
    let coarse = d.late.coarsened(PRECISION);
    let above = u64::try_from(above_ns.max(0)).unwrap_or(0);
    let mut hills: Vec<Hill> = Vec::new();
    // Of the last bucket of the hill so far, and of the lowest since its peak.
    let (mut last_end, mut valley) = (0u64, u64::MAX);
    for b in coarse.buckets().filter(|b| b.low_ns.saturating_add(b.width_ns) > above) {
        let gap = if b.low_ns > last_end { 0 } else { b.count };
        valley = valley.min(gap);
        let high = b.low_ns.saturating_add(b.width_ns - 1);
        let new = Hill { low: b.low_ns.max(above), high, count: b.count, peak: b.count };
        match hills.last_mut() {
            Some(hill) if !apart(valley, hill.peak.min(b.count)) => {
                hill.high = high;
                hill.count = hill.count.saturating_add(b.count);
                if b.count > hill.peak {
                    hill.peak = b.count;
                    valley = u64::MAX;
                }
            }
            _ => {
                hills.push(new);
                valley = u64::MAX;
            }
        }
        last_end = b.low_ns.saturating_add(b.width_ns);
    }
    let n = d.n.max(1) as f64;
    hills
        .iter()
        .rev()
        .take(LISTED)
        .map(|h| TailMode {
            low_ns: i64::try_from(h.low).unwrap_or(i64::MAX),
            high_ns: i64::try_from(h.high).unwrap_or(i64::MAX).min(d.max_ns.unwrap_or(i64::MAX)),
            count: h.count,
            share: h.count as f64 / n,
        })
        .collect()
}

/// Is a valley between two hills, the lower one `peak` high, more than chance?
fn apart(valley: u64, peak: u64) -> bool {
    let (valley, peak) = (valley as f64, peak as f64);
    peak - valley > 3.0 * (peak + valley).sqrt()
}

/// The quantile 99.9 % of `d`, above which its tail is looked at; else half its greatest value.
#[must_use]
pub fn tail_from(d: &Distribution) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "a bucket's value")]
    match quantile(d, 0.999) {
        Quantile::Value { low_ns, .. } => low_ns as i64,
        _ => d.max_ns.unwrap_or(0) / 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hills_are_told_apart_and_noise_is_not() {
        let mut d = Distribution::default();
        d.add_many(5_000, 1_000_000);
        for (at, count) in [(3_300_000, 110), (47_000_000, 90), (50_000_000, 200), (54_000_000, 80)]
        {
            d.add_many(at, count);
        }
        let modes = tail_modes(&d, 1_000_000);
        assert_eq!(modes.len(), 2, "{modes:?}");
        assert_eq!((modes[0].count, modes[1].count), (370, 110));
        assert!(modes[0].low_ns <= 47_000_000 && modes[0].high_ns == 54_000_000, "{modes:?}");
        assert!(modes[1].share > 1.0e-4 && modes[1].share < 1.2e-4);
    }
}
