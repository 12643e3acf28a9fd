// SPDX-License-Identifier: MIT OR Apache-2.0
//! Series of runs that resemble their neighbours: what chance makes of them.
//!
//! Units: those of the figures' columns (spreads).
//! Exchanging runs says what chance does only if a run does not depend on the one before. Where it
//! does, a wandering level looks like a change: of 50 such series (correlation 0.7) 31 were taken for
//! changed. Then the runs of chance are made from the figures' own innovations, in random order.
//! The correlation comes from differences of runs three apart and of neighbours, which a step blows
//! up at three places only: independent runs differ as much at either distance. Of few runs these
//! places are too many, and a step looks like a level that wanders: few are exchanged, as if independent.
//! Source: Bühlmann 1997 (sieve bootstrap).

use std::ops::Range;

use tailbound_core::number::Real as _;

use crate::median::median;
use crate::random::Random;

/// A correlation below this is taken for none: it is what chance gives.
const LEAST: f64 = 0.2;

/// Runs do not resemble their neighbours more than this: beyond it nothing could be a change.
const MOST: f64 = 0.9;

/// So many runs tell a correlation from a step.
const RUNS_MIN: usize = 20;

/// Distance of the runs whose differences are held against those of neighbours.
const APART: usize = 3;

/// The figures of a series, and how much of its deviation a run has from the one before.
#[derive(Debug)]
pub(super) struct Lasting {
    columns: Vec<Vec<f64>>,
    kept: Vec<f64>,
}

impl Lasting {
    /// Of columns, one a figure.
    pub(super) fn of(columns: Vec<Vec<f64>>) -> Self {
        if columns.first().is_none_or(|column| column.len() < RUNS_MIN) {
            return Self { columns, kept: Vec::new() };
        }
        let own: Vec<f64> = columns.iter().map(|c| correlation(c)).collect();
        let mean = own.iter().sum::<f64>() / own.len().max(1).real();
        // Of one figure it is known badly: all of them together say more.
        let kept: Vec<f64> = own.into_iter().map(|own| own.max(mean)).collect();
        let none = kept.iter().all(|k| *k < LEAST);
        let kept = if none { Vec::new() } else { kept };
        Self { columns, kept }
    }

    /// The greatest correlation; `None`: runs may be exchanged.
    pub(super) fn greatest(&self) -> Option<f64> {
        self.kept.iter().copied().reduce(f64::max)
    }

    /// The columns of a series of chance as long as `range`, from its innovations.
    pub(super) fn draw(&self, range: &Range<usize>, random: &mut Random) -> Vec<Vec<f64>> {
        let n = range.len();
        let mut order: Vec<usize> = (0..n).collect();
        random.shuffle(&mut order);
        let one = |(column, kept): (&Vec<f64>, &f64)| {
            let values = column.get(range.clone()).unwrap_or_default();
            let level = median(&mut values.to_vec());
            let start = (1.0 - kept * kept).sqrt();
            let innovation = |i: usize| {
                let at = |i: usize| values.get(i).map_or(0.0, |v| v - level);
                if i == 0 { at(0) * start } else { at(i) - kept * at(i - 1) }
            };
            let mut last: Option<f64> = None;
            let next = |i: &usize| {
                let new = innovation(*i);
                let value = last.map_or(new / start, |before| kept * before + new);
                last = Some(value);
                value
            };
            order.iter().map(next).collect()
        };
        self.columns.iter().zip(&self.kept).map(one).collect()
    }
}

/// How much of its deviation a run keeps from the one before.
fn correlation(values: &[f64]) -> f64 {
    let squares = |apart: usize| {
        let mut d: Vec<f64> =
            values.iter().zip(values.iter().skip(apart)).map(|(a, b)| (b - a).abs()).collect();
        let most = 3.0 * median(&mut d.clone());
        d.iter_mut().for_each(|d| *d = d.min(most).powi(2));
        d.iter().sum::<f64>() / d.len().max(1).real()
    };
    let (near, far) = (squares(1), squares(APART));
    if near <= 0.0 || !far.is_finite() {
        return 0.0;
    }
    // (1-k³)/(1-k) = 1 + k + k².
    let ratio = (far / near).max(1.0);
    (((4.0 * ratio - 3.0).sqrt() - 1.0) / 2.0).clamp(0.0, MOST)
}
