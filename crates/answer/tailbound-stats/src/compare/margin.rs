// SPDX-License-Identifier: MIT OR Apache-2.0
//! From an interval to a word: is a difference greater than what matters?
//!
//! Units: ns, ratios.
//! A difference matters if it exceeds *both* margins: the relative one (5 %), so that 1 µs
//! more of 100 µs is not an alarm, and the absolute one (1 µs), so that 40 ns more of 400 ns is
//! none either. So with simultaneous limits of ratio and difference:
//!
//! | word | when |
//! |---|---|
//! | regression | lower limits beyond both margins |
//! | improvement | upper limits beyond both margins on the other side |
//! | equivalent | on each side, the limit is within at least one margin |
//! | inconclusive | else |
//!
//! Exactly one holds. Not here: significance without relevance: no word comes from a p-value.
//! Source: Schuirmann 1987 (equivalence by an interval inside a margin).

use serde::Serialize;
use tailbound_core::number::{Real as _, Whole as _};

use super::interval::Interval;

/// The smallest change that matters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Margin {
    /// As a share: 0.05.
    pub relative: f64,
    /// And as a time.
    pub time_ns: f64,
}

impl Default for Margin {
    fn default() -> Self {
        Self { relative: 0.05, time_ns: 1000.0 }
    }
}

/// What can be said of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Word {
    /// Neither later nor earlier by what matters.
    Equivalent,
    /// Earlier by more than the margin.
    Improvement,
    /// It could still be either.
    Inconclusive,
    /// Later by more than the margin.
    Regression,
}

impl Word {
    /// For people.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Regression => "regression",
            Self::Improvement => "improvement",
            Self::Equivalent => "equivalent",
            Self::Inconclusive => "inconclusive",
        }
    }
}

/// The word for a figure; `ratio` is absent where there is none.
#[must_use]
pub fn judge(ratio: Option<&Interval>, difference_ns: &Interval, margin: &Margin) -> Word {
    let above = 1.0 + margin.relative;
    let [low_ns, high_ns] = difference_ns.simultaneous;
    let [low, high] = ratio.map_or([f64::INFINITY, f64::INFINITY], |r| r.simultaneous);
    let later = |ns: f64, r: f64| ns > margin.time_ns && r > above;
    let has = ratio.is_some();
    let earlier = |ns: f64, r: f64| ns < -margin.time_ns && (!has || r < 1.0 / above);
    if later(low_ns, low) {
        Word::Regression
    } else if earlier(high_ns, high) {
        Word::Improvement
    } else if !later(high_ns, high) && !earlier(low_ns, low) {
        Word::Equivalent
    } else {
        Word::Inconclusive
    }
}

/// About how many more units decide an inconclusive figure of `a_ns`, its width shrinking with
/// the root of their number; `None` where the difference is so close to the margin that a
/// thousand times as many would not.
#[must_use]
pub fn more_units(ratio: &Interval, a_ns: f64, margin: &Margin, units: usize) -> Option<u64> {
    let estimate = ratio.estimate.ln().abs();
    let [low, high] = ratio.simultaneous.map(f64::ln);
    let half = (high - low) / 2.0;
    let limit = margin.relative.max(margin.time_ns / a_ns.max(1.0)).ln_1p();
    let room = (estimate - limit).abs();
    let needed = units.real() * (half / room) * (half / room);
    if !needed.is_finite() || needed > 1000.0 * units.real() {
        return None;
    }
    let needed = needed.ceil().whole_u64();
    Some(needed.saturating_sub(units as u64).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(low: f64, high: f64) -> Interval {
        Interval {
            estimate: (low * high).sqrt(),
            pointwise: [low, high],
            simultaneous: [low, high],
        }
    }

    fn word(low: f64, high: f64, a_ns: f64) -> Word {
        let ns = Interval {
            estimate: 0.0,
            pointwise: [0.0; 2],
            simultaneous: [a_ns * (low - 1.0), a_ns * (high - 1.0)],
        };
        judge(Some(&interval(low, high)), &ns, &Margin::default())
    }

    #[test]
    fn both_margins_count() {
        assert_eq!(word(1.06, 1.2, 100_000.0), Word::Regression);
        assert_eq!(word(1.04, 1.2, 100_000.0), Word::Inconclusive);
        assert_eq!(word(0.7, 0.9, 100_000.0), Word::Improvement);
        assert_eq!(word(0.97, 1.04, 100_000.0), Word::Equivalent);
        assert_eq!(word(1.01, 1.04, 100_000.0), Word::Equivalent, "real, but it does not matter");
        // 40 ns more of 400 ns is 10 % and nothing; 0.4 µs more of 10 µs is 4 % and nothing.
        assert_eq!(word(1.09, 1.11, 400.0), Word::Equivalent);
        assert_eq!(word(0.5, 3.0, 400.0), Word::Equivalent);
        assert_eq!(word(0.5, 4.0, 400.0), Word::Inconclusive);
        let ns = |low, high| Interval { simultaneous: [low, high], ..Interval::default() };
        assert_eq!(judge(None, &ns(2000.0, 3000.0), &Margin::default()), Word::Regression);
        assert_eq!(judge(None, &ns(-3000.0, -2000.0), &Margin::default()), Word::Improvement);
        assert_eq!(judge(None, &ns(-300.0, 200.0), &Margin::default()), Word::Equivalent);
    }

    #[test]
    fn more_rounds_shrink_the_interval_into_the_margin() {
        let margin = Margin::default();
        // Half as wide needs four times the rounds.
        let half = 1.05f64.ln();
        let wide = interval((-2.0 * half).exp(), (2.0 * half).exp());
        let more = more_units(&wide, 1e6, &margin, 30);
        assert!(more.is_some_and(|n| (89..=91).contains(&n)), "{more:?}");
        assert_eq!(more_units(&interval(1.0, 1.1025), 1e6, &margin, 30), None, "on the margin");
    }
}
