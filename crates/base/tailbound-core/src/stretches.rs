// SPDX-License-Identifier: MIT OR Apache-2.0
//! Samples in stretches of whole seconds, while the length of the run is not known: stretches begin with one second,
//! and where there are more than [`STRETCHES_MAX`] of them, pairs become one, so that a run of any length has a few hundred.
//!
//! Units: s, ns. Not here: cutting the counters of a run whose length is known (`tailbound_stats::blocks`).

use crate::Sums;
use crate::histogram::{Histogram, SparseHistogram};
use crate::record::BlockRecord;

/// Most stretches of a thread.
pub const STRETCHES_MAX: usize = 512;
/// Precision of their histograms, as in measured runs.
const PRECISION: u32 = 7;

/// See the module.
#[derive(Clone, Debug)]
pub struct Stretches {
    thread: u32,
    length_s: u64,
    /// Which one is open, counted in lengths.
    open: u64,
    closed: Vec<BlockRecord>,
}

impl Stretches {
    /// None yet; the first begins with second 0.
    #[must_use]
    pub fn new(thread: u32) -> Self {
        Self { thread, length_s: 1, open: 0, closed: Vec::new() }
    }

    /// Is `second` beyond the open stretch (or before it)? Then that is closed, with what
    /// [`Stretches::open`] is given.
    #[must_use]
    pub fn ends_before(&self, second: u64) -> bool {
        self.place(second) != self.open
    }

    /// A stretch with `second` begins.
    pub fn open(&mut self, second: u64) {
        self.open = self.place(second);
    }

    /// Which stretch a second lies in.
    fn place(&self, second: u64) -> u64 {
        second.checked_div(self.length_s).unwrap_or(second)
    }

    /// The open stretch is over: what came in it.
    pub fn close(&mut self, late: &Histogram, early: &Histogram, sums: Sums) {
        if sums.n == 0 {
            return;
        }
        let sparse = |h: &Histogram| SparseHistogram::from(&h.coarsened(PRECISION));
        self.push(BlockRecord {
            thread: self.thread,
            second: self.open.saturating_mul(self.length_s),
            seconds: self.length_s,
            n: sums.n,
            sums: Some(sums),
            late: sparse(late),
            early: (early.total() > 0).then(|| sparse(early)),
        });
        while self.closed.len() > STRETCHES_MAX {
            self.length_s = self.length_s.saturating_mul(2);
            for mut block in std::mem::take(&mut self.closed) {
                block.second = self.place(block.second).saturating_mul(self.length_s);
                block.seconds = self.length_s;
                self.push(block);
            }
        }
    }

    /// Keeps a stretch, together with the one before where both are now the same.
    fn push(&mut self, block: BlockRecord) {
        let Some(last) = self.closed.last_mut().filter(|last| last.second == block.second) else {
            self.closed.push(block);
            return;
        };
        last.n = last.n.saturating_add(block.n);
        last.late = both(&last.late, &block.late);
        last.early = match (last.early.take(), block.early) {
            (Some(a), Some(b)) => Some(both(&a, &b)),
            (a, b) => a.or(b),
        };
        if let (Some(a), Some(b)) = (&mut last.sums, &block.sums) {
            a.merge(b);
        }
    }

    /// All of them; the last one ends with second `last`.
    #[must_use]
    pub fn finish(mut self, last: u64) -> Vec<BlockRecord> {
        if let Some(block) = self.closed.last_mut() {
            let seconds = last.saturating_add(1).saturating_sub(block.second);
            block.seconds = seconds.clamp(1, block.seconds);
        }
        self.closed
    }
}

fn both(a: &SparseHistogram, b: &SparseHistogram) -> SparseHistogram {
    let mut sum = Histogram::new(a.precision());
    a.add_to(&mut sum);
    b.add_to(&mut sum);
    SparseHistogram::from(&sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Distribution;

    #[test]
    fn stretches_adjoin_and_hold_every_sample() {
        for (seconds, stretches, length) in
            [(3u64, 3, 1), (512, 512, 1), (1000, 500, 2), (5000, 313, 16)]
        {
            let (mut all, mut part, mut whole) =
                (Stretches::new(7), Distribution::default(), Distribution::default());
            let close = |all: &mut Stretches, part: &mut Distribution| {
                let part = std::mem::take(part);
                all.close(&part.late, &part.early, part.sums.unwrap_or_default());
            };
            for k in 0..seconds * 3 {
                if all.ends_before(k / 3) {
                    close(&mut all, &mut part);
                    all.open(k / 3);
                }
                let ns = i64::try_from(k * 7919 % 90_000).unwrap_or(0) - 100;
                part.add(ns);
                whole.add(ns);
            }
            close(&mut all, &mut part);
            let blocks = all.finish(seconds - 1);
            assert_eq!(blocks.len(), stretches);
            let (mut late, mut next) = (Histogram::new(PRECISION), 0);
            for b in &blocks {
                assert!(b.second == next && b.seconds <= length && b.thread == 7, "{b:?}");
                next += b.seconds;
                b.late.add_to(&mut late);
            }
            assert_eq!(next, seconds);
            assert_eq!(blocks.iter().map(|b| b.n).sum::<u64>(), seconds * 3);
            assert!(late == whole.late.coarsened(PRECISION));
        }
    }
}
