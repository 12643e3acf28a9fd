// SPDX-License-Identifier: MIT OR Apache-2.0
//! What cyclictest keeps of one thread: cycles, least, last, average, greatest, the rows of its histogram, and which cycles
//! were beyond the last row.
//!
//! Units: those of [`crate::unit::Unit`], each latency cut off before anything is made of it, as cyclictest does.

use tailbound_core::number::{Real as _, Whole as _};

/// The least latency of a thread that has none, as cyclictest prints it.
const NO_LEAST: i64 = 1_000_000;

/// Figures of one thread.
#[derive(Clone, Debug)]
pub(crate) struct CyclicTally {
    pub(crate) cycles: u64,
    /// Those that were added.
    added: u64,
    pub(crate) least: i64,
    pub(crate) last: i64,
    pub(crate) greatest: i64,
    sum: i128,
    /// Counts by latency; empty without `-h`.
    pub(crate) rows: Vec<u64>,
    pub(crate) overflows: u64,
    /// The first cycles beyond the rows, as many as there are rows.
    pub(crate) outliers: Vec<u64>,
}

impl CyclicTally {
    pub(crate) fn new(rows: usize) -> Self {
        Self {
            cycles: 0,
            added: 0,
            least: NO_LEAST,
            last: 0,
            greatest: 0,
            sum: 0,
            rows: vec![0; rows],
            overflows: 0,
            outliers: Vec::new(),
        }
    }

    /// The next wake-up.
    pub(crate) fn add(&mut self, latency: i64) {
        self.least = self.least.min(latency);
        self.greatest = self.greatest.max(latency);
        self.last = latency;
        self.sum = self.sum.saturating_add(i128::from(latency));
        if !self.rows.is_empty() {
            // One before its due time is in the first row.
            let row = usize::try_from(latency.max(0)).unwrap_or(usize::MAX);
            match self.rows.get_mut(row) {
                Some(count) => *count = count.saturating_add(1),
                None => {
                    self.overflows = self.overflows.saturating_add(1);
                    if self.outliers.len() < self.rows.len() {
                        self.outliers.push(self.cycles);
                    }
                }
            }
        }
        self.cycles = self.cycles.saturating_add(1);
        self.added = self.added.saturating_add(1);
    }

    /// Some latencies were never added: count and extremes are those of all.
    pub(crate) fn correct(&mut self, cycles: u64, least: i64, greatest: i64) {
        (self.cycles, self.least, self.greatest) = (cycles, least, greatest);
    }

    /// The mean of the latencies that were added.
    pub(crate) fn mean(&self) -> f64 {
        match self.added {
            0 => 0.0,
            n => self.sum.real() / n.real(),
        }
    }

    /// The same, cut to a whole unit.
    pub(crate) fn average(&self) -> i64 {
        self.mean().whole_i64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_overflows_hold_every_cycle() {
        let mut tally = CyclicTally::new(3);
        for latency in [2, 0, 3, 1, 9, 2, -1, 7, 8] {
            tally.add(latency);
        }
        assert_eq!((tally.rows.as_slice(), tally.overflows), ([2, 1, 2].as_slice(), 4));
        assert_eq!(tally.outliers, [2, 4, 7], "as many as there are rows");
        let figures = (tally.cycles, tally.least, tally.last, tally.average(), tally.greatest);
        assert_eq!(figures, (9, -1, 8, 3, 9));
        assert_eq!(CyclicTally::new(0).least, 1_000_000);
    }
}
