// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the great values lie: the modes of a tail, so that each can be asked for its cause.
//!
//! Units: ns.
//! A mode is a hill of the histogram in steps of an eighth of an octave, by ratio: it ends where the counts fall far
//! below it and rise again by more than chance (three standard deviations).
//! Not here: whether the tail can be extrapolated ([`super::threshold`]).

use serde::{Deserialize, Serialize};
use tailbound_core::Distribution;
use tailbound_core::number::{Real as _, Whole as _};

use crate::quantile::{Quantile, quantile};

/// Steps an octave. Of equal ratio: the histogram's own buckets double their width at every power
/// of two, which would look like a hill.
const STEPS: f64 = 8.0;

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
    let above = u64::try_from(above_ns.max(0)).unwrap_or(0);
    let mut hills: Vec<Hill> = Vec::new();
    // The last step that holds something, and the lowest since the peak of the hill so far.
    let (mut before, mut valley) = (None, u64::MAX);
    for step in steps(d, above) {
        let gap = before.is_some_and(|i: i64| step.index > i + 1);
        valley = valley.min(if gap { 0 } else { step.count });
        let new = Hill { low: step.low, high: step.high, count: step.count, peak: step.count };
        match hills.last_mut() {
            Some(hill) if !apart(valley, hill.peak.min(step.count)) => {
                hill.high = step.high;
                hill.count = hill.count.saturating_add(step.count);
                if step.count > hill.peak {
                    hill.peak = step.count;
                    valley = u64::MAX;
                }
            }
            _ => {
                hills.push(new);
                valley = u64::MAX;
            }
        }
        before = Some(step.index);
    }
    let n = d.n.max(1).real();
    hills
        .iter()
        .rev()
        .take(LISTED)
        .map(|h| TailMode {
            low_ns: i64::try_from(h.low).unwrap_or(i64::MAX),
            high_ns: i64::try_from(h.high).unwrap_or(i64::MAX).min(d.max_ns.unwrap_or(i64::MAX)),
            count: h.count,
            share: h.count.real() / n,
        })
        .collect()
}

/// Values of about one size.
struct Step {
    index: i64,
    low: u64,
    high: u64,
    count: u64,
}

/// The values above a limit in steps of equal ratio, ascending; empty ones are left out.
fn steps(d: &Distribution, above: u64) -> Vec<Step> {
    let mut out: Vec<Step> = Vec::new();
    for b in d.late.buckets().filter(|b| b.low_ns.saturating_add(b.width_ns) > above) {
        let middle = b.low_ns.real() + b.width_ns.real() / 2.0;
        let index = (middle.log2() * STEPS).floor().whole_i64();
        let high = b.low_ns.saturating_add(b.width_ns - 1);
        match out.last_mut().filter(|s| s.index == index) {
            Some(step) => {
                step.high = high;
                step.count = step.count.saturating_add(b.count);
            }
            None => out.push(Step { index, low: b.low_ns.max(above), high, count: b.count }),
        }
    }
    out
}

/// Is a valley between two hills, the lower one `peak` high, more than chance, and by a quarter
/// deeper? (Buckets that the steps cut make differences of a hundredth.)
fn apart(valley: u64, peak: u64) -> bool {
    let (valley, peak) = (valley.real(), peak.real());
    valley < 0.75 * peak && peak - valley > 3.0 * (peak + valley).sqrt()
}

/// The quantile 99.9 % of `d`, above which its tail is looked at; else half its greatest value.
#[must_use]
pub fn tail_from(d: &Distribution) -> i64 {
    match quantile(d, 0.999) {
        Quantile::Value { low_ns, .. } | Quantile::Below { low_ns, .. } => low_ns.whole_i64(),
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
        // One smooth slope over many octaves is one heap.
        let mut smooth = Distribution::default();
        for i in 0..2000u32 {
            let at = (1e5 * (f64::from(i) / 300.0).exp()).whole_i64();
            smooth.add_many(at, u64::from(2000 - i));
        }
        assert_eq!(tail_modes(&smooth, 100_000).len(), 1, "{:?}", tail_modes(&smooth, 100_000));
        assert!(modes[1].share > 1.0e-4 && modes[1].share < 1.2e-4);
    }
}
