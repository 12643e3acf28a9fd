// SPDX-License-Identifier: MIT OR Apache-2.0
//! How fast CLOCK_REALTIME runs beside the hardware's own rate, and whether thread clocks add up.
//!
//! Context: COLD, before and after the measurement. Units: ns; parts per million.
//! Source: clock_gettime(2), CLOCK_MONOTONIC_RAW, CLOCK_PROCESS_CPUTIME_ID.

use std::sync::atomic::{AtomicBool, Ordering};
use tailbound_core::number::Real as _;

use tailbound_sys::clock::{CLOCK_REALTIME, now_ns};
use tailbound_sys::counter::CLOCK_MONOTONIC_RAW;
use tailbound_sys::readings::{READINGS, Reading, thread_cpu_ns};

/// Pairs tried; the closest is kept.
const TRIES: usize = 50;
/// Busy threads, and for how long, while thread clocks are compared with the process's.
const BUSY_THREADS: usize = 2;
const BUSY_NS: i64 = 20_000_000;
/// Threads that are created or end invalidate a comparison; then it is made anew.
const COMPARISONS: usize = 5;

/// The two clocks read together.
#[derive(Clone, Copy, Debug)]
struct Pair {
    raw_ns: i64,
    real_ns: i64,
    /// The reading of CLOCK_REALTIME lies within so much.
    width_ns: i64,
}

fn pair() -> Option<Pair> {
    let once = |_| {
        let before = now_ns(CLOCK_MONOTONIC_RAW);
        let real_ns = now_ns(CLOCK_REALTIME);
        let width_ns = now_ns(CLOCK_MONOTONIC_RAW).wrapping_sub(before);
        Pair { raw_ns: before.wrapping_add(width_ns / 2), real_ns, width_ns }
    };
    (0..TRIES).map(once).min_by_key(|p| p.width_ns)
}

/// The clocks before the measurement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drift(Option<Pair>);

impl Drift {
    pub(super) fn begin() -> Self {
        Self(pair())
    }
    /// Parts per million by which CLOCK_REALTIME ran faster, and its certain limits.
    pub(super) fn end(self) -> Option<(f64, f64, f64)> {
        let (from, to) = (self.0?, pair()?);
        let raw = to.raw_ns.checked_sub(from.raw_ns).filter(|d| *d > 0)?.real();
        let ahead = to.real_ns.wrapping_sub(from.real_ns).real() - raw;
        let unsure = (from.width_ns + to.width_ns).real() / 2.0;
        let ppm = |ns: f64| ns / raw * 1e6;
        Some((ppm(ahead), ppm(ahead - unsure), ppm(ahead + unsure)))
    }
}

/// How far the sum of all thread clocks is outside of what the process clock allows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sums {
    /// What the process clock advanced by, from reading to reading.
    pub(super) process_ns: i64,
    /// What the thread clocks did, together.
    pub(super) threads_ns: i64,
    /// By how much they contradict each other; 0: not at all.
    pub(super) outside_ns: i64,
}

/// The process clock just before, the sum of the threads', the process clock just after.
fn look(process: Reading) -> Option<(i64, i64, i64, Vec<i32>)> {
    let tasks = std::fs::read_dir("/proc/self/task").ok()?;
    let mut tids: Vec<i32> =
        tasks.filter_map(|t| t.ok()?.file_name().to_str()?.parse().ok()).collect();
    tids.sort_unstable();
    let before = process.read();
    let sum = tids.iter().map(|t| thread_cpu_ns(*t).ok()).sum::<Option<i64>>()?;
    Some((before, sum, process.read(), tids))
}

/// Compares what thread clocks and the process clock advance by while some threads are busy.
/// `None`: threads came and went each time.
pub(super) fn sums() -> Option<Sums> {
    let process = READINGS.iter().find(|(n, _)| *n == "process-cpu").map(|(_, r)| *r)?;
    (0..COMPARISONS).find_map(|_| {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..BUSY_THREADS {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            let found = compare(process);
            over.store(true, Ordering::Relaxed);
            found
        })
    })
}

fn compare(process: Reading) -> Option<Sums> {
    let (before1, sum1, after1, tids1) = look(process)?;
    let until = now_ns(CLOCK_MONOTONIC_RAW).wrapping_add(BUSY_NS);
    while now_ns(CLOCK_MONOTONIC_RAW) < until {
        std::hint::spin_loop();
    }
    let (before2, sum2, after2, tids2) = look(process)?;
    let threads_ns = sum2 - sum1;
    // Each sum was taken between two readings of the process clock.
    let (least, most) = (before2 - after1, after2 - before1);
    let outside_ns = (least - threads_ns).max(threads_ns - most).max(0);
    (tids1 == tids2).then_some(Sums { process_ns: before2 - before1, threads_ns, outside_ns })
}
