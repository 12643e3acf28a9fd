// SPDX-License-Identifier: MIT OR Apache-2.0
//! Quantiles that another tool printed of values that it gave no histogram of.
//!
//! Units: ns; probabilities from 0 to 1.
//! Argument: quantiles rise with their probability, so one between two known ones lies between their
//! values, and of the values at least a share `1 - p` is not below the quantile of `p`. Tools differ by one
//! in the rank they take for a probability: counts give one value less than certain for that.
//! Not here: quantiles of a histogram (`tailbound-stats`).

use serde::{Deserialize, Serialize};

use crate::number::{Real as _, Whole as _};

/// The same probability, written in another way.
const SAME: f64 = 1e-9;
/// Most quantiles of a distribution.
pub const STATED_MAX: usize = 1 << 12;

/// A quantile as a tool printed it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatedQuantile {
    /// Its probability.
    pub p: f64,
    /// Its value.
    pub ns: i64,
}

/// Probabilities and their quantiles, both rising.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StatedQuantiles(Vec<StatedQuantile>);

/// What is known of a quantile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stated {
    /// The tool printed it.
    Exactly(i64),
    /// It lies between two that the tool printed.
    Between(i64, i64),
    /// It is this or more: the tool printed none above.
    AtLeast(i64),
    /// The tool printed none below.
    Unknown,
}

impl StatedQuantiles {
    /// Quantiles in the order of their probabilities; `None` where one contradicts another.
    #[must_use]
    pub fn new(pairs: impl IntoIterator<Item = (f64, i64)>) -> Option<Self> {
        // Twelve decimals: more than any tool prints, and exact in the run file's decimal form.
        let short = |p: f64| (p * 1e12).round() / 1e12;
        let all = pairs.into_iter().map(|(p, ns)| StatedQuantile { p: short(p), ns });
        Self(all.collect()).checked()
    }

    fn checked(self) -> Option<Self> {
        let probable = |p: f64| p > 0.0 && p < 1.0;
        let rises = |w: &[StatedQuantile]| matches!(w, [a, b] if a.p < b.p && a.ns <= b.ns);
        let sound = self.0.len() <= STATED_MAX
            && self.0.windows(2).all(rises)
            && self.0.iter().all(|q| probable(q.p));
        sound.then_some(self)
    }

    /// Are there none?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Their values.
    pub fn values(&self) -> impl Iterator<Item = i64> + '_ {
        self.0.iter().map(|q| q.ns)
    }

    /// As a file holds them they rise, and none is beyond 0 and 1.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.clone().checked().is_some()
    }

    /// What is known of the quantile of probability `p`.
    #[must_use]
    pub fn at(&self, p: f64) -> Stated {
        let mut below = None;
        for q in &self.0 {
            if (q.p - p).abs() < SAME {
                return Stated::Exactly(q.ns);
            }
            if q.p > p {
                return below.map_or(Stated::Unknown, |low| Stated::Between(low, q.ns));
            }
            below = Some(q.ns);
        }
        below.map_or(Stated::Unknown, Stated::AtLeast)
    }

    /// Of `n` values: how many are certainly later than `limit_ns`, and how many may be.
    #[must_use]
    pub fn beyond(&self, n: u64, limit_ns: i64) -> (u64, u64) {
        let (mut certain, mut possible) = (0, n);
        for StatedQuantile { p, ns } in self.0.iter().copied() {
            let above = ((1.0 - p) * n.real()).floor().whole_u64();
            if ns > limit_ns {
                certain = certain.max(above.saturating_sub(1));
            } else {
                possible = possible.min(above.saturating_add(1));
            }
        }
        (certain.min(n), possible.max(certain).min(n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(f64, i64)]) -> StatedQuantiles {
        StatedQuantiles::new(pairs.iter().copied()).unwrap_or_default()
    }

    #[test]
    fn a_quantile_is_known_bounded_or_neither() {
        let q = of(&[(0.25, 6), (0.5, 13), (0.999, 1798)]);
        assert_eq!(q.at(0.5), Stated::Exactly(13));
        assert_eq!(q.at(99.9 / 100.0), Stated::Exactly(1798));
        assert_eq!(q.at(0.9), Stated::Between(13, 1798));
        assert_eq!(q.at(0.05), Stated::Unknown);
        assert_eq!(q.at(0.9999), Stated::AtLeast(1798));
    }

    #[test]
    fn counts_beyond_a_limit_are_bounds_that_hold_whatever_rank_a_tool_takes() {
        // 1 to 10,000; the tool takes the value of index p * n, from 0.
        let q = of(&[(0.25, 2501), (0.5, 5001), (0.99, 9901)]);
        for limit in [0_i64, 2500, 2501, 5000, 5001, 9900, 9901, 10_000] {
            let truth = 10_000 - limit.unsigned_abs();
            let (certain, possible) = q.beyond(10_000, limit);
            assert!(certain <= truth && truth <= possible, "{limit}: {certain} {truth} {possible}");
        }
        assert_eq!(q.beyond(10_000, 5000), (4999, 7501));
    }

    #[test]
    fn what_does_not_rise_is_not_believed() {
        for bad in [&[(0.5, 9), (0.9, 8)][..], &[(0.9, 8), (0.5, 9)], &[(0.0, 1)], &[(1.0, 1)]] {
            assert_eq!(StatedQuantiles::new(bad.iter().copied()), None, "{bad:?}");
        }
        assert!(of(&[(f64::NAN, 1)]).is_empty());
    }
}
