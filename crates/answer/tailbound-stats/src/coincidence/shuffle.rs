// SPDX-License-Identifier: MIT OR Apache-2.0
//! Other orders of the seconds, in stretches that keep what resembles its neighbours together.
//!
//! Units: seconds.

use tailbound_core::number::Real as _;

use super::cells::Cells;
use crate::random::Random;

/// Fewest stretches that are put into another order; below it the seconds are only turned.
const STRETCHES_MIN: usize = 10;

/// Orders from a seed.
pub(super) struct Shuffle {
    seconds: usize,
    /// Seconds that stay together.
    stretch: usize,
    random: Random,
}

impl Shuffle {
    pub(super) fn new(cells: &Cells, late: &[bool], much: &[bool], seed: u64) -> Self {
        let of = |marks: &[bool]| memory(&by_second(marks, cells.seconds));
        // Two series seem to belong together where both have a memory: the shorter one decides.
        let memory = of(late).min(of(much));
        let stretch = if memory <= 1 { 1 } else { memory.saturating_mul(2) };
        Self { seconds: cells.seconds, stretch, random: Random::new(seed) }
    }

    /// How many orders differ at all.
    pub(super) fn most(&self) -> usize {
        if self.turns_only() { self.seconds.saturating_sub(1) } else { usize::MAX }
    }

    fn turns_only(&self) -> bool {
        self.seconds / self.stretch < STRETCHES_MIN
    }

    /// Where each second's mark is taken from.
    pub(super) fn next(&mut self) -> Vec<usize> {
        let n = self.seconds;
        let turn = 1 + self.random.below(n.saturating_sub(1));
        if self.turns_only() {
            return (0..n).map(|s| (s + turn) % n).collect();
        }
        let mut begins: Vec<usize> = (0..n).step_by(self.stretch).collect();
        self.random.shuffle(&mut begins);
        let stretches = begins.iter().flat_map(|b| *b..(b + self.stretch).min(n));
        stretches.map(|s| (s + turn) % n).collect()
    }
}

/// How many rows have the mark, second by second.
fn by_second(marks: &[bool], seconds: usize) -> Vec<f64> {
    let mut sums = vec![0.0; seconds];
    for row in marks.chunks(seconds.max(1)) {
        for (sum, mark) in sums.iter_mut().zip(row) {
            *sum += f64::from(u8::from(*mark));
        }
    }
    sums
}

/// The first lag from which on neighbours do not resemble each other more than by chance; 1 where they never did.
fn memory(series: &[f64]) -> usize {
    let n = series.len();
    let mean = series.iter().sum::<f64>() / n.max(1).real();
    let around: Vec<f64> = series.iter().map(|v| v - mean).collect();
    let whole: f64 = around.iter().map(|v| v * v).sum();
    if whole <= 0.0 {
        return 1;
    }
    let chance = 1.96 / n.real().sqrt();
    let resembles = |lag: usize| {
        let pairs = around.iter().zip(around.iter().skip(lag));
        pairs.map(|(a, b)| a * b).sum::<f64>() / whole > chance
    };
    (1..n / 2).find(|lag| !resembles(*lag)).unwrap_or(n)
}
