// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run cut into stretches of its schedule: the histogram and the sums of each.
//!
//! Units: ns; seconds of the schedule, from 0. The reader hands over cumulative
//! counters about once a second; a stretch is the difference of two states, so the thread that
//! measures does nothing for it.
//! A run has about [`BLOCKS`] stretches, of one second at least: with tens of them the spread
//! between stretches can be estimated, and a file of twelve hours stays a few MB per thread.
//! Not here: what is computed from them (intervals, comparison, change); moving statistics
//! ([`crate::windows`]).

use tailbound_core::Sums;
use tailbound_core::histogram::{Histogram, SparseHistogram};
use tailbound_core::record::BlockRecord;

use crate::windows::at_precision;

pub use crate::windows::PRECISION;

/// About how many stretches a run is cut into.
pub const BLOCKS: u64 = 360;

/// How many seconds a stretch of a run of `duration_ns` has.
#[must_use]
pub fn length_s(duration_ns: i64) -> u64 {
    let seconds = u64::try_from(duration_ns).unwrap_or(0).div_ceil(1_000_000_000);
    seconds.div_ceil(BLOCKS).max(1)
}

/// Cuts one thread's cumulative counters into stretches.
#[derive(Clone, Debug)]
pub struct Blocks {
    thread: u32,
    length_s: u64,
    /// First second that is in no stretch yet.
    from: u64,
    late: Histogram,
    early: Histogram,
    sums: Sums,
}

impl Blocks {
    /// Stretches of `length_s` seconds, of counters that begin at zero with second 0.
    #[must_use]
    pub fn new(thread: u32, length_s: u64) -> Self {
        Self {
            thread,
            length_s: length_s.max(1),
            from: 0,
            late: Histogram::new(PRECISION),
            early: Histogram::new(PRECISION),
            sums: Sums::default(),
        }
    }

    /// Is a stretch over once `second` is?
    #[must_use]
    pub fn due(&self, second: u64) -> bool {
        second.saturating_add(1) >= self.from.saturating_add(self.length_s)
    }

    /// Takes the state of the counters after `second` and returns all that came since the
    /// stretch before: `late`, `early` and `sums` are cumulative, over all due activations.
    /// `None`: there was nothing, or the second is in a stretch already.
    pub fn cut(
        &mut self,
        second: u64,
        late: &Histogram,
        early: &Histogram,
        sums: &Sums,
    ) -> Option<BlockRecord> {
        let to = second.saturating_add(1);
        let seconds = to.checked_sub(self.from).filter(|s| *s > 0)?;
        let (late, early) = (at_precision(late), at_precision(early));
        let later = SparseHistogram::between(&self.late, &late);
        let earlier = SparseHistogram::between(&self.early, &early);
        let n = later.total().saturating_add(earlier.total());
        let record = BlockRecord {
            thread: self.thread,
            second: self.from,
            seconds,
            n,
            sums: Some(sums.since(&self.sums)),
            late: later,
            early: (earlier.total() > 0).then_some(earlier),
        };
        (self.late, self.early, self.sums, self.from) = (late, early, *sums, to);
        (n > 0).then_some(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_add_up_to_the_run() {
        let (mut late, mut early) = (Histogram::new(10), Histogram::new(7));
        let mut sums = Sums::default();
        let mut blocks = Blocks::new(3, 2);
        let mut records = Vec::new();
        for second in 0..5u64 {
            for i in 0..100 {
                let v = 3000 + 977 * i64::try_from(second * i).unwrap_or(0);
                late.add(v.unsigned_abs(), 1);
                sums.add(v);
            }
            if second == 3 {
                early.add(50, 1);
                sums.add(-50);
            }
            if blocks.due(second) {
                records.extend(blocks.cut(second, &late, &early, &sums));
            }
        }
        records.extend(blocks.cut(4, &late, &early, &sums));
        let spans: Vec<_> = records.iter().map(|r| (r.second, r.seconds, r.n)).collect();
        assert_eq!(spans, [(0, 2, 200), (2, 2, 201), (4, 1, 100)]);
        let (mut all, mut total) = (Histogram::new(PRECISION), Sums::default());
        for r in &records {
            r.late.add_to(&mut all);
            total.merge(&r.sums.unwrap_or_default());
        }
        assert_eq!(all, late.coarsened(PRECISION));
        assert_eq!(total, sums);
        assert_eq!(records.iter().filter(|r| r.early.is_some()).count(), 1);
        assert_eq!(blocks.cut(4, &late, &early, &sums), None, "the same second again");
    }

    #[test]
    fn a_long_run_has_as_many_as_a_short_one() {
        assert_eq!(length_s(1_000_000_000), 1);
        assert_eq!(length_s(360_000_000_000), 1);
        assert_eq!(length_s(43_200_000_000_000), 120);
        assert_eq!(length_s(-1), 1);
    }
}
