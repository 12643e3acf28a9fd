// SPDX-License-Identifier: MIT OR Apache-2.0
//! Samples one by one, of one thread: exact distribution; with due times also the record of
//! each second and the histogram of each stretch; the samples themselves while they are few.
//!
//! Context: COLD, but run half a milliard times: a sample costs a few ns. Units: ns.
//! Memory: bounded by the number of seconds (64 B each).

use tailbound_core::record::{BlockRecord, RawRecord, SecondRecord};
use tailbound_core::runfile::pack_raw;
use tailbound_core::stretches::Stretches;
use tailbound_core::{Distribution, Sums};

use crate::error::Fault;

/// Samples of one raw record.
const CHUNK: usize = 1 << 16;
/// Most samples of a file that are kept one by one.
pub(crate) const KEPT_MAX: u64 = 1 << 20;
/// Most seconds of a thread: 24 days.
const SECONDS_MAX: usize = 1 << 21;

const SECOND: i64 = 1_000_000_000;

/// All samples of one thread.
#[derive(Clone)]
pub(crate) struct Samples {
    thread: u32,
    n: u64,
    /// Activations between them that were missed.
    missed: u64,
    /// What is in no closed stretch yet.
    part: Distribution,
    part_sums: Sums,
    total: Distribution,
    total_sums: Sums,
    over_range: u64,
    /// The open second, or all samples where there are no due times.
    open: SecondRecord,
    /// Due times from here on are not of the open second.
    until_ns: i64,
    seconds: Vec<SecondRecord>,
    stretches: Stretches,
    from: u64,
    /// `None`: there are too many to be kept.
    chunk: Option<Vec<i64>>,
    packed: Vec<RawRecord>,
}

/// What [`Samples`] came to.
pub(crate) struct Recorded {
    pub(crate) distribution: Distribution,
    pub(crate) seconds: Vec<SecondRecord>,
    pub(crate) blocks: Vec<BlockRecord>,
    pub(crate) raw: Vec<RawRecord>,
}

fn second_of(thread: u32, second: u64) -> SecondRecord {
    SecondRecord {
        thread,
        second,
        n: 0,
        max_ns: i64::MIN,
        argmax: 0,
        min_ns: i64::MAX,
        sum_ns: 0,
        missed: 0,
    }
}

impl Samples {
    pub(crate) fn new(thread: u32) -> Self {
        Self {
            thread,
            n: 0,
            missed: 0,
            part: Distribution::default(),
            part_sums: Sums::default(),
            total: Distribution::default(),
            total_sums: Sums::default(),
            over_range: 0,
            open: second_of(thread, 0),
            until_ns: i64::MIN,
            seconds: Vec::new(),
            stretches: Stretches::new(thread),
            from: 0,
            chunk: Some(Vec::new()),
            packed: Vec::new(),
        }
    }

    /// Number of samples so far.
    pub(crate) fn n(&self) -> u64 {
        self.n
    }

    /// Keeps no samples from now on, and none of those before.
    pub(crate) fn forget(&mut self) {
        self.chunk = None;
        self.packed = Vec::new();
    }

    /// A sample whose time is not known.
    #[inline]
    pub(crate) fn add(&mut self, value_ns: i64) {
        let open = &mut self.open;
        open.n += 1;
        open.sum_ns = open.sum_ns.saturating_add(value_ns);
        open.min_ns = open.min_ns.min(value_ns);
        if value_ns > open.max_ns {
            (open.max_ns, open.argmax) = (value_ns, self.n + self.missed);
        }
        self.n += 1;
        self.part_sums.add(value_ns);
        if value_ns >= 0 {
            self.part.late.add(value_ns.unsigned_abs(), 1);
            self.over_range += u64::from(value_ns >= 1 << 34);
        } else {
            self.part.early.add(value_ns.unsigned_abs(), 1);
        }
        if let Some(chunk) = &mut self.chunk {
            chunk.push(value_ns);
            if chunk.len() >= CHUNK {
                self.pack();
            }
        }
    }

    /// A sample of the activation that fell due at `due_ns`; one older than the sample before
    /// counts to that one's second.
    #[inline]
    pub(crate) fn add_due(&mut self, due_ns: i64, value_ns: i64) {
        if due_ns >= self.until_ns {
            self.turn(due_ns);
        }
        self.add(value_ns);
    }

    /// An activation that fell due at `due_ns` and was missed. A second without any sample has no record.
    pub(crate) fn miss_due(&mut self, due_ns: i64) {
        if due_ns >= self.until_ns {
            self.turn(due_ns);
        }
        self.missed += 1;
        self.open.missed += 1;
    }

    #[cold]
    fn turn(&mut self, due_ns: i64) {
        let second = u64::try_from(due_ns / SECOND).unwrap_or(0);
        if self.open.n > 0 && second > self.open.second {
            self.close_second();
        }
        if self.open.n == 0 {
            if self.stretches.ends_before(second) {
                self.close_stretch();
                self.stretches.open(second);
            }
            self.open = second_of(self.thread, second);
        }
        let end = i64::try_from(self.open.second + 1).unwrap_or(i64::MAX);
        self.until_ns = end.saturating_mul(SECOND);
    }

    fn close_second(&mut self) {
        let closed = std::mem::replace(&mut self.open, second_of(self.thread, 0));
        let t = &mut self.total;
        t.min_ns = Some(t.min_ns.map_or(closed.min_ns, |m| m.min(closed.min_ns)));
        t.max_ns = Some(t.max_ns.map_or(closed.max_ns, |m| m.max(closed.max_ns)));
        if self.seconds.len() <= SECONDS_MAX {
            self.seconds.push(closed);
        }
    }

    /// Enters the open stretch into the total, and returns its histograms.
    fn fold(&mut self) -> (Distribution, Sums) {
        let part = std::mem::take(&mut self.part);
        let sums = std::mem::take(&mut self.part_sums);
        self.total.late.merge(&part.late);
        self.total.early.merge(&part.early);
        self.total_sums.merge(&sums);
        (part, sums)
    }

    fn close_stretch(&mut self) {
        let (part, sums) = self.fold();
        self.stretches.close(&part.late, &part.early, sums);
    }

    fn pack(&mut self) {
        let Some(chunk) = &mut self.chunk else { return };
        if !chunk.is_empty() {
            self.packed.push(pack_raw(self.thread, self.from, chunk));
            self.from += chunk.len() as u64;
            chunk.clear();
        }
        if self.from > KEPT_MAX {
            self.forget();
        }
    }

    /// The whole of it, in steps of `resolution_ns`.
    ///
    /// # Errors
    /// The due times span more seconds than are kept.
    pub(crate) fn finish(mut self, resolution_ns: u64) -> Result<Recorded, Fault> {
        let timed = self.until_ns > i64::MIN;
        let last = self.open.second;
        if self.open.n > 0 {
            self.close_second();
        }
        self.pack();
        if self.n > KEPT_MAX {
            self.forget();
        }
        if self.seconds.len() > SECONDS_MAX {
            return Err(Fault::file(format!(
                "the samples of a thread span more than {SECONDS_MAX} seconds: the interval is wrong, or the times are damaged"
            )));
        }
        let blocks = if timed {
            self.close_stretch();
            self.stretches.finish(last)
        } else {
            self.fold();
            self.seconds.clear();
            Vec::new()
        };
        let distribution = Distribution {
            n: self.n,
            sums: Some(self.total_sums),
            over_range: self.over_range,
            resolution_ns,
            ..self.total
        };
        Ok(Recorded { distribution, seconds: self.seconds, blocks, raw: self.packed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_core::histogram::{Histogram, SparseHistogram};

    #[test]
    fn seconds_and_stretches_add_up_whatever_the_length() {
        for (seconds, stretches, length) in
            [(3, 3, 1), (512, 512, 1), (1000, 500, 2), (5000, 313, 16)]
        {
            let mut s = Samples::new(7);
            let mut plain = Distribution::default();
            for k in 0..seconds * 4 {
                let v = (k * 7919) % 90_000 - 100;
                s.add_due(k * SECOND / 4 + 5, v);
                plain.add(v);
            }
            let r = s.finish(1).unwrap_or_else(|f| panic!("{f:?}"));
            assert!(r.distribution == plain, "{seconds}");
            assert_eq!((r.seconds.len() as i64, r.blocks.len()), (seconds, stretches));
            assert!(r.seconds.iter().all(|s| s.n == 4 && s.argmax / 4 == s.second));
            let (mut late, mut sums, mut next) = (Histogram::new(7), Sums::default(), 0);
            for b in &r.blocks {
                assert!(b.second == next && b.seconds <= length, "{b:?}");
                next += b.seconds;
                b.late.add_to(&mut late);
                sums.merge(&b.sums.unwrap_or_default());
                let early = b.early.as_ref().map_or(0, SparseHistogram::total);
                assert_eq!(b.late.total() + early, b.n);
            }
            assert_eq!(next as i64, seconds);
            assert!(late == plain.late.coarsened(7) && Some(sums) == plain.sums);
        }
    }

    #[test]
    fn time_that_leaps_or_goes_back_loses_nothing() {
        let mut s = Samples::new(0);
        for due in [0, i64::MAX, i64::MAX - 1, 5, i64::MIN, 3 * SECOND, i64::MAX] {
            s.add_due(due, 10);
        }
        let r = s.finish(1).unwrap_or_else(|f| panic!("{f:?}"));
        assert_eq!(r.seconds.iter().map(|s| s.n).collect::<Vec<_>>(), [1, 6]);
        assert_eq!(r.blocks.iter().map(|b| b.n).sum::<u64>(), 7);
    }

    #[test]
    fn without_times_there_is_only_a_distribution() {
        let mut s = Samples::new(0);
        (0..=KEPT_MAX).for_each(|_| s.add(3));
        let r = s.finish(1000).unwrap_or_else(|f| panic!("{f:?}"));
        assert!(r.seconds.is_empty() && r.blocks.is_empty() && r.raw.is_empty());
        assert_eq!((r.distribution.n, r.distribution.max_ns), (KEPT_MAX + 1, Some(3)));
    }
}
