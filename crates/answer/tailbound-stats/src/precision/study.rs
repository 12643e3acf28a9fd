// SPDX-License-Identifier: MIT OR Apache-2.0
//! How often do the intervals of mean and quantiles hold where states of the machine last? A part of
//! the study of docs/results/bound.md.
//!
//! Units: ns; seconds of the schedule.
//! The scale of exponential values is that of a state that ends with a constant rate: 1 in half of
//! the states, 3 in the other half. Truth follows from equal shares of both.
//! Not here: printing (`examples/coverage.rs`).

use serde::Serialize;
use tailbound_core::Sums;
use tailbound_core::histogram::{Histogram, SparseHistogram};
use tailbound_core::number::{Real as _, Whole as _};
use tailbound_core::record::BlockRecord;

use super::Precision;
use super::series::Series;
use crate::blocks::PRECISION;
use crate::optimise::root;
use crate::random::Random;

/// Values a second.
const RATE: u32 = 100;

/// Scales of the two states, in ns.
const SCALES: [f64; 2] = [10_000.0, 30_000.0];

/// Quantiles that are judged, beside the mean.
pub const QUANTILES: [f64; 3] = [0.5, 0.99, 0.999];

/// A sort of run: how long it is, and how long states last on average; 0: values are independent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Case {
    /// Length of the run.
    pub seconds: u64,
    /// Mean length of a state.
    pub state_s: f64,
}

/// Every case of the study.
pub const CASES: [Case; 8] = {
    const fn case(seconds: u64, state_s: f64) -> Case {
        Case { seconds, state_s }
    }
    [
        case(600, 0.0),
        case(600, 1.0),
        case(600, 5.0),
        case(600, 20.0),
        case(3600, 0.0),
        case(3600, 5.0),
        case(3600, 20.0),
        case(3600, 60.0),
    ]
};

/// The intervals of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct IntervalCoverage {
    /// Of the mean and of [`QUANTILES`]: whether the interval holds, and its half-width over the
    /// truth; `None`: no interval.
    pub figures: [Option<(bool, f64)>; 4],
    /// Whether it is said that states outlast the stretches.
    pub lasting: bool,
}

/// Draws a run of the case and asks for its intervals.
#[must_use]
pub fn once(case: Case, seed: u64) -> IntervalCoverage {
    let mut random = Random::new(seed);
    let blocks = draw(case, &mut random);
    let precision = Precision::of(&blocks, None, &QUANTILES);
    let total = Series::of(&blocks, None).total();
    let mean_truth = f64::midpoint(SCALES[0], SCALES[1]);
    let mut held: [Option<(bool, f64)>; 4] = [None; 4];
    if let (Some(mean), Some(half)) = (total.mean(), precision.mean_ns) {
        held[0] = Some(((mean - mean_truth).abs() <= half, half / mean_truth));
    }
    for (place, (p, width)) in
        held.iter_mut().skip(1).zip(QUANTILES.iter().zip(&precision.quantiles))
    {
        let truth = quantile(*p);
        // A missing end is no claim: it holds on that side.
        let low = width.low_ns.is_none_or(|low| low <= truth);
        let high = width.high_ns.is_none_or(|high| truth <= high);
        *place = Some((low && high, width.half_ns.map_or(f64::NAN, |h| h / truth)));
    }
    IntervalCoverage { figures: held, lasting: precision.lasting.is_some() }
}

/// The quantile of values of which half are of each state.
fn quantile(p: f64) -> f64 {
    let above = |x: f64| SCALES.map(|s| (-x / s).exp()).iter().sum::<f64>() / 2.0;
    root(0.0, 40.0 * SCALES[1], 1e-9 * SCALES[0], |x| above(x).ln() - (1.0 - p).ln())
}

fn draw(case: Case, random: &mut Random) -> Vec<BlockRecord> {
    let mut state = usize::from(random.coin());
    let step_s = 1.0 / f64::from(RATE);
    let stays = if case.state_s > 0.0 { (-step_s / case.state_s).exp() } else { 0.0 };
    (0..case.seconds)
        .map(|second| {
            let (mut h, mut sums) = (Histogram::new(PRECISION), Sums::default());
            for _ in 0..RATE {
                // The next state is drawn anew, so that both have equal shares.
                if random.uniform() > stays {
                    state = usize::from(random.coin());
                }
                let scale = SCALES.get(state).copied().unwrap_or(1.0);
                let v = (-random.uniform().ln() * scale).whole_i64();
                h.add(v.unsigned_abs(), 1);
                sums.add(v);
            }
            BlockRecord {
                thread: 0,
                second,
                seconds: 1,
                n: u64::from(RATE),
                sums: Some(sums),
                late: SparseHistogram::from(&h),
                early: None,
            }
        })
        .collect()
}

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Which case.
    pub case: Case,
    /// Of mean and quantiles: the share of runs in which the interval holds.
    pub holds: [f64; 4],
    /// And its median half-width, as a share of the truth; not a number where most have none.
    pub half: [f64; 4],
    /// In which share states are said to outlast the stretches.
    pub lasting: f64,
}

impl Row {
    /// Sums up runs of a case.
    #[must_use]
    pub fn of(case: Case, runs: &[IntervalCoverage]) -> Self {
        let lasting = runs.iter().filter(|r| r.lasting).count().real();
        let lasting = lasting / runs.len().max(1).real();
        let mut row = Self { case, holds: [f64::NAN; 4], half: [f64::NAN; 4], lasting };
        for i in 0..4 {
            let given: Vec<(bool, f64)> =
                runs.iter().filter_map(|r| r.figures.get(i).copied().flatten()).collect();
            let held = given.iter().filter(|(held, _)| *held).count();
            let mut halves: Vec<f64> = given.iter().map(|(_, half)| *half).collect();
            halves.sort_unstable_by(f64::total_cmp);
            if let (Some(holds), Some(half)) = (row.holds.get_mut(i), row.half.get_mut(i)) {
                *holds = held.real() / given.len().max(1).real();
                *half = halves.get(halves.len() / 2).copied().unwrap_or(f64::NAN);
            }
        }
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A quick version: fixed seeds, so it cannot fail by chance.
    #[test]
    fn states_that_outlast_ten_seconds_widen_the_intervals() {
        let case = Case { seconds: 600, state_s: 5.0 };
        let row = Row::of(case, &(0..40).map(|i| once(case, 300 + i)).collect::<Vec<_>>());
        assert!(row.holds.iter().all(|h| *h >= 0.87), "{row:?}");
        let longer = Case { seconds: 100, state_s: 30.0 };
        let row = Row::of(longer, &(0..20).map(|i| once(longer, 300 + i)).collect::<Vec<_>>());
        assert!(row.lasting >= 0.6, "states that outlast the run are said to: {row:?}");
    }
}
