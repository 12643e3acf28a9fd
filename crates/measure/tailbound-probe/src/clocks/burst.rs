// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bursts of readings of one clock: what they cost, and which were earlier than they may be.
//!
//! Context: HOT ([`Tally::burst`]: no allocation, lock or panic), SETUP (`new`). Units: ns.
//! Across CPUs: before each reading a thread looks at the newest one that any thread has
//! finished. The reading began after that, so it must not be lower; that needs no common lock,
//! and no two clocks of two CPUs are assumed to agree.
//! Not here: what is told of it (`findings`).

use std::sync::atomic::{AtomicI64, Ordering};
use tailbound_core::number::{Real as _, Whole as _};

use tailbound_rt::h2::{self, PRECISION};
use tailbound_sys::clock::{CLOCK_MONOTONIC, now_ns};
use tailbound_sys::readings::{READINGS, Reading};

use crate::kind::PlantedFault;

/// Number of reads timed together; they share the cost of the stamps around them.
pub(super) const TOGETHER: usize = 16;
const CLOCKS: usize = READINGS.len();
/// Costs above this share the last bucket; the greatest is exact all the same.
const COST_MAX_NS: u64 = (1 << 24) - 1;
const BUCKETS: usize = h2::index(COST_MAX_NS, PRECISION) + 1;
/// With a fault planted, one in this many readings is too low, by [`PLANT_NS`].
const PLANT_EVERY: u64 = 1000;
const PLANT_NS: i64 = 10_000;

/// The newest finished reading of each clock, by any thread.
#[derive(Debug, Default)]
pub(super) struct Newest([AtomicI64; CLOCKS]);

/// Readings that were lower than an earlier one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Back {
    pub(super) times: u64,
    pub(super) most_ns: i64,
}

impl Back {
    #[inline]
    fn look(&mut self, before: i64, now: i64) {
        if now < before {
            self.times = self.times.wrapping_add(1);
            self.most_ns = self.most_ns.max(before.wrapping_sub(now));
        }
    }
    pub(super) fn add(&mut self, other: Self) {
        self.times += other.times;
        self.most_ns = self.most_ns.max(other.most_ns);
    }
}

/// What one thread saw of one clock.
#[derive(Clone, Debug)]
pub(super) struct ClockReadings {
    /// Costs of a read, each the mean of [`TOGETHER`].
    pub(super) costs: Vec<u32>,
    pub(super) cost_ns_max: i64,
    pub(super) readings: u64,
    /// The longest from one reading to the next.
    pub(super) gap_ns_max: i64,
    pub(super) same_cpu: Back,
    pub(super) across: Back,
}

/// What one thread saw of all clocks.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) seen: Vec<ClockReadings>,
    planted: u64,
}

impl Tally {
    pub(super) fn new() -> Self {
        let none = ClockReadings {
            costs: vec![0; BUCKETS],
            cost_ns_max: 0,
            readings: 0,
            gap_ns_max: 0,
            same_cpu: Back::default(),
            across: Back::default(),
        };
        Self { seen: vec![none; CLOCKS], planted: 0 }
    }

    /// Forgets the warm-up; its memory stays.
    pub(super) fn clear(&mut self) {
        for seen in &mut self.seen {
            seen.costs.fill(0);
            (seen.cost_ns_max, seen.readings, seen.gap_ns_max) = (0, 0, 0);
            (seen.same_cpu, seen.across) = (Back::default(), Back::default());
        }
    }

    /// Reads the clock whose turn it is, about `n` times.
    #[inline]
    pub(super) fn burst(&mut self, turn: u64, n: usize, plant: PlantedFault, newest: &Newest) {
        let Some(which) = turn.checked_rem(CLOCKS as u64).and_then(|i| usize::try_from(i).ok())
        else {
            return;
        };
        let (Some((_, reading)), Some(seen), Some(newest)) =
            (READINGS.get(which), self.seen.get_mut(which), newest.0.get(which))
        else {
            return;
        };
        let mut left = n;
        while left >= TOGETHER {
            left = left.wrapping_sub(TOGETHER);
            seen.cost(*reading);
        }
        // A counter that is read without order may pass an earlier look at the others.
        if *reading == Reading::Counter {
            return;
        }
        let of_process =
            !matches!(reading, Reading::Clock(tailbound_sys::clock::CLOCK_THREAD_CPUTIME_ID));
        let plant = plant.is_present() && *reading == Reading::Clock(CLOCK_MONOTONIC);
        let mut before = i64::MIN;
        for _ in 0..n {
            let finished = newest.load(Ordering::SeqCst);
            let mut now = reading.read();
            if plant {
                self.planted = self.planted.wrapping_add(1);
                if self.planted.is_multiple_of(PLANT_EVERY) {
                    now = now.wrapping_sub(PLANT_NS);
                }
            }
            if of_process {
                seen.across.look(finished, now);
                newest.fetch_max(now, Ordering::SeqCst);
            }
            seen.next(before, now);
            before = now;
        }
    }
}

impl ClockReadings {
    #[inline]
    fn cost(&mut self, reading: Reading) {
        let from = now_ns(CLOCK_MONOTONIC);
        for _ in 0..TOGETHER {
            std::hint::black_box(reading.read());
        }
        let took = now_ns(CLOCK_MONOTONIC).wrapping_sub(from).max(0);
        let each = took.wrapping_div(TOGETHER as i64);
        let bucket = h2::index(each.unsigned_abs().min(COST_MAX_NS), PRECISION);
        if let Some(count) = self.costs.get_mut(bucket) {
            *count = count.wrapping_add(1);
        }
        self.cost_ns_max = self.cost_ns_max.max(each);
    }

    #[inline]
    fn next(&mut self, before: i64, now: i64) {
        self.readings = self.readings.wrapping_add(1);
        if before != i64::MIN {
            self.same_cpu.look(before, now);
            self.gap_ns_max = self.gap_ns_max.max(now.wrapping_sub(before));
        }
    }

    /// Adds what another thread saw.
    pub(super) fn add(&mut self, other: &Self) {
        for (own, theirs) in self.costs.iter_mut().zip(&other.costs) {
            *own = own.saturating_add(*theirs);
        }
        self.cost_ns_max = self.cost_ns_max.max(other.cost_ns_max);
        self.readings += other.readings;
        self.gap_ns_max = self.gap_ns_max.max(other.gap_ns_max);
        self.same_cpu.add(other.same_cpu);
        self.across.add(other.across);
    }

    /// The least cost that a share `p` of the reads did not exceed; `None` without reads.
    pub(super) fn cost_ns(&self, p: f64) -> Option<u64> {
        let total: u64 = self.costs.iter().map(|c| u64::from(*c)).sum();
        let rank = (total.real() * p).ceil().whole_u64().max(1);
        let mut so_far = 0u64;
        let at = self.costs.iter().position(|c| {
            so_far += u64::from(*c);
            so_far >= rank
        })?;
        Some(h2::bounds(at, PRECISION).0)
    }
}
