// SPDX-License-Identifier: MIT OR Apache-2.0
//! The whole loop in simulated time, against a naive model that looks at every due
//! activation by itself: nothing is skipped, nothing counted twice, nothing hidden.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use tailbound_rt::cyclic::{self, LoopEnd, Port, Schedule, Wake};
use tailbound_rt::cyclic_spread;
use tailbound_rt::h2::{self, PRECISION};
use tailbound_rt::recorder::{self, Recorder};
use tailbound_rt::spread::Spread;
use tailbound_rt::sums::Sums;

/// A clock that stands still but for the sleeps: each ends `delay` after the later of its
/// due time and the present.
struct Simulated {
    now_ns: i64,
    delays: VecDeque<i64>,
    interruptions: u32,
    fail_after: Option<usize>,
}

impl Port for Simulated {
    fn sleep_until(&mut self, due_ns: i64) -> Wake {
        if self.interruptions > 0 {
            self.interruptions -= 1;
            return Wake::Interrupted;
        }
        if self.fail_after.is_some_and(|n| self.delays.len() <= n) {
            return Wake::Failed(22);
        }
        let delay = self.delays.pop_front().unwrap_or(1);
        self.now_ns = self.now_ns.max(due_ns) + delay;
        Wake::Due
    }
    fn now_ns(&mut self) -> i64 {
        self.now_ns
    }
}

fn simulate(delays: &[i64], schedule: &Schedule, recorder: &Recorder) -> LoopEnd {
    let stop = AtomicBool::new(false);
    let mut port = Simulated {
        now_ns: 0,
        delays: delays.iter().copied().collect(),
        interruptions: 3,
        fail_after: None,
    };
    cyclic::run(&mut port, schedule, recorder, &stop)
}

/// What a patient observer writes down: (error of each wake-up, would-be error of each miss).
fn naive(delays: &[i64], schedule: &Schedule) -> (Vec<i64>, Vec<i64>) {
    let (mut wakeups, mut missed) = (Vec::new(), Vec::new());
    let mut now = 0i64;
    let mut delays = delays.iter();
    let mut k = 0u64;
    let due = |k: u64| schedule.first_ns + i64::try_from(k).unwrap() * schedule.interval_ns;
    while k < schedule.activations {
        now = now.max(due(k)) + delays.next().unwrap_or(&1);
        wakeups.push(now - due(k));
        k += 1;
        while k < schedule.activations && due(k) <= now {
            missed.push(now - due(k));
            k += 1;
        }
    }
    (wakeups, missed)
}

fn random_delays(seed: u64, n: usize) -> Vec<i64> {
    let mut state = seed | 1;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..n)
        .map(|_| match next() % 1000 {
            0 => i64::try_from(next() % 40_000_000_000).unwrap(), // a stall of up to 40 s
            1..=9 => i64::try_from(next() % 30_000_000).unwrap(),
            10..=19 => -i64::try_from(next() % 900).unwrap(), // early
            _ => 2_000 + i64::try_from(next() % 5_000).unwrap(),
        })
        .collect()
}

fn check(delays: &[i64], schedule: &Schedule) {
    let recorder = Box::new(Recorder::new());
    recorder.set_threshold_ns(1_000_000);
    assert_eq!(simulate(delays, schedule, &recorder), LoopEnd::Complete);
    let (wakeups, missed) = naive(delays, schedule);

    let w = recorder.wakeups();
    assert_eq!(w.n, wakeups.len() as u64);
    assert_eq!(w.n + recorder.missed().n, schedule.activations, "every due activation");
    assert_eq!(
        (w.min_ns, w.max_ns),
        (wakeups.iter().min().copied(), wakeups.iter().max().copied())
    );
    let m = recorder.missed();
    assert_eq!(
        (m.n, m.min_ns, m.max_ns),
        (missed.len() as u64, missed.iter().min().copied(), missed.iter().max().copied())
    );

    let exact = |values: &[i64]| {
        let mut sums = Sums::default();
        values.iter().for_each(|v| sums.add(*v));
        sums
    };
    assert_eq!(recorder.sums(), (exact(&wakeups), exact(&missed)));

    let buckets = |values: &[i64]| {
        let mut counts = vec![0u32; h2::BUCKETS];
        for v in values.iter().filter(|v| **v >= 0) {
            counts[h2::index(v.unsigned_abs().min((1 << 34) - 1), PRECISION)] += 1;
        }
        counts
    };
    let live = |b: &[std::sync::atomic::AtomicU32]| {
        b.iter().map(|c| c.load(Ordering::Relaxed)).collect::<Vec<_>>()
    };
    assert_eq!(live(recorder.late_buckets()), buckets(&wakeups));
    assert_eq!(live(recorder.missed_buckets()), buckets(&missed));
    let over = |values: &[i64]| values.iter().filter(|v| **v >= 1 << 34).count() as u64;
    assert_eq!(
        (w.over_range, m.over_range),
        (over(&wakeups), over(&missed)),
        "over range is counted"
    );
    let early: u32 = live(recorder.early_buckets()).iter().sum();
    assert_eq!(u64::from(early), wakeups.iter().filter(|v| **v < 0).count() as u64);

    let (mut n, mut lost, mut sum, mut max) = (0, 0, 0i64, i64::MIN);
    while let Some(s) = recorder.pop_second() {
        n += s.n;
        lost += s.missed;
        sum += s.sum_ns;
        max = max.max(s.max_ns);
    }
    // No reader was there for longer than the ring holds: then the drops are counted.
    let (_, dropped, _) = recorder.dropped();
    assert_eq!(
        dropped > 0,
        schedule.interval_ns.cast_unsigned() * schedule.activations > 1025 * 1_000_000_000
    );
    if dropped > 0 {
        return;
    }
    assert_eq!(
        (n, lost, sum, Some(max)),
        (w.n, m.n, wakeups.iter().sum(), w.max_ns),
        "the seconds add up"
    );
    let mut above = 0;
    while let Some(e) = recorder.pop_exceedance() {
        assert!(e.error_ns > 1_000_000);
        above += 1;
    }
    assert_eq!(above, wakeups.iter().filter(|v| **v > 1_000_000).count().min(4096));
}

#[test]
fn every_due_activation_is_accounted_for() {
    for seed in 1..30 {
        for interval_ns in [10_000, 250_000, 1_000_000, 300_000_000] {
            let schedule = Schedule { first_ns: 5_000, interval_ns, activations: 20_000 };
            check(&random_delays(seed * 7919, 20_000), &schedule);
        }
    }
}

#[test]
fn a_stall_longer_than_the_range_is_neither_lost_nor_slow() {
    // An hour at 10 µs: 360 million missed activations, nearly all of them over range.
    let schedule = Schedule { first_ns: 0, interval_ns: 10_000, activations: 400_000_000 };
    let recorder = Box::new(Recorder::new());
    let begun = std::time::Instant::now();
    let stop = AtomicBool::new(false);
    let mut port = Simulated {
        now_ns: 0,
        delays: [2_000, 3_600_000_000_000].into(),
        interruptions: 0,
        fail_after: None,
    };
    // Ends by failure right after the stall, so that the test needs no 40 million wake-ups.
    port.fail_after = Some(0);
    let ended = cyclic::run(&mut port, &schedule, &recorder, &stop);
    assert_eq!(ended, LoopEnd::Failed(22, 360_000_002));
    assert_eq!(recorder.missed().n, 360_000_000);
    assert!(recorder.missed().over_range > 357_000_000);
    let in_buckets: u64 =
        recorder.missed_buckets().iter().map(|c| u64::from(c.load(Ordering::Relaxed))).sum();
    assert_eq!(in_buckets, 360_000_000);
    assert!(begun.elapsed().as_secs() < 300, "bounded work, on a busy machine too");
}

/// Looks, at each sleep, how many missed activations were entered since the one before.
struct Watching<'r> {
    late: Simulated,
    recorder: &'r Recorder,
    entered: u64,
    most: u64,
}

impl Port for Watching<'_> {
    fn sleep_until(&mut self, due_ns: i64) -> Wake {
        let buckets = self.recorder.missed_buckets().iter();
        let sum: u64 = buckets.map(|c| u64::from(c.load(Ordering::Relaxed))).sum();
        let entered = sum - self.recorder.missed().over_range;
        self.most = self.most.max(entered - self.entered);
        self.entered = entered;
        self.late.sleep_until(due_ns)
    }
    fn now_ns(&mut self) -> i64 {
        self.late.now_ns()
    }
}

#[test]
fn no_cycle_enters_more_than_its_share_whatever_stalls_follow_each_other() {
    // Four long stalls before what the first left owed is entered, and short ones beside it.
    let delays = [&[15_000_000_000, 900_000, 30_000][..]; 4].concat();
    let schedule = Schedule { first_ns: 0, interval_ns: 10_000, activations: 8_000_000 };
    for window_ns in [0, 4_000] {
        let recorder = Box::new(Recorder::new());
        let late = Simulated {
            now_ns: 0,
            delays: delays.iter().copied().chain([2_000; 2_000]).collect(),
            interruptions: 0,
            fail_after: Some(0),
        };
        let mut port = Watching { late, recorder: &recorder, entered: 0, most: 0 };
        let (stop, spread) = (AtomicBool::new(false), Spread { seed: 3, window_ns });
        let ended = if window_ns == 0 {
            cyclic::run(&mut port, &schedule, &recorder, &stop)
        } else {
            cyclic_spread::run(&mut port, &schedule, &spread, &recorder, &stop)
        };
        assert!(matches!(ended, LoopEnd::Failed(22, n) if n > 6_000_000), "{ended:?}");
        assert_eq!(port.most, recorder::SETTLE_MAX);
        let entered: u64 =
            recorder.missed_buckets().iter().map(|c| u64::from(c.load(Ordering::Relaxed))).sum();
        assert_eq!(entered, recorder.missed().n, "all of it in the end");
    }
}

#[test]
fn the_stop_flag_ends_it_at_the_next_wake() {
    let stop = AtomicBool::new(true);
    let recorder = Box::new(Recorder::new());
    let schedule = Schedule { first_ns: 0, interval_ns: 1000, activations: 10 };
    let mut port =
        Simulated { now_ns: 0, delays: VecDeque::new(), interruptions: 0, fail_after: None };
    assert_eq!(cyclic::run(&mut port, &schedule, &recorder, &stop), LoopEnd::Stopped(0));
    assert_eq!(recorder.wakeups().n, 0);
    assert_eq!(recorder.wakeups().max_ns, None);
}

#[test]
fn a_stepped_clock_saturates_instead_of_wrapping() {
    let recorder = Box::new(Recorder::new());
    let stop = AtomicBool::new(false);
    let schedule = Schedule { first_ns: 0, interval_ns: 1_000_000, activations: 3 };
    let mut port = Simulated {
        now_ns: 0,
        delays: [-9_000_000_000_000_000, 1].into(),
        interruptions: 0,
        fail_after: None,
    };
    cyclic::run(&mut port, &schedule, &recorder, &stop);
    assert_eq!(recorder.wakeups().min_ns, Some(-9_000_000_000_000_000));
    assert_eq!(recorder.sums().0.clamped, 1);
}
