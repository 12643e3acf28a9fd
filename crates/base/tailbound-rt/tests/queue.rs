// SPDX-License-Identifier: MIT OR Apache-2.0
//! The virtual queue on a simulated counter: what waits, what is lost, and the rate that the
//! search finds where the right answer is known.

use std::sync::atomic::AtomicBool;

use tailbound_rt::cyclic::{LoopEnd, Schedule};
use tailbound_rt::queue::{self, Drained, Feed};
use tailbound_rt::recorder::Recorder;
use tailbound_rt::ticks::{Counter, Scale, Taker};

/// A tick is 1 ns, a read takes 10, a packet `work`; every `every` ns it stands still for `stall`.
struct Simulated {
    now: u64,
    work: u64,
    every: u64,
    stall: u64,
    next: u64,
}

impl Counter for Simulated {
    fn ticks(&mut self) -> u64 {
        self.now += 10;
        if self.now >= self.next {
            self.now += self.stall;
            self.next += self.every;
        }
        self.now
    }
    fn taker(&mut self) -> Taker {
        Taker::Unknown
    }
    fn arm(&mut self) {}
    fn work(&mut self) {
        self.now += self.work;
    }
}

fn drain(
    (work, every, stall): (u64, u64, u64),
    rate: u64,
    depth: u64,
    trial_ns: Option<i64>,
    windows: u64,
) -> (LoopEnd, Drained, Box<Recorder>) {
    let recorder = Box::new(Recorder::new());
    let stop = AtomicBool::new(false);
    let mut counter = Simulated { now: 0, work, every, stall, next: every };
    let feed = Feed {
        origin: 1000,
        scale: Scale::of_hz(1e9),
        hz: 1_000_000_000,
        rate,
        depth,
        trial_ns,
        schedule: Schedule { first_ns: 0, interval_ns: 1_000_000, activations: windows },
        recorder: &recorder,
        stop: &stop,
    };
    let (ended, drained) = queue::run(&mut counter, &feed);
    (ended, drained, recorder)
}

#[test]
fn nothing_is_lost_where_the_queue_is_deep_enough() {
    // 1 M packets/s, stalls of 50 us every 10 ms: 50 packets wait.
    let (ended, d, r) = drain((100, 10_000_000, 50_000), 1_000_000, 64, None, 100);
    assert_eq!((ended, d.lost, d.overflow_seconds), (LoopEnd::Complete, 0, 0));
    assert!((49..=52).contains(&d.deepest), "{}", d.deepest);
    assert!((99_900..=100_100).contains(&d.packets), "{}", d.packets);
    assert_eq!(r.wakeups().n + r.missed().n, 100);
    assert!(r.wakeups().max_ns.is_some_and(|ns| (49_000..=52_000).contains(&ns)));
}

#[test]
fn what_finds_no_place_is_counted() {
    let (_, d, r) = drain((100, 10_000_000, 50_000), 1_000_000, 32, None, 1000);
    // Each of 99 stalls loses 18 packets of 50; the full queue may lose one more while it drains.
    assert!((95..=210).contains(&d.overflows), "{}", d.overflows);
    assert!((17 * 95..=20 * 101).contains(&d.lost), "{}", d.lost);
    // The schedule is one second; its last stall may end just after it.
    assert!((1..=2).contains(&d.overflow_seconds) && r.wakeups().n == 1000);
    assert!(d.packets + d.lost >= 999_000, "{} + {}", d.packets, d.lost);
}

#[test]
fn a_stall_of_many_windows_is_accounted_for() {
    let (ended, _, r) = drain((100, 20_000_000, 5_500_000), 1_000_000, 32, None, 50);
    assert_eq!((ended, r.wakeups().n + r.missed().n), (LoopEnd::Complete, 50));
    assert!(r.missed().n >= 8 && r.wakeups().max_ns.is_some_and(|ns| ns >= 5_400_000));
}

#[test]
fn the_search_finds_the_rate_that_is_known() {
    // A packet takes 110 ns and stalls of 50 us fill 100 places: 2 M packets/s is the limit.
    let (ended, d, _) = drain((100, 10_000_000, 50_000), 100_000, 100, Some(40_000_000), 4000);
    assert_eq!(ended, LoopEnd::Complete);
    assert!((1_850_000..=2_050_000).contains(&d.rate), "{} {:?}", d.rate, d.trials_n);
    assert!(d.confirmed_ns > 2_000_000_000, "{}", d.confirmed_ns);
    assert!(d.remembered().any(|t| t.overflowed) && d.remembered().any(|t| !t.overflowed));
}

#[test]
fn a_rate_that_was_lucky_is_lowered_when_it_overflows_after_all() {
    // Trials of 5 ms seldom meet the stall that comes every 100 ms.
    let (_, d, _) = drain((100, 100_000_000, 50_000), 1_000_000, 100, Some(5_000_000), 8000);
    assert!(d.rate <= 2_050_000, "{}", d.rate);
    assert!(d.remembered().any(|t| t.confirming && t.overflowed));
    assert!(d.confirmed_ns > 1_000_000_000, "{}", d.confirmed_ns);
}

#[test]
fn a_search_that_came_to_no_end_claims_nothing() {
    let (_, d, _) = drain((100, 10_000_000, 50_000), 1000, 100, Some(40_000_000), 50);
    assert_eq!(d.confirmed_ns, 0);
}
