// SPDX-License-Identifier: MIT OR Apache-2.0
//! In what rhythm a thread's cycles are released, from the times of their releases.
//!
//! Units: ns.
//! Intervals between successive releases are compared with whole multiples of a candidate period
//! (a release that was lost or skipped makes a double one). Candidates are the intervals themselves; of
//! those that explain as many as the best does, the longest is the period. Whether the releases keep to a
//! grid is told by their distance over many intervals: on a grid it is as exact as over one, in a chain of
//! relative sleeps or of independent arrivals the deviations add up.
//! Not here: which wait releases a cycle (`tailbound-trace`).

use serde::{Deserialize, Serialize};

use crate::blame::Sureness;
use crate::number::{Real as _, Whole as _};
use crate::words::open_words;

open_words! {
    /// The kind of a rhythm.
    #[derive(Default)]
    PaceKind {
        /// Releases lie on a grid of one period, each late or early by its jitter.
        Periodic = "periodic",
        /// Intervals are alike, but nothing keeps them to a grid: a loop that sleeps for a fixed time.
        Regular = "regular",
        /// Intervals differ; there is a shortest one.
        Sporadic = "sporadic",
        /// Too few releases.
        #[default]
        NotKnown = "unknown",
    }
}

/// In what rhythm cycles are released.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    /// Which kind.
    pub kind: PaceKind,
    /// The period; of a regular pace the mean interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period_ns: Option<i64>,
    /// The user gave the period.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub given: bool,
    /// How sure.
    pub sureness: Sureness,
    /// Intervals between successive releases.
    pub intervals: u64,
    /// Those that are a whole multiple of the period, within a quarter of it.
    pub fitting: u64,
    /// Four of five intervals deviate by no more than this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter_ns: Option<i64>,
    /// The shortest interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_ns: Option<i64>,
}

/// Most intervals whose lengths are tried as periods.
const CANDIDATES: usize = 48;
/// A longer gap than this many periods says nothing about the period.
const MULTIPLE_MAX: f64 = 8.0;
/// An interval fits that deviates by no more than this share of the period.
const FITS: f64 = 0.25;
/// Below this deviation intervals are alike.
const ALIKE: f64 = 0.05;
/// Intervals over which deviations are looked at for adding up.
const FAR: usize = 16;
/// Deviations that grow by more than this over so many intervals do not keep to a grid; independent ones grow by 4.
const GROWTH: f64 = 2.0;
/// Fewer intervals say nothing.
const LEAST: usize = 3;

/// How well one period explains intervals.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fit {
    pub(super) period: f64,
    pub(super) fitting: usize,
    /// The 80th percentile of the deviation, as a share of the period.
    pub(super) spread: f64,
}

fn fit(intervals: &[f64], period: f64) -> Fit {
    let mut deviations = Vec::with_capacity(intervals.len());
    let (mut sum, mut steps, mut fitting) = (0.0, 0.0, 0);
    for d in intervals {
        let multiple = (d / period).round().max(1.0);
        if multiple > MULTIPLE_MAX {
            continue;
        }
        let deviation = (d - multiple * period).abs() / period;
        deviations.push(deviation);
        if deviation <= FITS {
            fitting = usize::saturating_add(fitting, 1);
            sum += d;
            steps += multiple;
        }
    }
    deviations.sort_by(f64::total_cmp);
    let spread = most_of(&deviations).unwrap_or(1.0);
    let period = if steps > 0.0 { sum / steps } else { period };
    Fit { period, fitting, spread }
}

/// The period that explains `intervals` best.
fn best(intervals: &[f64]) -> Option<Fit> {
    let mut sorted: Vec<f64> = intervals.iter().copied().filter(|d| *d > 0.0).collect();
    sorted.sort_by(f64::total_cmp);
    if sorted.len() < LEAST {
        return None;
    }
    let step = (sorted.len() / CANDIDATES).max(1);
    let mut candidates: Vec<f64> = sorted.iter().copied().step_by(step).collect();
    candidates.extend(sorted.get(sorted.len() / 2));
    let fits: Vec<Fit> = candidates
        .iter()
        .map(|c| {
            // The candidate is one interval with its own jitter: the mean of those that fit is nearer.
            let once = fit(intervals, *c);
            fit(intervals, once.period)
        })
        .collect();
    // Half a period explains as much as the whole: of those that are nearly as good, the one whose
    // intervals are single periods.
    let most = fits.iter().map(|f| f.fitting).max()?;
    let good = |f: &&Fit| f.fitting.saturating_mul(10) >= most.saturating_mul(9);
    let longest = fits.iter().filter(good).map(|f| f.period).max_by(f64::total_cmp)?;
    let near = |f: &&Fit| good(f) && f.period > longest * 0.8;
    fits.iter().filter(near).min_by(|a, b| a.spread.total_cmp(&b.spread)).copied()
}

/// The 80th percentile of how far apart releases `lag` intervals apart are from whole multiples.
fn spread_over(releases: &[f64], period: f64, lag: usize) -> Option<f64> {
    let mut all: Vec<f64> = releases
        .iter()
        .zip(releases.iter().skip(lag))
        .map(|(a, b)| {
            let multiple = ((b - a) / period).round();
            ((b - a) - multiple * period).abs() / period
        })
        .collect();
    all.sort_by(f64::total_cmp);
    most_of(&all)
}

/// The 80th percentile of what is in order.
fn most_of(sorted: &[f64]) -> Option<f64> {
    let at = sorted.len().saturating_mul(4) / 5;
    sorted.get(at.min(sorted.len().checked_sub(1)?)).copied()
}

impl Pace {
    /// The rhythm of `releases`, in the order of time; `given` is the period that the user knows.
    #[must_use]
    pub fn of(releases: &[u64], given: Option<i64>) -> Self {
        let first = releases.first().copied().unwrap_or(0);
        let times: Vec<f64> = releases.iter().map(|t| t.saturating_sub(first).real()).collect();
        let intervals: Vec<f64> =
            times.iter().zip(times.iter().skip(1)).map(|(a, b)| b - a).collect();
        let least = intervals.iter().copied().min_by(f64::total_cmp);
        let mut pace = Self {
            given: given.is_some(),
            intervals: intervals.len() as u64,
            least_ns: least.map(|l| l.round().whole_i64()),
            period_ns: given,
            sureness: if given.is_some() { Sureness::Sure } else { Sureness::Unsure },
            ..Self::default()
        };
        let found = match given {
            Some(period) if period > 0 => {
                pace.kind = PaceKind::Periodic;
                (!intervals.is_empty()).then(|| fit(&intervals, period.real()))
            }
            _ => best(&intervals),
        };
        let Some(found) = found else { return pace };
        pace.fitting = found.fitting as u64;
        let period = given.map_or(found.period, |g| g.real());
        pace.jitter_ns = Some((found.spread * period).round().whole_i64());
        if given.is_some() {
            return pace;
        }
        let fits = found.fitting.real() / intervals.len().real();
        let far = FAR.min(intervals.len() / 2).max(1);
        let grown = spread_over(&times, period, far).unwrap_or(1.0);
        // Two ends of an interval move, whatever its length: a floor for what is exact already.
        let on_grid = grown <= (found.spread * GROWTH).max(0.01) && grown < FITS;
        pace.kind = match () {
            () if fits >= 0.8 && on_grid => PaceKind::Periodic,
            () if fits >= 0.8 && found.spread < ALIKE => PaceKind::Regular,
            () => PaceKind::Sporadic,
        };
        pace.period_ns = (pace.kind != PaceKind::Sporadic).then(|| period.round().whole_i64());
        pace.sureness = match intervals.len() {
            n if n >= 30 && (fits >= 0.95 || pace.kind == PaceKind::Sporadic) => Sureness::Sure,
            n if n >= 8 => Sureness::Likely,
            _ => Sureness::Unsure,
        };
        pace
    }

    /// How irregular intervals are, from 0 (exact) to 1, against the best period or the `given` one.
    #[must_use]
    pub fn irregularity(releases: &[u64], given: Option<i64>) -> f64 {
        let pairs = releases.iter().zip(releases.iter().skip(1));
        let intervals: Vec<f64> = pairs.map(|(a, b)| b.saturating_sub(*a).real()).collect();
        let found = match given {
            Some(period) if period > 0 => Some(fit(&intervals, period.real())),
            _ => best(&intervals),
        };
        let Some(found) = found else { return 1.0 };
        let fits = found.fitting.real() / intervals.len().max(1).real();
        (found.spread + (1.0 - fits)).min(1.0)
    }

    /// Is there a period that the next release can be told from?
    #[must_use]
    pub fn is_paced(&self) -> bool {
        matches!(self.kind, PaceKind::Periodic | PaceKind::Regular) && self.period_ns.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(i: u64) -> u64 {
        // splitmix64: neighbours must have nothing in common.
        let mut z = i.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % 1000
    }

    #[test]
    fn a_grid_with_jitter_and_holes_has_its_period() {
        let times: Vec<u64> = (0..200u64)
            .filter(|i| i % 13 != 5)
            .map(|i| 1_000_000 + i * 10_000_000 + noise(i) * 2_000)
            .collect();
        let pace = Pace::of(&times, None);
        assert_eq!((pace.kind, pace.sureness), (PaceKind::Periodic, Sureness::Sure));
        let period = pace.period_ns.unwrap_or(0);
        assert!((9_990_000..=10_010_000).contains(&period), "{pace:?}");
    }

    #[test]
    fn a_loop_of_relative_sleeps_is_regular_and_no_grid() {
        let mut t = 0;
        let times: Vec<u64> = (0..300u64)
            .map(|i| {
                t += 10_000_000 + noise(i) * 500;
                t
            })
            .collect();
        assert_eq!(Pace::of(&times, None).kind, PaceKind::Regular);
    }

    #[test]
    fn independent_arrivals_have_a_shortest_interval_and_no_period() {
        let mut t = 0;
        let times: Vec<u64> = (0..300u64)
            .map(|i| {
                t += 4_000_000 + noise(i) * 4_000;
                t
            })
            .collect();
        let pace = Pace::of(&times, None);
        assert_eq!((pace.kind, pace.period_ns), (PaceKind::Sporadic, None), "{pace:?}");
        assert!(pace.least_ns.is_some_and(|l| (4_000_000..4_200_000).contains(&l)));
    }

    #[test]
    fn few_releases_say_nothing_and_a_given_period_stands() {
        assert_eq!(Pace::of(&[], None).kind, PaceKind::NotKnown);
        assert_eq!(Pace::of(&[1, 2, 3], None).kind, PaceKind::NotKnown);
        let pace = Pace::of(&[0, 10, 20], Some(10));
        assert_eq!((pace.period_ns, pace.given, pace.fitting), (Some(10), true, 2));
    }
}
