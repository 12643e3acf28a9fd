// SPDX-License-Identifier: MIT OR Apache-2.0
//! The polling loop on a scripted counter: every gap is found, named and accounted for, and
//! what the loop causes itself is not.

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;

use tailbound_rt::cyclic::{LoopEnd, Schedule};
use tailbound_rt::poll::{self, Polling, Rest, Restless, Settings, Sinks, Tally};
use tailbound_rt::recorder::Recorder;
use tailbound_rt::ticks::{Counter, Scale, Taker};

/// A tick is 1 ns, a read takes 10; at the times given the counter jumps.
struct Scripted {
    now: u64,
    jumps: VecDeque<(u64, u64, Taker)>,
    taker: Taker,
}

impl Counter for Scripted {
    fn ticks(&mut self) -> u64 {
        self.now += 10;
        if self.jumps.front().is_some_and(|(at, ..)| self.now >= *at)
            && let Some((_, by, taker)) = self.jumps.pop_front()
        {
            self.now += by;
            self.taker = taker;
        }
        self.now
    }
    fn taker(&mut self) -> Taker {
        self.taker
    }
    fn arm(&mut self) {
        self.taker = Taker::Outside;
    }
}

fn settings() -> Settings {
    Settings {
        threshold_ticks: 100,
        turn_ticks: 10,
        own_ticks: 50,
        least_ns: 0,
        outside_only: false,
    }
}

struct PollingRun {
    ended: LoopEnd,
    tally: Tally,
    windows: Box<Recorder>,
    gaps: Box<Recorder>,
    outside: Box<Recorder>,
}

fn recorder() -> Box<Recorder> {
    Box::new(Recorder::new())
}

fn poll<R: Rest>(
    jumps: &[(u64, u64, Taker)],
    settings: Settings,
    schedule: Schedule,
    mut rest: R,
) -> PollingRun {
    let (windows, gaps, outside) = (recorder(), recorder(), recorder());
    let stop = AtomicBool::new(false);
    let mut counter =
        Scripted { now: 0, jumps: jumps.iter().copied().collect(), taker: Taker::Outside };
    let what = Polling {
        origin: 1000,
        scale: Scale::of_hz(1e9),
        settings,
        schedule,
        sinks: Sinks { windows: &windows, gaps: &gaps, outside: &outside },
        stop: &stop,
    };
    let (ended, tally) = poll::run(&mut counter, &mut rest, &what);
    PollingRun { ended, tally, windows, gaps, outside }
}

fn windows(n: u64) -> Schedule {
    Schedule { first_ns: 5_000_000, interval_ns: 100_000, activations: n }
}

#[test]
fn a_quiet_machine_has_windows_and_no_gaps() {
    let seen = poll(&[], settings(), windows(20), Restless);
    assert_eq!(seen.ended, LoopEnd::Complete);
    assert_eq!((seen.windows.wakeups().n, seen.windows.missed().n), (20, 0));
    assert_eq!((seen.gaps.wakeups().n, seen.tally.gaps().n), (0, 0));
    assert_eq!(seen.windows.wakeups().max_ns, Some(0));
    assert!(seen.tally.quiet_ns_max >= 1_999_000, "{:?}", seen.tally);
}

#[test]
fn every_gap_is_found_and_named() {
    let jumps = [
        (30_000, 5_000, Taker::Interrupt),
        (60_000, 200, Taker::Outside),
        (350_000, 40_000, Taker::Task),
        (800_000, 95, Taker::Unknown),
    ];
    let seen = poll(&jumps, settings(), windows(20), Restless);
    let t = seen.tally;
    assert_eq!((t.task.n, t.interrupt.n, t.outside.n, t.unknown.n), (1, 1, 1, 1));
    assert_eq!((t.task.ns, t.interrupt.ns, t.outside.ns, t.unknown.ns), (40_000, 5_000, 200, 95));
    assert_eq!((seen.gaps.wakeups().n, seen.outside.wakeups().n), (4, 1));
    assert_eq!(seen.gaps.wakeups().max_ns, Some(40_000));
    assert_eq!((seen.windows.wakeups().n, seen.windows.wakeups().max_ns), (20, Some(40_000)));
}

#[test]
fn windows_within_a_gap_are_missed_with_their_lateness() {
    // Window 2 begins at 200 us; the gap is from 250 us to 950 us after the origin.
    let seen = poll(&[(251_000, 700_000, Taker::Task)], settings(), windows(20), Restless);
    assert_eq!(seen.ended, LoopEnd::Complete);
    let (woken, missed) = (seen.windows.wakeups(), seen.windows.missed());
    assert_eq!(woken.n + missed.n, 20);
    assert_eq!(missed.n, 6, "windows 3 to 8");
    let near = |v: Option<i64>, want: i64| v.is_some_and(|v| (v - want).abs() <= 30);
    assert!(near(woken.max_ns, 700_000), "{woken:?}");
    assert!(near(missed.max_ns, 650_000) && near(missed.min_ns, 150_000), "{missed:?}");
    let (sums, _) = seen.windows.sums();
    // Window 9 began 50 us before the loop was back.
    assert!((sums.s1 - 750_000).abs() <= 60, "{sums:?}");
}

#[test]
fn only_what_is_beneath_the_kernel_counts_where_that_was_asked() {
    let jumps = [
        (251_000, 700_000, Taker::Task),
        (1_500_000, 20_000, Taker::Outside),
        (1_700_000, 5_000, Taker::Outside),
    ];
    let settings = Settings { outside_only: true, least_ns: 10_000, ..settings() };
    let seen = poll(&jumps, settings, windows(20), Restless);
    let (woken, missed) = (seen.windows.wakeups(), seen.windows.missed());
    assert_eq!((woken.n + missed.n, missed.n, missed.max_ns), (20, 6, Some(0)));
    assert_eq!((woken.max_ns, seen.tally.outside.n, seen.tally.task.n), (Some(20_000), 1, 1));
}

#[test]
fn a_late_start_and_a_disturbed_recording_are_not_hidden() {
    let seen = poll(&[(5, 251_000, Taker::Task)], settings(), windows(5), Restless);
    assert_eq!(seen.windows.wakeups().n + seen.windows.missed().n, 5);
    assert!(seen.tally.late_start_ns >= 250_000 && seen.windows.missed().n == 1);
    // The read after a recorded gap jumps again.
    let jumps = [(30_000, 500, Taker::Interrupt), (30_500, 7_000, Taker::Task)];
    let seen = poll(&jumps, settings(), windows(5), Restless);
    assert_eq!((seen.tally.gaps().n, seen.tally.task.n), (2, 1));
    assert!((6_900..=7_000).contains(&seen.tally.task.ns), "{:?}", seen.tally);
}

/// Polls 80 % of each window.
struct Nap(std::rc::Rc<std::cell::Cell<u64>>);

impl Rest for Nap {
    fn polled_ns(&self) -> Option<i64> {
        Some(80_000)
    }
    fn until(&mut self, _: i64) {
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn a_rest_is_no_gap() {
    let naps = std::rc::Rc::new(std::cell::Cell::new(0));
    let jumps = [(330_000, 4_000, Taker::Interrupt)];
    let seen = poll(&jumps, settings(), windows(10), Nap(naps.clone()));
    assert_eq!((seen.ended, seen.windows.wakeups().n), (LoopEnd::Complete, 10));
    assert_eq!((naps.get(), seen.tally.gaps().n), (10, 1));
    assert_eq!(seen.windows.wakeups().max_ns, Some(4_000));
}
