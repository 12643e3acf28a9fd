// SPDX-License-Identifier: MIT OR Apache-2.0
//! By how much one system's work is done sooner than the other's: the ratio of two means, its
//! interval, and what it takes where the repetitions cannot show it.
//!
//! Units: percent; the samples' own.
//! The real-fast advantage is real time over real fast, less one, in percent: 1556.2 s against
//! 1332.6 s are 16.8 %. The interval is Fieller's, for a ratio of two means with unlike
//! deviations, with Welch's degrees of freedom; the repetitions are taken as independent.
//! Source: Fieller 1954; Welch 1947.

use serde::Serialize;

use super::sample::Sample;
use crate::student;

/// Most repetitions that are worth naming.
const NEEDED_MAX: u32 = 1000;

/// What two samples of the cost of one benchmark say.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advantage {
    /// Cost on the real-time system over that on the real-fast one.
    pub ratio: f64,
    /// The same less one, in percent: positive where real fast is faster.
    pub percent: f64,
    /// Lower end of the interval of the ratio.
    pub ratio_low: Option<f64>,
    /// Upper end.
    pub ratio_high: Option<f64>,
    /// Welch's degrees of freedom.
    pub degrees: Option<f64>,
    /// Do the repetitions show which system is faster?
    pub shown: bool,
    /// Where they do not: repetitions of each system that would, if what was seen went on.
    pub needed: Option<u32>,
    /// Why there is no interval.
    pub why_not: Option<String>,
}

/// What the samples say at `confidence`; `None` where the real-fast mean is not positive.
#[must_use]
pub fn advantage(real: &Sample, fast: &Sample, confidence: f64) -> Option<Advantage> {
    if !(fast.mean > 0.0 && real.mean >= 0.0) {
        return None;
    }
    let ratio = real.mean / fast.mean;
    let mut it = Advantage {
        ratio,
        percent: (ratio - 1.0) * 100.0,
        ratio_low: None,
        ratio_high: None,
        degrees: None,
        shown: false,
        needed: None,
        why_not: None,
    };
    if real.n < 2 || fast.n < 2 {
        it.why_not = Some("one repetition has no deviation: repeat the benchmark".to_owned());
        it.needed = Some(3);
        return Some(it);
    }
    let (va, vb) = (real.error_squared(), fast.error_squared());
    if va + vb <= 0.0 {
        // Every repetition took exactly the same: in virtual time that can be.
        (it.ratio_low, it.ratio_high) = (Some(ratio), Some(ratio));
        it.shown = real.mean != fast.mean;
        return Some(it);
    }
    let degrees = degrees(real, fast, ratio);
    it.degrees = Some(degrees);
    let t = student::quantile(f64::midpoint(confidence, 1.0), degrees);
    let denominator = fast.mean * fast.mean - t * t * vb;
    let inner =
        (real.mean * fast.mean).powi(2) - (real.mean * real.mean - t * t * va) * denominator;
    if denominator > 0.0 && inner >= 0.0 {
        let (middle, half) = (real.mean * fast.mean, inner.sqrt());
        let (low, high) = ((middle - half) / denominator, (middle + half) / denominator);
        // Times are not negative, whatever the arithmetic of the interval says.
        (it.ratio_low, it.ratio_high) = (Some(low.max(0.0)), Some(high));
        it.shown = low > 1.0 || high < 1.0;
    } else {
        it.why_not =
            Some("the repetitions differ so much that the ratio could be anything".to_owned());
    }
    if !it.shown {
        it.needed = needed(real, fast, confidence);
    }
    Some(it)
}

/// Welch's degrees of freedom of `real - ratio * fast`.
fn degrees(real: &Sample, fast: &Sample, ratio: f64) -> f64 {
    let (a, b) = (real.error_squared(), ratio * ratio * fast.error_squared());
    let own = a * a / f64::from(real.n - 1) + b * b / f64::from(fast.n - 1);
    if own > 0.0 { ((a + b).powi(2) / own).max(1.0) } else { 1.0 }
}

/// Repetitions of each from which the difference seen would exceed its own uncertainty.
fn needed(real: &Sample, fast: &Sample, confidence: f64) -> Option<u32> {
    let difference = (real.mean - fast.mean).abs();
    let variance = real.sd * real.sd + fast.sd * fast.sd;
    (real.n.min(fast.n) + 1..=NEEDED_MAX).find(|n| {
        let t = student::quantile(f64::midpoint(confidence, 1.0), f64::from(2 * (n - 1)));
        t * (variance / f64::from(*n)).sqrt() < difference
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three(mean: f64, sd: f64) -> Sample {
        Sample { n: 3, mean, sd }
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 0.05
    }

    #[test]
    fn the_kernel_builds_of_2008_and_2009() {
        let real = advantage(&three(1556.2, 22.4), &three(1332.6, 14.6), 0.95).unwrap();
        assert!(close(real.percent, 16.8), "{real:?}");
        assert!(real.shown);
        let (low, high) = (real.ratio_low.unwrap(), real.ratio_high.unwrap());
        // By hand: 223.6 ± t(3.4) * 15.4 s, about 2.97 * 15.4 = 46 s, over 1332.6 s.
        assert!((1.12..1.14).contains(&low) && (1.20..1.22).contains(&high), "{low} {high}");
        let later = advantage(&three(904.1, 0.0), &three(828.7, 0.0), 0.95).unwrap();
        assert!(close(later.percent, 9.1) && later.shown);
    }

    #[test]
    fn what_three_repetitions_cannot_show_says_how_many_could() {
        let it = advantage(&three(101.0, 2.0), &three(100.0, 2.0), 0.95).unwrap();
        assert!(!it.shown && it.ratio_low.unwrap() < 1.0 && it.ratio_high.unwrap() > 1.0);
        // 1.96 * sqrt(8 / n) < 1 from 31 on; Student asks for a few more.
        assert!(it.needed.is_some_and(|n| (31..36).contains(&n)), "{:?}", it.needed);
        let same = advantage(&three(100.0, 2.0), &three(100.0, 2.0), 0.95).unwrap();
        assert_eq!((same.shown, same.needed), (false, None));
        let once = advantage(&Sample { n: 1, mean: 2.0, sd: 0.0 }, &three(1.0, 0.1), 0.95).unwrap();
        assert!(once.ratio_low.is_none() && once.why_not.is_some());
        assert_eq!(advantage(&three(1.0, 0.0), &three(0.0, 0.0), 0.95), None);
    }

    #[test]
    fn scattered_repetitions_have_no_interval_rather_than_a_wrong_one() {
        let it = advantage(&three(2.0, 3.0), &three(1.0, 2.0), 0.95).unwrap();
        assert!(it.ratio_low.is_none() && it.why_not.is_some() && !it.shown, "{it:?}");
    }
}
