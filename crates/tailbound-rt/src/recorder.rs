// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where one measured thread writes what it saw: histograms, exact extremes and sums,
//! one record a second, and a ring of exceedances with their time and cycle number.
//!
//! Context: HOT (single writer), COLD (one reader, any time). Units: ns.
//! The counters are single-writer relaxed atomics: a plain store on every machine, and
//! the reader may look whenever it likes without the writer knowing. `Sums` are kept in
//! the writer's own memory and published once a second through a sequence lock.
//! Nothing is lost silently: over-range values are in the top bucket *and* counted *and*
//! in `max`; full rings count what they dropped.

use core::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering, fence};

use crate::h2::{self, BUCKETS, BUCKETS_EARLY, PRECISION, PRECISION_EARLY, RANGE_BITS};
use crate::ring::Ring;
use crate::sums::Sums;

/// Entries of the exceedance ring.
pub const EXCEEDANCES: usize = 4096;
/// Entries of the ring of per-second records: 17 min without a reader.
pub const SECONDS: usize = 1024;
/// Entries of the ring of raw samples.
pub const RAW: usize = 16_384;
/// Most missed activations written in one cycle; the rest is owed to the next ones.
pub const SETTLE_MAX: u64 = 4096;

const RANGE_NS: i64 = 1 << RANGE_BITS;
const SUM_WORDS: usize = 11;

/// One wake-up later than the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exceedance {
    /// Number of the due activation, from 0.
    pub activation: u64,
    /// How late it was.
    pub error_ns: i64,
    /// When it woke, on the run's clock.
    pub wake_ns: i64,
    /// Activations that fell due before it woke.
    pub missed: u64,
}

/// What happened in one second of the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Second {
    /// Number of the second, from 0.
    pub second: u64,
    /// Wake-ups.
    pub n: u64,
    /// Latest wake-up.
    pub max_ns: i64,
    /// Activation number of the latest wake-up.
    pub argmax: u64,
    /// Earliest wake-up.
    pub min_ns: i64,
    /// Sum of the errors.
    pub sum_ns: i64,
    /// Activations that were missed.
    pub missed: u64,
}

/// Shared memory of one measured thread. All zero bytes are a valid, empty recorder.
#[derive(Debug)]
#[repr(C)]
pub struct Recorder {
    n: AtomicU64,
    missed_n: AtomicU64,
    over_range: AtomicU64,
    missed_over_range: AtomicU64,
    /// 0 until the first wake-up: zero bytes must mean "none yet".
    min_set: AtomicU64,
    min_ns: AtomicI64,
    max_ns: AtomicI64,
    missed_min_ns: AtomicI64,
    missed_max_ns: AtomicI64,
    last_ns: AtomicI64,
    threshold_ns: AtomicI64,
    threshold_set: AtomicU64,
    raw_on: AtomicU64,
    sums_sequence: AtomicU64,
    sums: [AtomicU64; SUM_WORDS],
    missed_sums: [AtomicU64; SUM_WORDS],
    late: [AtomicU32; BUCKETS],
    missed: [AtomicU32; BUCKETS],
    early: [AtomicU32; BUCKETS_EARLY],
    exceedances: Ring<4, EXCEEDANCES>,
    seconds: Ring<7, SECONDS>,
    raw: Ring<1, RAW>,
}

/// Exact extremes and counts at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extremes {
    /// Values recorded.
    pub n: u64,
    /// Least value, if any.
    pub min_ns: Option<i64>,
    /// Greatest value, if any.
    pub max_ns: Option<i64>,
    /// Values at or above 2^34 ns, which share the top bucket.
    pub over_range: u64,
}

#[inline]
fn bump(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
}

#[inline]
fn count(buckets: &[AtomicU32], i: usize, by: u32) {
    if let Some(bucket) = buckets.get(i) {
        bucket.store(bucket.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
    }
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
}

impl Recorder {
    /// An empty recorder; the same as zero bytes. Half a megabyte: for statics and boxes.
    #[must_use]
    #[expect(clippy::large_stack_arrays, reason = "evaluated into statics and boxes")]
    pub const fn new() -> Self {
        Self {
            n: AtomicU64::new(0),
            missed_n: AtomicU64::new(0),
            over_range: AtomicU64::new(0),
            missed_over_range: AtomicU64::new(0),
            min_set: AtomicU64::new(0),
            min_ns: AtomicI64::new(0),
            max_ns: AtomicI64::new(0),
            missed_min_ns: AtomicI64::new(0),
            missed_max_ns: AtomicI64::new(0),
            last_ns: AtomicI64::new(0),
            threshold_ns: AtomicI64::new(0),
            threshold_set: AtomicU64::new(0),
            raw_on: AtomicU64::new(0),
            sums_sequence: AtomicU64::new(0),
            sums: [const { AtomicU64::new(0) }; SUM_WORDS],
            missed_sums: [const { AtomicU64::new(0) }; SUM_WORDS],
            late: [const { AtomicU32::new(0) }; BUCKETS],
            missed: [const { AtomicU32::new(0) }; BUCKETS],
            early: [const { AtomicU32::new(0) }; BUCKETS_EARLY],
            exceedances: Ring::new(),
            seconds: Ring::new(),
            raw: Ring::new(),
        }
    }

    // ---- the reader's side ----

    /// Counts and extremes of the wake-ups.
    pub fn wakeups(&self) -> Extremes {
        let n = self.n.load(Ordering::Acquire);
        let seen = self.min_set.load(Ordering::Relaxed) != 0;
        Extremes {
            n,
            min_ns: seen.then(|| self.min_ns.load(Ordering::Relaxed)),
            max_ns: seen.then(|| self.max_ns.load(Ordering::Relaxed)),
            over_range: self.over_range.load(Ordering::Relaxed),
        }
    }

    /// Counts and extremes of the missed activations.
    pub fn missed(&self) -> Extremes {
        let n = self.missed_n.load(Ordering::Relaxed);
        Extremes {
            n,
            min_ns: (n > 0).then(|| self.missed_min_ns.load(Ordering::Relaxed)),
            max_ns: (n > 0).then(|| self.missed_max_ns.load(Ordering::Relaxed)),
            over_range: self.missed_over_range.load(Ordering::Relaxed),
        }
    }

    /// The error of the latest wake-up.
    pub fn last_ns(&self) -> i64 {
        self.last_ns.load(Ordering::Relaxed)
    }

    /// Buckets of late (not early) wake-ups, of precision [`PRECISION`]; they wrap at 2^32.
    pub fn late_buckets(&self) -> &[AtomicU32] {
        &self.late
    }

    /// Buckets of missed activations, of precision [`PRECISION`]; they wrap at 2^32.
    pub fn missed_buckets(&self) -> &[AtomicU32] {
        &self.missed
    }

    /// Buckets of early wake-ups (by how much), of precision [`PRECISION_EARLY`].
    pub fn early_buckets(&self) -> &[AtomicU32] {
        &self.early
    }

    /// Sums of wake-ups and of missed activations as last published (each second and at the end).
    pub fn sums(&self) -> (Sums, Sums) {
        loop {
            let before = self.sums_sequence.load(Ordering::Acquire);
            let both = (unpack(&self.sums), unpack(&self.missed_sums));
            fence(Ordering::Acquire);
            if before.is_multiple_of(2) && before == self.sums_sequence.load(Ordering::Relaxed) {
                return both;
            }
            core::hint::spin_loop();
        }
    }

    /// Takes the oldest exceedance not yet taken.
    pub fn pop_exceedance(&self) -> Option<Exceedance> {
        let [activation, error, wake, missed] = self.exceedances.pop()?;
        Some(Exceedance {
            activation,
            error_ns: error.cast_signed(),
            wake_ns: wake.cast_signed(),
            missed,
        })
    }

    /// Takes the oldest per-second record not yet taken.
    pub fn pop_second(&self) -> Option<Second> {
        let [second, n, max, argmax, min, sum, missed] = self.seconds.pop()?;
        Some(Second {
            second,
            n,
            max_ns: max.cast_signed(),
            argmax,
            min_ns: min.cast_signed(),
            sum_ns: sum.cast_signed(),
            missed,
        })
    }

    /// Takes the oldest raw sample not yet taken.
    pub fn pop_raw(&self) -> Option<i64> {
        self.raw.pop().map(|[v]| v.cast_signed())
    }

    /// Entries lost by the rings: exceedances, seconds, raw samples.
    pub fn dropped(&self) -> (u64, u64, u64) {
        (self.exceedances.dropped(), self.seconds.dropped(), self.raw.dropped())
    }

    /// Wake-ups later than this go to the exceedance ring; unset, none do.
    pub fn set_threshold_ns(&self, threshold_ns: i64) {
        self.threshold_ns.store(threshold_ns, Ordering::Relaxed);
        self.threshold_set.store(1, Ordering::Relaxed);
    }

    /// The threshold in force, if one is set.
    pub fn threshold_ns(&self) -> Option<i64> {
        (self.threshold_set.load(Ordering::Relaxed) != 0)
            .then(|| self.threshold_ns.load(Ordering::Relaxed))
    }

    /// Ask for every sample on the raw ring.
    pub fn record_raw(&self) {
        self.raw_on.store(1, Ordering::Relaxed);
    }
}

/// The writer's private half: sums and the second in progress. Lives on the hot thread's stack.
#[derive(Debug)]
pub struct Writer<'r> {
    shared: &'r Recorder,
    sums: Sums,
    missed_sums: Sums,
    min_ns: i64,
    max_ns: i64,
    second: Second,
    second_end_ns: i64,
    owed_ns: i64,
    owed: u64,
    interval_ns: i64,
}

const SECOND_NS: i64 = 1_000_000_000;
const EMPTY_SECOND: Second =
    Second { second: 0, n: 0, max_ns: i64::MIN, argmax: 0, min_ns: i64::MAX, sum_ns: 0, missed: 0 };

impl<'r> Writer<'r> {
    /// A writer into `shared` for a schedule that begins at `first_ns`.
    pub fn new(shared: &'r Recorder, first_ns: i64, interval_ns: i64) -> Self {
        Self {
            shared,
            sums: Sums::default(),
            missed_sums: Sums::default(),
            min_ns: i64::MAX,
            max_ns: i64::MIN,
            second: EMPTY_SECOND,
            second_end_ns: first_ns.saturating_add(SECOND_NS),
            owed_ns: 0,
            owed: 0,
            interval_ns,
        }
    }

    /// Records one wake-up: `activation` was due at `due_ns`, it woke at `wake_ns`, and the
    /// next `missed` activations had fallen due by then.
    #[inline]
    pub fn wake(&mut self, activation: u64, due_ns: i64, wake_ns: i64, missed: u64) {
        let error = self.enter(activation, due_ns, wake_ns, missed);
        if missed > 0 || self.owed > 0 {
            self.miss(error, missed);
        }
        self.count_wakeup();
    }

    /// As [`Writer::wake`], for a schedule that is not even: `late_ns` tells how late each of
    /// the `missed` activations would have been, counted from 1.
    #[inline]
    pub fn wake_uneven(
        &mut self,
        activation: u64,
        due_ns: i64,
        wake_ns: i64,
        missed: u64,
        late_ns: impl Fn(u64) -> i64,
    ) {
        self.enter(activation, due_ns, wake_ns, missed);
        let mut k = 0u64;
        while k < missed {
            k = k.wrapping_add(1);
            self.miss(late_ns(k).saturating_add(self.interval_ns), 1);
        }
        self.count_wakeup();
    }

    #[inline]
    fn count_wakeup(&self) {
        let n = &self.shared.n;
        n.store(n.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
    }

    /// Everything of a wake-up but what was missed and its count; yields its error.
    #[inline]
    fn enter(&mut self, activation: u64, due_ns: i64, wake_ns: i64, missed: u64) -> i64 {
        if due_ns >= self.second_end_ns {
            self.close_second(due_ns);
        }
        let error = wake_ns.wrapping_sub(due_ns);
        let r = self.shared;
        if error >= 0 {
            let v = error.unsigned_abs();
            if error >= RANGE_NS {
                count(&r.late, BUCKETS.wrapping_sub(1), 1);
                bump(&r.over_range, 1);
            } else {
                count(&r.late, h2::index(v, PRECISION), 1);
            }
        } else {
            let v = error.unsigned_abs().min(RANGE_NS.unsigned_abs().wrapping_sub(1));
            count(&r.early, h2::index(v, PRECISION_EARLY), 1);
        }
        self.sums.add(error);
        if error > self.max_ns {
            self.max_ns = error;
            r.max_ns.store(error, Ordering::Relaxed);
        }
        if error < self.min_ns {
            self.min_ns = error;
            r.min_ns.store(error, Ordering::Relaxed);
            r.min_set.store(1, Ordering::Relaxed);
        }
        r.last_ns.store(error, Ordering::Relaxed);
        if r.threshold_set.load(Ordering::Relaxed) != 0
            && error > r.threshold_ns.load(Ordering::Relaxed)
        {
            r.exceedances.push([
                activation,
                error.cast_unsigned(),
                wake_ns.cast_unsigned(),
                missed,
            ]);
        }
        if r.raw_on.load(Ordering::Relaxed) != 0 {
            r.raw.push([error.cast_unsigned()]);
        }
        let s = &mut self.second;
        s.n = s.n.wrapping_add(1);
        s.sum_ns = s.sum_ns.wrapping_add(error);
        s.min_ns = s.min_ns.min(error);
        if error > s.max_ns {
            s.max_ns = error;
            s.argmax = activation;
        }
        error
    }

    /// Records `missed` activations that a loop of somebody else's left out: the k-th of them,
    /// had it been served when it could be, would have been `error_ns - k * interval` late.
    pub fn skipped(&mut self, error_ns: i64, missed: u64) {
        if missed > 0 {
            self.miss(error_ns, missed);
        }
    }

    /// The `missed` activations after one that was `error_ns` late: the k-th of them, had it
    /// been served at that wake-up, would have been `error_ns - k * interval` late.
    #[cold]
    fn miss(&mut self, error_ns: i64, missed: u64) {
        if missed > 0 {
            self.settle(u64::MAX);
            let r = self.shared;
            let span = self.interval_ns.saturating_mul(i64::try_from(missed).unwrap_or(i64::MAX));
            let greatest = error_ns.saturating_sub(self.interval_ns);
            let least = error_ns.saturating_sub(span);
            let first = r.missed_n.load(Ordering::Relaxed) == 0;
            if first || greatest > r.missed_max_ns.load(Ordering::Relaxed) {
                r.missed_max_ns.store(greatest, Ordering::Relaxed);
            }
            if first || least < r.missed_min_ns.load(Ordering::Relaxed) {
                r.missed_min_ns.store(least, Ordering::Relaxed);
            }
            bump(&r.missed_n, missed);
            self.second.missed = self.second.missed.wrapping_add(missed);
            (self.owed_ns, self.owed) = (greatest, missed);
        }
        self.settle(SETTLE_MAX);
    }

    /// Writes up to `budget` of the owed missed activations into their histogram and sums.
    fn settle(&mut self, budget: u64) {
        let r = self.shared;
        let over = self.owed_ns.saturating_sub(RANGE_NS);
        if self.owed > 0 && over >= 0 {
            // A stall of more than 17 s: all its over-range activations at once.
            let k = over
                .checked_div(self.interval_ns)
                .map_or(1, |k| k.unsigned_abs().saturating_add(1))
                .min(self.owed);
            count(&r.missed, BUCKETS.wrapping_sub(1), u32::try_from(k).unwrap_or(u32::MAX));
            bump(&r.missed_over_range, k);
            self.missed_sums.add_repeated(i64::MAX, k);
            self.owed = self.owed.wrapping_sub(k);
            self.owed_ns = self.owed_ns.saturating_sub(
                self.interval_ns.saturating_mul(i64::try_from(k).unwrap_or(i64::MAX)),
            );
        }
        let mut budget = budget;
        while self.owed > 0 && budget > 0 {
            count(&r.missed, h2::index(self.owed_ns.max(0).unsigned_abs(), PRECISION), 1);
            self.missed_sums.add(self.owed_ns);
            self.owed_ns = self.owed_ns.wrapping_sub(self.interval_ns);
            self.owed = self.owed.wrapping_sub(1);
            budget = budget.wrapping_sub(1);
        }
    }

    /// Closes the second in progress and opens the one that holds `due_ns`.
    #[cold]
    fn close_second(&mut self, due_ns: i64) {
        self.publish();
        let behind = due_ns.wrapping_sub(self.second_end_ns);
        let passed = behind.wrapping_div(SECOND_NS).wrapping_add(1);
        self.second_end_ns = self.second_end_ns.saturating_add(passed.saturating_mul(SECOND_NS));
        let second = self.second.second.wrapping_add_signed(passed);
        self.second = Second { second, ..EMPTY_SECOND };
    }

    fn publish(&mut self) {
        let s = self.second;
        let r = self.shared;
        if s.n > 0 {
            r.seconds.push([
                s.second,
                s.n,
                s.max_ns.cast_unsigned(),
                s.argmax,
                s.min_ns.cast_unsigned(),
                s.sum_ns.cast_unsigned(),
                s.missed,
            ]);
        }
        let sequence = r.sums_sequence.load(Ordering::Relaxed);
        r.sums_sequence.store(sequence.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        pack(&r.sums, &self.sums);
        pack(&r.missed_sums, &self.missed_sums);
        r.sums_sequence.store(sequence.wrapping_add(2), Ordering::Release);
    }

    /// Settles what is owed and publishes the last, partial second.
    pub fn finish(&mut self) {
        self.settle(u64::MAX);
        self.publish();
        self.second = EMPTY_SECOND;
    }
}

#[expect(clippy::cast_possible_truncation, reason = "splits 128-bit words into their halves")]
fn pack(words: &[AtomicU64; SUM_WORDS], s: &Sums) {
    let (s1, s3) = (s.s1.cast_unsigned(), s.s3.cast_unsigned());
    let values = [
        s.n,
        s.clamped,
        s1 as u64,
        (s1 >> 64) as u64,
        s.s2 as u64,
        (s.s2 >> 64) as u64,
        s3 as u64,
        (s3 >> 64) as u64,
        s.s4_low as u64,
        (s.s4_low >> 64) as u64,
        s.s4_high,
    ];
    for (word, value) in words.iter().zip(values) {
        word.store(value, Ordering::Relaxed);
    }
}

fn unpack(words: &[AtomicU64; SUM_WORDS]) -> Sums {
    let [n, clamped, a, b, c, d, e, f, g, h, s4_high] =
        words.each_ref().map(|w| w.load(Ordering::Relaxed));
    let wide = |low: u64, high: u64| u128::from(low) | (u128::from(high) << 64);
    Sums {
        n,
        clamped,
        s1: wide(a, b).cast_signed(),
        s2: wide(c, d),
        s3: wide(e, f).cast_signed(),
        s4_low: wide(g, h),
        s4_high,
    }
}
