// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads what the hot threads wrote, without their knowing: folds 32-bit counters into
//! 64-bit histograms and takes the rings' entries.
//!
//! Context: COLD, at most ten times a second. Units: ns; times counted from the first
//! due activation of the measurement. Used by our own probes and by people's loops alike.
//! Not here: who looks how often, and what becomes of it.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::distribution::Distribution;
use crate::histogram::Histogram;
use crate::record::{ExceedanceRecord, SecondRecord};
use tailbound_rt::h2;
use tailbound_rt::recorder::{Extremes, Recorder};
use tailbound_rt::sums::Sums;

/// New entries of one thread since the last look.
#[derive(Debug, Default)]
pub struct Fresh {
    /// Seconds that are complete.
    pub seconds: Vec<SecondRecord>,
    /// Exceedances.
    pub exceedances: Vec<ExceedanceRecord>,
    /// Raw samples.
    pub raw: Vec<i64>,
}

/// One thread's records so far.
#[derive(Debug)]
pub struct Collector {
    thread: u32,
    start_ns: i64,
    late: Fold,
    missed: Fold,
    early: Fold,
}

/// A histogram that follows a wrapping 32-bit one.
#[derive(Debug)]
struct Fold {
    seen: Vec<u32>,
    total: Histogram,
}

impl Fold {
    fn new(precision: u32) -> Self {
        Self { seen: vec![0; h2::buckets(precision)], total: Histogram::new(precision) }
    }
    /// Takes what came to the buckets of values from `from_ns` to `to_ns`. Between two looks most of the
    /// buckets stay as they are, and those outside the extremes always do.
    fn follow(&mut self, live: &[AtomicU32], from_ns: i64, to_ns: i64) {
        let index = |ns: i64| {
            let in_range = ns.max(0).unsigned_abs().min((1 << h2::RANGE_BITS) - 1);
            h2::index(in_range, self.total.precision())
        };
        let (first, last) = (index(from_ns), index(to_ns));
        // Nothing, if the extremes of a first wake-up are not both to be seen yet.
        let (Some(seen), Some(live)) = (self.seen.get_mut(first..=last), live.get(first..=last))
        else {
            return;
        };
        for (i, (seen, now)) in seen.iter_mut().zip(live).enumerate() {
            let now = now.load(Ordering::Relaxed);
            if now != *seen {
                self.total.add_at(first.saturating_add(i), u64::from(now.wrapping_sub(*seen)));
                *seen = now;
            }
        }
    }
}

impl Collector {
    /// A collector for `thread`, whose measurement's first activation is at `start_ns`.
    #[must_use]
    pub fn new(thread: u32, start_ns: i64) -> Self {
        Self {
            thread,
            start_ns,
            late: Fold::new(h2::PRECISION),
            missed: Fold::new(h2::PRECISION),
            early: Fold::new(h2::PRECISION_EARLY),
        }
    }

    /// Says when the measurement's first activation was due, where that is known only later;
    /// what was taken before keeps its times.
    pub fn set_start_ns(&mut self, start_ns: i64) {
        self.start_ns = start_ns;
    }

    /// Takes everything new.
    pub fn collect(&mut self, recorder: &Recorder) -> Fresh {
        // A wake-up whose extreme is not to be seen yet is taken by the next look.
        if let Extremes { min_ns: Some(min), max_ns: Some(max), .. } = recorder.wakeups() {
            if max >= 0 {
                self.late.follow(recorder.late_buckets(), min, max);
            }
            if min < 0 {
                self.early.follow(
                    recorder.early_buckets(),
                    max.saturating_neg(),
                    min.saturating_neg(),
                );
            }
        }
        if let Extremes { min_ns: Some(min), max_ns: Some(max), .. } = recorder.missed() {
            self.missed.follow(recorder.missed_buckets(), min, max);
        }
        let thread = self.thread;
        let seconds = std::iter::from_fn(|| recorder.pop_second()).map(|s| SecondRecord {
            thread,
            second: s.second,
            n: s.n,
            max_ns: s.max_ns,
            argmax: s.argmax,
            min_ns: s.min_ns,
            sum_ns: s.sum_ns,
            missed: s.missed,
        });
        let exceedances =
            std::iter::from_fn(|| recorder.pop_exceedance()).map(|e| ExceedanceRecord {
                thread,
                activation: e.activation,
                error_ns: e.error_ns,
                t_ns: e.wake_ns.saturating_sub(self.start_ns),
                missed: e.missed,
            });
        Fresh {
            seconds: seconds.collect(),
            exceedances: exceedances.collect(),
            raw: std::iter::from_fn(|| recorder.pop_raw()).collect(),
        }
    }

    /// Histogram of wake-ups at or after their due time, so far.
    #[must_use]
    pub fn late(&self) -> &Histogram {
        &self.late.total
    }
    /// Histogram of missed activations, so far.
    #[must_use]
    pub fn missed(&self) -> &Histogram {
        &self.missed.total
    }
    /// Histogram of early wake-ups (by how much), so far.
    #[must_use]
    pub fn early(&self) -> &Histogram {
        &self.early.total
    }

    /// All due activations so far, woken and missed: the histogram of those at or after their due
    /// time, and the sums, which are those of the last full second while the thread runs.
    #[must_use]
    pub fn due(&self, recorder: &Recorder) -> (Histogram, Sums) {
        let mut late = self.late.total.clone();
        late.merge(&self.missed.total);
        let (mut sums, missed) = recorder.sums();
        sums.merge(&missed);
        (late, sums)
    }

    /// Wake-ups and missed activations as distributions. Exact when the thread has ended.
    #[must_use]
    pub fn distributions(&self, recorder: &Recorder) -> (Distribution, Distribution) {
        let (sums, missed_sums) = recorder.sums();
        let build = |e: Extremes, late: &Histogram, early: Option<&Histogram>, sums| {
            // The thread goes on while it is read: count what was taken, not what there is by now.
            let mut d = Distribution {
                n: late.total().saturating_add(early.map_or(0, Histogram::total)),
                min_ns: e.min_ns,
                max_ns: e.max_ns,
                sums: Some(sums),
                late: late.clone(),
                over_range: e.over_range,
                ..Distribution::default()
            };
            if let Some(early) = early {
                d.early = early.clone();
            }
            d
        };
        (
            build(recorder.wakeups(), &self.late.total, Some(&self.early.total), sums),
            build(recorder.missed(), &self.missed.total, None, missed_sums),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_rt::recorder::Writer;

    /// Every bucket is followed, wherever values come to: those of one look are counted by hand.
    #[test]
    fn looks_between_the_extremes_miss_nothing() {
        const INTERVAL_NS: i64 = 1_000_000;
        let recorder: &'static Recorder = Box::leak(Box::default());
        let mut writer = Writer::new(recorder, 0, INTERVAL_NS);
        let mut collector = Collector::new(0, 0);
        let mut random = 7u64;
        let (mut due_ns, mut missed_all) = (0i64, 0u64);
        for activation in 0..4000u64 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(activation);
            // From early by a second to beyond the range, most of them small.
            let magnitude = i64::try_from(random >> (29 + random % 34)).unwrap_or(0);
            let error_ns = match random >> 61 {
                0 => -magnitude.min(999_999_999),
                _ => magnitude,
            };
            let missed = u64::try_from(error_ns / INTERVAL_NS).unwrap_or(0);
            writer.wake(activation, due_ns, due_ns + error_ns, missed);
            missed_all += missed;
            due_ns += INTERVAL_NS;
            if activation % 37 == 0 {
                collector.collect(recorder);
                let seen = collector.late().total() + collector.early().total();
                assert_eq!(seen, activation + 1, "at {activation}");
            }
        }
        writer.finish();
        collector.collect(recorder);
        let sum = |buckets: &[AtomicU32]| -> Vec<(usize, u64)> {
            let counts = buckets.iter().map(|b| u64::from(b.load(Ordering::Relaxed)));
            counts.enumerate().filter(|(_, n)| *n > 0).collect()
        };
        for (followed, live) in [
            (collector.late(), recorder.late_buckets()),
            (collector.early(), recorder.early_buckets()),
            (collector.missed(), recorder.missed_buckets()),
        ] {
            let all = sum(live);
            assert!(!all.is_empty() && all.iter().all(|(i, n)| followed.count_at(*i) == *n));
            assert_eq!(followed.total(), all.iter().map(|(_, n)| n).sum::<u64>());
        }
        assert_eq!(collector.missed().total(), missed_all);
    }
}
