// SPDX-License-Identifier: MIT OR Apache-2.0
//! Both loops of a hand-over over a simulated medium: every due hand-over is made or missed with
//! the latency it would have had, none without a cause.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

use tailbound_rt::handover::{
    Acknowledgement, Close, Give, Line, Log, Message, Receiver, Relay, Sender, Take, relayed,
};
use tailbound_rt::recorder::{Recorder, Writer};
use tailbound_rt::{LoopEnd, Port, Schedule, Wake};

/// The world of a simulated sender: its time, and receipts that lie in the future.
#[derive(Default)]
struct World {
    now_ns: i64,
    sleep_delays: VecDeque<i64>,
    way_delays: VecDeque<i64>,
    under_way: Option<(u64, i64)>,
    /// What was handed over, and when it was received.
    seen: Vec<(Message, i64)>,
    fail_after: Option<usize>,
}

struct SimPort<'a>(Rc<RefCell<World>>, &'a Acknowledgement, Schedule);
struct SimOutlet<'a>(Rc<RefCell<World>>, &'a Line, u64);

impl Port for SimPort<'_> {
    fn sleep_until(&mut self, due_ns: i64) -> Wake {
        let mut world = self.0.borrow_mut();
        let on_grid = (due_ns - self.2.first_ns) % self.2.interval_ns == 0;
        let delay = if on_grid { world.sleep_delays.pop_front().unwrap_or(1) } else { 0 };
        world.now_ns = world.now_ns.max(due_ns) + delay;
        if let Some((sequence, at)) = world.under_way
            && at <= world.now_ns
        {
            self.1.publish(sequence, at);
            world.under_way = None;
        }
        Wake::Due
    }
    fn now_ns(&mut self) -> i64 {
        self.0.borrow().now_ns
    }
}

impl Give for SimOutlet<'_> {
    fn give(&mut self) -> Result<(), i32> {
        let mut world = self.0.borrow_mut();
        if world.fail_after.is_some_and(|n| world.seen.len() >= n) {
            return Err(32);
        }
        // The last hand-over is the close: nothing new on the line.
        if let Some((sequence, message)) = self.1.read(self.2) {
            assert!(world.under_way.is_none(), "at most one is under way");
            self.2 = sequence;
            let received = message.sent_ns + world.way_delays.pop_front().unwrap_or(700);
            world.under_way = Some((sequence, received));
            world.seen.push((message, received));
        }
        Ok(())
    }
}

/// Plays back to the receiver's loop what the sender's loop did.
struct Replay<'a> {
    script: VecDeque<(Message, i64)>,
    close: Close,
    line: &'a Line,
    spurious: bool,
}

impl Take for Replay<'_> {
    fn take(&mut self) -> Wake {
        self.spurious = !self.spurious;
        if self.spurious {
            return Wake::Due;
        }
        match self.script.front() {
            Some((message, _)) => {
                self.line.post(message);
            }
            None => self.line.close(&self.close),
        }
        Wake::Due
    }
}

/// The clock of the replay: each receipt at its time.
struct ReplayClock(VecDeque<i64>, bool);

impl Port for ReplayClock {
    fn sleep_until(&mut self, _: i64) -> Wake {
        Wake::Due
    }
    fn now_ns(&mut self) -> i64 {
        self.1 = !self.1;
        // The first reading of each pair belongs to a spurious wake-up.
        if self.1 { 0 } else { self.0.pop_front().unwrap_or(0) }
    }
}

struct Popping<'a, 'b>(Replay<'a>, &'b RefCell<Vec<u64>>);

impl Take for Popping<'_, '_> {
    fn take(&mut self) -> Wake {
        self.0.take()
    }
    fn settle(&mut self) -> Result<(), i32> {
        if !self.0.spurious
            && let Some((message, _)) = self.0.script.pop_front()
        {
            self.1.borrow_mut().push(message.activation);
        }
        Ok(())
    }
}

fn boxed() -> Box<Recorder> {
    Box::new(Recorder::new())
}

/// Runs sender, then receiver; checks both against what was on the way. Yields (made, missed).
fn check(schedule: &Schedule, sleeps: &[i64], ways: &[i64]) -> (u64, u64) {
    let world = Rc::new(RefCell::new(World {
        sleep_delays: sleeps.iter().copied().collect(),
        way_delays: ways.iter().copied().collect(),
        ..World::default()
    }));
    let (line, taken, stop) = (Line::default(), Acknowledgement::default(), AtomicBool::new(false));
    let send = boxed();
    let ended = Sender {
        port: &mut SimPort(Rc::clone(&world), &taken, *schedule),
        outlet: &mut SimOutlet(Rc::clone(&world), &line, 0),
        line: &line,
        taken: &[&taken],
        answer: None,
        log: Log::Own(Writer::new(&send, schedule.first_ns, schedule.interval_ns)),
        rehearse_ns: None,
        stall: None,
    }
    .run(schedule, &stop);
    assert_eq!(ended, LoopEnd::Complete);
    let close = line.closed().unwrap();
    assert_eq!(close.accounted, schedule.activations);

    let seen = world.borrow().seen.clone();
    let due = |k: u64| schedule.first_ns + i64::try_from(k).unwrap() * schedule.interval_ns;
    let (mut ways, mut missed) = (Vec::new(), Vec::new());
    for (i, (message, received)) in seen.iter().enumerate() {
        ways.push(received - message.sent_ns);
        let next = seen.get(i + 1).map_or(schedule.activations, |(m, _)| m.activation);
        for j in message.activation + 1..next {
            assert!(due(j) <= *received, "{j} was missed without a cause");
            missed.push(received - due(j));
        }
        assert!(next == schedule.activations || due(next) > *received, "{next} should be missed");
    }
    let n = u64::try_from(seen.len()).unwrap();
    assert_eq!(n + send.missed().n, schedule.activations);
    assert_eq!(send.wakeups().n, n);

    let (again, user) = (Line::default(), boxed());
    let order = RefCell::new(Vec::new());
    let replay =
        Replay { script: seen.iter().copied().collect(), close, line: &again, spurious: false };
    // The replay wakes the receiver for nothing before each message.
    let clock = seen.iter().flat_map(|(_, r)| [*r]).collect();
    let ended = Receiver {
        port: &mut ReplayClock(clock, false),
        inlet: &mut Popping(replay, &order),
        line: &again,
        taken: &Acknowledgement::default(),
        onward: None,
        log: Log::Own(Writer::new(&user, schedule.first_ns, schedule.interval_ns)),
        whole: Log::Nowhere,
    }
    .run(schedule, &stop);
    assert_eq!(ended, LoopEnd::Complete);
    assert_eq!(order.borrow().len(), seen.len());
    let w = user.wakeups();
    assert_eq!((w.n, w.max_ns), (n, ways.iter().max().copied()));
    assert_eq!(w.min_ns, ways.iter().min().copied());
    assert_eq!(user.missed().n, u64::try_from(missed.len()).unwrap());
    assert_eq!(user.missed().max_ns, missed.iter().max().copied());
    assert_eq!(user.missed().min_ns, missed.iter().min().copied());
    assert_eq!(user.sums().0.s1, ways.iter().map(|v| i128::from(*v)).sum());
    assert_eq!(user.sums().1.s1, missed.iter().map(|v| i128::from(*v)).sum());
    (n, user.missed().n)
}

fn random(seed: u64, n: usize, often: u64, long: i64) -> Vec<i64> {
    let mut state = seed | 1;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..n)
        .map(|_| match next() % often {
            0 => i64::try_from(next()).unwrap_or(i64::MAX) % long,
            _ => 500 + i64::try_from(next() % 5_000).unwrap(),
        })
        .collect()
}

#[test]
fn on_a_calm_machine_nothing_is_missed() {
    let schedule = Schedule { first_ns: 1_000_000, interval_ns: 100_000, activations: 5_000 };
    assert_eq!(check(&schedule, &[], &[]), (5_000, 0));
}

#[test]
fn every_due_hand_over_is_made_or_missed_with_its_lateness() {
    for seed in 1..40 {
        let schedule = Schedule { first_ns: 777, interval_ns: 100_000, activations: 3_000 };
        let sleeps = random(seed, 4_000, 200, 3_000_000);
        let ways = random(seed * 7 + 1, 4_000, 100, 2_000_000);
        let (made, missed) = check(&schedule, &sleeps, &ways);
        assert!(missed > 0 && made + missed == 3_000, "{seed}");
    }
}

#[test]
fn a_stall_over_the_end_of_the_schedule_is_accounted_for() {
    let schedule = Schedule { first_ns: 0, interval_ns: 100_000, activations: 20 };
    let mut ways = vec![700; 19];
    ways[14] = 10_000_000;
    assert_eq!(check(&schedule, &[], &ways), (15, 5));
}

#[test]
fn a_refused_call_ends_both_sides() {
    let schedule = Schedule { first_ns: 0, interval_ns: 100_000, activations: 20 };
    let world = Rc::new(RefCell::new(World { fail_after: Some(3), ..World::default() }));
    let (line, taken, stop) = (Line::default(), Acknowledgement::default(), AtomicBool::new(false));
    let relay = Box::new(Relay::new());
    let ended = Sender {
        port: &mut SimPort(Rc::clone(&world), &taken, schedule),
        outlet: &mut SimOutlet(world, &line, 0),
        line: &line,
        taken: &[&taken],
        answer: None,
        log: Log::Relay(&relay),
        rehearse_ns: None,
        stall: None,
    }
    .run(&schedule, &stop);
    assert_eq!(ended, LoopEnd::Failed(32, 3));
    assert!(stop.into_inner() && line.closed().is_some_and(|c| c.accounted == 3));
    let recorder = boxed();
    let mut writer = Writer::new(&recorder, 0, 100_000);
    assert_eq!(relayed(&relay, &mut writer), 3);
    assert_eq!(recorder.wakeups().n, 3);
}
