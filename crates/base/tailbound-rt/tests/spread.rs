// SPDX-License-Identifier: MIT OR Apache-2.0
//! The loop over random intervals, against an observer who walks through every due time.

use std::sync::atomic::{AtomicBool, Ordering};

use tailbound_rt::cyclic::{LoopEnd, Port, Schedule, Wake};
use tailbound_rt::cyclic_spread;
use tailbound_rt::recorder::Recorder;
use tailbound_rt::spread::Spread;
use tailbound_rt::sums::Sums;

/// Sleeps end late by these delays, in turn.
struct Late {
    now_ns: i64,
    delays: Vec<i64>,
    next: usize,
}

impl Port for Late {
    fn sleep_until(&mut self, due_ns: i64) -> Wake {
        let delay = self.delays[self.next % self.delays.len()];
        self.next += 1;
        self.now_ns = self.now_ns.max(due_ns) + delay;
        Wake::Due
    }
    fn now_ns(&mut self) -> i64 {
        self.now_ns
    }
}

const INTERVAL_NS: i64 = 100_000;

#[test]
fn due_times_stay_in_order_within_their_window_and_differ_by_seed() {
    let spread = Spread { seed: 1, window_ns: INTERVAL_NS * 9 / 10 };
    let other = Spread { seed: 2, ..spread };
    let (mut differ, mut sum) = (0, 0);
    for k in 0..10_000 {
        let delay = spread.delay_ns(k);
        assert!((0..spread.window_ns).contains(&delay));
        differ += u32::from(delay != other.delay_ns(k));
        sum += delay;
    }
    assert!(differ > 9_000);
    // Uniform: the mean of 10 000 is within 5 % of the middle but for one seed in a milliard.
    let middle = 10_000 * spread.window_ns / 2;
    assert!((sum - middle).abs() < middle / 20, "{sum}");
}

#[test]
fn every_due_activation_is_accounted_for_with_the_lateness_it_would_have_had() {
    let spread = Spread { seed: 42, window_ns: INTERVAL_NS / 2 };
    let schedule = Schedule { first_ns: 7_000, interval_ns: INTERVAL_NS, activations: 30_000 };
    let delays = vec![3_000, 2_000, 950_000, 4_000, 1_000, 120_000, 99_999, -500, 20_000_000_000];
    let due =
        |k: u64| schedule.first_ns + i64::try_from(k).unwrap() * INTERVAL_NS + spread.delay_ns(k);
    let (mut wakeups, mut missed) = (Vec::new(), Vec::new());
    let (mut now, mut k, mut turn) = (0i64, 0u64, 0usize);
    while k < schedule.activations {
        now = now.max(due(k)) + delays[turn % delays.len()];
        turn += 1;
        wakeups.push(now - due(k));
        k += 1;
        while k < schedule.activations && due(k) <= now {
            missed.push(now - due(k));
            k += 1;
        }
    }
    let recorder = Box::new(Recorder::new());
    recorder.set_threshold_ns(500_000);
    let stop = AtomicBool::new(false);
    let mut port = Late { now_ns: 0, delays, next: 0 };
    assert_eq!(
        cyclic_spread::run(&mut port, &schedule, &spread, &recorder, &stop),
        LoopEnd::Complete
    );
    let (w, m) = (recorder.wakeups(), recorder.missed());
    assert_eq!((w.n, w.max_ns), (wakeups.len() as u64, wakeups.iter().max().copied()));
    assert_eq!((m.n, m.min_ns), (missed.len() as u64, missed.iter().min().copied()));
    assert_eq!(m.max_ns, missed.iter().max().copied());
    let (sums, missed_sums) = recorder.sums();
    let exact = |values: &[i64]| {
        let mut sums = Sums::default();
        values.iter().for_each(|v| sums.add(*v));
        sums
    };
    assert_eq!((sums, missed_sums), (exact(&wakeups), exact(&missed)));
    let in_buckets: u64 =
        recorder.missed_buckets().iter().map(|c| u64::from(c.load(Ordering::Relaxed))).sum();
    assert_eq!(in_buckets, m.n);
    let first = recorder.pop_exceedance().expect("950 µs is over the threshold");
    let until = (0..).skip(1).take_while(|k| due(first.activation + k) <= first.wake_ns).count();
    assert_eq!(first.missed, until as u64, "the exceedance tells what it cost");
}

#[test]
fn a_stall_of_a_century_costs_no_more_than_one_of_seconds() {
    // The clock was set. Looked at one by one, its activations would outlast the guard.
    let recorder = Box::new(Recorder::new());
    let spread = Spread { seed: 9, window_ns: 5_000 };
    let schedule = Schedule { first_ns: 0, interval_ns: 10_000, activations: 1 << 48 };
    let mut port = Late { now_ns: 0, delays: vec![1_000, 1 << 62], next: 0 };
    let stop = AtomicBool::new(false);
    assert_eq!(
        cyclic_spread::run(&mut port, &schedule, &spread, &recorder, &stop),
        LoopEnd::Complete
    );
    assert_eq!(recorder.wakeups().n + recorder.missed().n, schedule.activations);
    let (_, missed) = recorder.sums();
    assert_eq!(missed.n, schedule.activations - recorder.wakeups().n);
}

#[test]
fn the_stop_flag_ends_it() {
    let recorder = Box::new(Recorder::new());
    let schedule = Schedule { first_ns: 0, interval_ns: INTERVAL_NS, activations: 10 };
    let spread = Spread { seed: 0, window_ns: 10 };
    let mut port = Late { now_ns: 0, delays: vec![1], next: 0 };
    let stop = AtomicBool::new(true);
    assert_eq!(
        cyclic_spread::run(&mut port, &schedule, &spread, &recorder, &stop),
        LoopEnd::Stopped(0)
    );
}
