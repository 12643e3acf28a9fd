// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where one measured thread writes what it saw: histograms, exact extremes and sums,
//! one record per second, and a ring of exceedances with their time and cycle number.
//!
//! Context: HOT (single writer), COLD (one reader, any time). Units: ns.
//! The counters are single-writer relaxed atomics: a plain store on every machine, and
//! the reader may look whenever it likes without the writer knowing. `Sums` are kept in
//! the writer's own memory and published once a second through a latch.
//! Nothing is lost silently: over-range values are in the top bucket *and* counted *and*
//! in `max`; full rings count what they dropped.

use core::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};

use crate::h2::{self, BUCKETS, BUCKETS_EARLY, PRECISION, PRECISION_EARLY, RANGE_BITS};
use crate::latch::Latch;
use crate::owed::{Owed, Stall};
use crate::ring::Ring;
use crate::spread::Spread;
use crate::sums::{Sums, WORDS};

/// Entries of the exceedance ring.
pub const EXCEEDANCES: usize = 4096;
/// Entries of the ring of per-second records: 17 min without a reader.
pub const SECONDS: usize = 1024;
/// Entries of the ring of raw samples.
pub const RAW: usize = 16_384;
/// Most missed activations entered in one cycle; the rest is owed to the next ones.
pub const SETTLE_MAX: u64 = 4096;

const RANGE_NS: i64 = 1 << RANGE_BITS;

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
    sums: Latch<AtomicU64, { 2 * WORDS }>,
    late: [AtomicU32; BUCKETS],
    missed: [AtomicU32; BUCKETS],
    early: [AtomicU32; BUCKETS_EARLY],
    exceedances: Ring<4, EXCEEDANCES>,
    seconds: Ring<7, SECONDS>,
    /// The last: written only where raw samples are asked for.
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
    /// So many of its bytes are written while no raw samples are asked for.
    pub const BYTES_WITHOUT_RAW: usize = core::mem::offset_of!(Self, raw);

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
            sums: Latch::new(),
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
    /// Never waits for the writer: see [`crate::latch`].
    pub fn sums(&self) -> (Sums, Sums) {
        let words = self.sums.read();
        let (of_wakeups, of_missed) = words.split_at(WORDS);
        (Sums::unpack(of_wakeups), Sums::unpack(of_missed))
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
    owed: Owed,
    interval_ns: i64,
    spread: Spread,
}

const SECOND_NS: i64 = 1_000_000_000;
const EMPTY_SECOND: Second =
    Second { second: 0, n: 0, max_ns: i64::MIN, argmax: 0, min_ns: i64::MAX, sum_ns: 0, missed: 0 };

impl<'r> Writer<'r> {
    /// A writer into `shared` for an even schedule that begins at `first_ns`.
    pub fn new(shared: &'r Recorder, first_ns: i64, interval_ns: i64) -> Self {
        Self::spread(shared, first_ns, interval_ns, Spread::default())
    }

    /// A writer into `shared` for a schedule whose due times are spread.
    pub fn spread(shared: &'r Recorder, first_ns: i64, interval_ns: i64, spread: Spread) -> Self {
        Self {
            shared,
            sums: Sums::default(),
            missed_sums: Sums::default(),
            min_ns: i64::MAX,
            max_ns: i64::MIN,
            second: EMPTY_SECOND,
            second_end_ns: first_ns.saturating_add(SECOND_NS),
            owed: Owed::default(),
            interval_ns,
            spread,
        }
    }

    /// Records one wake-up: `activation` was due at `due_ns`, it woke at `wake_ns`, and the
    /// next `missed` activations had fallen due by then.
    #[inline]
    pub fn wake(&mut self, activation: u64, due_ns: i64, wake_ns: i64, missed: u64) {
        let error = self.enter(activation, due_ns, wake_ns, missed);
        if missed > 0 || !self.owed.is_empty() {
            let even_ns = error.saturating_add(self.spread.delay_ns(activation));
            self.miss(even_ns, activation, missed);
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
            self.miss(error_ns, 0, missed);
        }
    }

    /// Records `missed` activations that nobody looked at: missed, and by how much is not known.
    pub fn unseen(&mut self, missed: u64) {
        if missed > 0 {
            self.count_missed(0, 0, missed);
            count(&self.shared.missed, 0, u32::try_from(missed).unwrap_or(u32::MAX));
            self.missed_sums.add_repeated(0, missed);
        }
    }

    /// The `missed` activations after number `activation`, which was `even_ns` later than the even
    /// schedule has it: the k-th of them, had it been served at that wake-up, would have been
    /// `even_ns - k * interval` late, less what it is spread by.
    #[cold]
    fn miss(&mut self, even_ns: i64, activation: u64, missed: u64) {
        let mut budget = SETTLE_MAX;
        if missed > 0 {
            let mut stall = Stall { even_ns, activation, n: missed.wrapping_add(1) };
            stall.advance(1, self.interval_ns);
            let greatest = stall.late_ns(&self.spread);
            self.count_missed(stall.last_ns(self.interval_ns, &self.spread), greatest, missed);
            self.enter_over_range(&mut stall);
            budget = self.settle_some(&mut stall, budget);
            if let Some(mut oldest) = self.owed.push(stall) {
                self.settle_some(&mut oldest, u64::MAX);
            }
        }
        self.settle(budget);
    }

    fn count_missed(&mut self, least: i64, greatest: i64, missed: u64) {
        let r = self.shared;
        let first = r.missed_n.load(Ordering::Relaxed) == 0;
        if first || greatest > r.missed_max_ns.load(Ordering::Relaxed) {
            r.missed_max_ns.store(greatest, Ordering::Relaxed);
        }
        if first || least < r.missed_min_ns.load(Ordering::Relaxed) {
            r.missed_min_ns.store(least, Ordering::Relaxed);
        }
        bump(&r.missed_n, missed);
        self.second.missed = self.second.missed.wrapping_add(missed);
    }

    /// A stall of more than 17 s: its over-range activations at once.
    fn enter_over_range(&mut self, stall: &mut Stall) {
        let k = stall.beyond(RANGE_NS, self.interval_ns, &self.spread);
        if k > 0 {
            self.over_range(k);
            stall.advance(k, self.interval_ns);
        }
    }

    fn over_range(&mut self, k: u64) {
        let r = self.shared;
        count(&r.missed, BUCKETS.wrapping_sub(1), u32::try_from(k).unwrap_or(u32::MAX));
        bump(&r.missed_over_range, k);
        self.missed_sums.add_repeated(i64::MAX, k);
    }

    /// Enters what is owed, at most `budget` activations of it.
    fn settle(&mut self, budget: u64) {
        let mut budget = budget;
        while budget > 0
            && let Some(mut stall) = self.owed.take()
        {
            budget = self.settle_some(&mut stall, budget);
            self.owed.push(stall);
        }
    }

    /// Enters up to `budget` of the activations of a stall; what is left of the budget.
    fn settle_some(&mut self, stall: &mut Stall, budget: u64) -> u64 {
        let mut budget = budget;
        while stall.n > 0 && budget > 0 {
            let late = stall.late_ns(&self.spread);
            if late >= RANGE_NS {
                self.over_range(1);
            } else {
                let v = late.max(0).unsigned_abs();
                count(&self.shared.missed, h2::index(v, PRECISION), 1);
                self.missed_sums.add(late);
            }
            stall.advance(1, self.interval_ns);
            budget = budget.wrapping_sub(1);
        }
        budget
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
        let mut words = [0; 2 * WORDS];
        let both = self.sums.packed().into_iter().chain(self.missed_sums.packed());
        for (place, word) in words.iter_mut().zip(both) {
            *place = word;
        }
        r.sums.publish(&words);
    }

    /// Settles what is owed and publishes the last, partial second.
    pub fn finish(&mut self) {
        self.settle(u64::MAX);
        self.publish();
        self.second = EMPTY_SECOND;
    }
}
