// SPDX-License-Identifier: MIT OR Apache-2.0
//! Strikes of a handler on a scripted counter: each way is the one that was scripted, and a
//! stamp that fits no gap is counted apart.

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;

use tailbound_rt::cyclic::{LoopEnd, Schedule};
use tailbound_rt::recorder::Recorder;
use tailbound_rt::strike::{self, Struck, Target};
use tailbound_rt::ticks::{Counter, Scale, Taker};

/// A tick is 1 ns, a read takes 10. At each time the kernel is entered: after `way` it stamps, after
/// `back` more the loop goes on.
struct Scripted {
    now: u64,
    plan: VecDeque<(u64, u64, u64)>,
    stamps: VecDeque<u64>,
}

impl Counter for Scripted {
    fn ticks(&mut self) -> u64 {
        self.now += 10;
        if self.plan.front().is_some_and(|p| p.0 <= self.now)
            && let Some((_, way, back)) = self.plan.pop_front()
        {
            // Struck just after the read before this one.
            self.stamps.push_back(self.now - 10 + way);
            self.now += way + back;
        }
        self.now
    }
    fn taker(&mut self) -> Taker {
        Taker::Unknown
    }
    fn arm(&mut self) {}
}

impl Struck for Scripted {
    fn struck(&mut self) -> Option<u64> {
        self.stamps.pop_front()
    }
}

#[test]
fn ways_are_as_scripted_and_strays_are_counted() {
    let [windows, ways, back] = [0; 3].map(|_| Box::new(Recorder::new()));
    let stop = AtomicBool::new(false);
    let plan = [(150_000, 700, 300), (250_000, 900, 400), (777_000, 5_000, 2_000_000)];
    let mut port = Scripted { now: 0, plan: plan.into(), stamps: VecDeque::from([7]) };
    let target = Target {
        origin: 1000,
        scale: Scale::of_hz(1e9),
        threshold_ticks: 100,
        apart_ticks: 20,
        schedule: Schedule { first_ns: 0, interval_ns: 100_000, activations: 50 },
        windows: &windows,
        ways: &ways,
        back: &back,
        stop: &stop,
    };
    let (ended, strikes) = strike::run(&mut port, &target);
    assert_eq!((ended, strikes.known, strikes.stray), (LoopEnd::Complete, 3, 0));
    assert_eq!((ways.wakeups().min_ns, ways.wakeups().max_ns), (Some(700), Some(5_000)));
    assert_eq!((back.wakeups().min_ns, back.wakeups().max_ns), (Some(310), Some(2_000_010)));
    assert_eq!(windows.wakeups().n + windows.missed().n, 50);
    assert_eq!((windows.wakeups().max_ns, windows.missed().max_ns), (Some(5_000), Some(0)));
    port.stamps.push_back(3);
    port.now = 0;
    port.plan = VecDeque::from([(150_000, 700, 300)]);
    // A stamp of long ago turns up late: after the loop threw away what was there.
    struct Late(Scripted, bool);
    impl Counter for Late {
        fn ticks(&mut self) -> u64 {
            self.0.ticks()
        }
        fn taker(&mut self) -> Taker {
            Taker::Unknown
        }
        fn arm(&mut self) {}
    }
    impl Struck for Late {
        fn struck(&mut self) -> Option<u64> {
            if std::mem::replace(&mut self.1, true) { self.0.struck() } else { None }
        }
    }
    let (_, strikes) = strike::run(&mut Late(port, false), &target);
    assert_eq!((strikes.known, strikes.stray), (1, 1));
}
