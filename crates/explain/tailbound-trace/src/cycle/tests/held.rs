// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is no cycle and no fault of the machine: signals, stops, tracers, a clock that is set, timer slack, CPU quotas.

use tailbound_core::blame::Cause;
use tailbound_core::cycle::PaceKind;
use tailbound_core::words::Word;

use super::super::{Calls, Cycles, ThreadCycles, Wish};
use super::story::{CALLS, NANOSLEEP, WRITE};
use crate::blame::Ground;
use crate::event::{Entry, Event, Flags, Vector};
use crate::symbols::Symbols;
use std::sync::Arc;

const MS: u64 = 1_000_000;
const PERIOD: u64 = 20 * MS;
/// Work of a cycle.
const WORK: u64 = 300_000;
const RESTART: i64 = 219;
const SIGRETURN: i64 = 15;
const REFILL: u64 = 3;
/// `TIMER_ABSTIME` on CLOCK_MONOTONIC; relative.
const TO: [u64; 4] = [1, 1, 0x7000, 0];

/// A loop of thread 7 on CPU 0 that sleeps to absolute times, told event by event.
struct Loop {
    entries: Vec<Entry>,
    now: u64,
    /// The next release, on the timer's clock.
    due: u64,
    /// How far the timer's clock is ahead of the trace's.
    ahead: i64,
    slack: u64,
    prio: i32,
}

impl Loop {
    /// It runs, and sleeps for the first time.
    fn new(prio: i32, ahead: i64, slack: u64) -> Self {
        let due = (100 * MS + PERIOD).saturating_add_signed(ahead);
        let mut l = Self { entries: Vec::new(), now: 100 * MS, due, ahead, slack, prio };
        l.say(7, 0, Event::SysEnter { id: WRITE, args: [1; 4] });
        l.say(7, 0, Event::SysExit { id: WRITE, ret: 1 });
        l.sleep();
        l
    }

    fn say(&mut self, pid: i32, flags: u8, event: Event) {
        self.entries.push(Entry { t_ns: self.now, cpu: 0, pid, flags: Flags(flags), event });
        self.now += 200;
    }

    fn switch(&mut self, from: (i32, i64), to: i32) {
        let prio = |pid: i32| if pid == 7 { self.prio } else { 120 };
        let name = |pid: i32| Word::new(&format!("t{pid}"));
        let event = Event::Switch {
            prev: from.0,
            prev_prio: prio(from.0),
            prev_state: from.1,
            prev_comm: name(from.0),
            next: to,
            next_prio: prio(to),
            next_comm: name(to),
        };
        self.say(from.0, 0, event);
    }

    /// Enters the call `id` for its next release, sets the timer and leaves the CPU to `pid`.
    fn sleeps_in(&mut self, id: i64) {
        self.say(7, 0, Event::SysEnter { id, args: TO });
        let due_ns = self.due.cast_signed();
        let latest_ns = (self.due + self.slack).cast_signed();
        self.say(7, 0, Event::TimerStart { timer: 1, function: 1, due_ns, latest_ns });
        self.switch((7, 1), 0);
    }

    fn sleep(&mut self) {
        self.sleeps_in(NANOSLEEP);
    }

    /// When the release comes on the trace's clock.
    fn at(&self) -> u64 {
        self.due.saturating_add_signed(-self.ahead)
    }

    /// The timer's interrupt at `t`, which wakes it; it gets the CPU.
    fn fires(&mut self, t: u64) {
        self.now = t;
        self.say(0, 0x09, Event::VectorEntry(Vector::Timer));
        let now_ns = self.now.cast_signed() - 100 + self.ahead;
        self.say(0, 0x09, Event::TimerExpire { timer: 1, function: 1, now_ns });
        self.wakes(0, 0x09);
        self.say(0, 0x09, Event::TimerExit { timer: 1 });
        self.say(0, 0x09, Event::VectorExit(Vector::Timer));
        self.switch((0, 0), 7);
    }

    fn wakes(&mut self, by: i32, flags: u8) {
        let event = Event::Waking { pid: 7, prio: self.prio, cpu: 0, comm: Word::new("t7") };
        self.say(by, flags, event);
    }

    /// A thread on CPU 1 wakes it at `t`; it gets the CPU.
    fn woken(&mut self, t: u64, by: i32) {
        self.now = t;
        let event = Event::Waking { pid: 7, prio: self.prio, cpu: 0, comm: Word::new("t7") };
        self.entries.push(Entry { t_ns: t, cpu: 1, pid: by, flags: Flags(0), event });
        self.now += 2000;
        self.switch((0, 0), 7);
    }

    /// It returns from its sleep, works, and sleeps again; times that are over already are passed in no time.
    fn works(&mut self, id: i64) {
        self.say(7, 0, Event::SysExit { id, ret: 0 });
        loop {
            self.now += WORK;
            self.due += PERIOD;
            if self.at() > self.now {
                break;
            }
            self.say(7, 0, Event::SysEnter { id: NANOSLEEP, args: TO });
            let due_ns = self.due.cast_signed();
            let event = Event::TimerStart { timer: 1, function: 1, due_ns, latest_ns: due_ns };
            self.say(7, 0, event);
            self.say(7, 0, Event::SysExit { id: NANOSLEEP, ret: 0 });
        }
        self.sleep();
    }

    fn cycle(&mut self) {
        self.fires(self.at());
        self.works(NANOSLEEP);
    }

    fn found(&self, wish: Wish) -> ThreadCycles {
        let symbols = "1 t hrtimer_wakeup\n2 t x\n3 t sched_cfs_period_timer\n4 t end\n";
        let all: Vec<(i64, &'static str)> =
            CALLS.iter().copied().chain([(RESTART, "restart_syscall")]).collect();
        let ground = Ground { virtual_machine: Some(true), ..Ground::default() };
        let symbols = Arc::new(Symbols::parse(symbols));
        let mut cycles = Cycles::new(symbols, Arc::new(Calls::new(&all)), ground, wish);
        cycles.watch(7);
        self.entries.iter().for_each(|e| cycles.entry(e));
        cycles.finish().remove(&7).expect("the thread")
    }
}

fn wish() -> Wish {
    Wish { worst: 5, ..Wish::default() }
}

/// The cause and cycles of each reason to be late.
fn reasons(found: &ThreadCycles) -> Vec<(Cause, u64)> {
    found.cycles.late_reasons.iter().map(|r| (r.cause, r.cycles)).collect()
}

/// Every time lies within what was watched, and each instant counts once.
fn is_within(found: &ThreadCycles, l: &Loop) {
    let watched = i64::try_from(l.now - 100 * MS).expect("a time");
    let c = &found.cycles;
    assert!(c.total_ns() <= watched, "{} of {watched}", c.total_ns());
    assert!(c.causes.iter().all(|x| x.cause != Cause::Backlog));
    assert_eq!(c.late_reasons.iter().map(|r| r.cycles).sum::<u64>(), c.misses);
}

#[test]
fn a_stop_in_the_sleep_is_no_cycle_and_no_fault_of_the_machine() {
    let mut l = Loop::new(39, 0, 0);
    let mut cycles = 0;
    for k in 0..60u64 {
        // Every sixth sleep SIGSTOP comes, and SIGCONT after 5 ms, or behind two releases.
        if k % 6 == 5 {
            let at = l.at() - 10 * MS;
            l.woken(at, 50);
            l.say(7, 0, Event::SysExit { id: NANOSLEEP, ret: -514 });
            l.switch((7, 4), 0);
            let long = k % 12 == 11;
            l.woken(at + if long { 50 * MS } else { 5 * MS }, 50);
            if long {
                l.say(7, 0, Event::SysEnter { id: NANOSLEEP, args: TO });
                let due_ns = l.due.cast_signed();
                let event = Event::TimerStart { timer: 1, function: 1, due_ns, latest_ns: due_ns };
                l.say(7, 0, event);
                l.works(NANOSLEEP);
                // Its own release and two that passed meanwhile.
                cycles += 3;
                continue;
            }
            l.sleep();
        }
        l.cycle();
        cycles += 1;
    }
    let found = l.found(wish());
    let c = &found.cycles;
    assert_eq!((c.pace.kind, c.pace.period_ns), (PaceKind::Periodic, Some(20_000_000)));
    // The last has no end yet.
    assert_eq!(c.cycles, cycles - 1, "{:?}", c.activation);
    let told = reasons(&found);
    assert!(matches!(told.as_slice(), [(Cause::Stopped, 9..=10)]), "{told:?}");
    is_within(&found, &l);
}

#[test]
fn a_signal_whose_handler_goes_back_to_sleep_makes_no_cycle() {
    let mut l = Loop::new(39, 0, 0);
    for k in 0..60u64 {
        if k % 5 == 4 {
            l.woken(l.at() - 8 * MS, 50);
            l.say(7, 0, Event::SysExit { id: NANOSLEEP, ret: -514 });
            l.now += 20_000;
            l.say(7, 0, Event::SysEnter { id: SIGRETURN, args: [0; 4] });
            l.say(7, 0, Event::SysExit { id: SIGRETURN, ret: -4 });
            l.sleep();
        }
        l.cycle();
    }
    let found = l.found(wish());
    let c = &found.cycles;
    assert_eq!((c.cycles, c.misses, c.pace.period_ns), (59, 0, Some(20_000_000)));
    assert!(c.wakeup.max_ns.is_some_and(|max| max < 20_000), "{:?}", c.wakeup.max_ns);
}

#[test]
fn a_relative_sleep_that_the_kernel_restarts_is_one_sleep() {
    let mut l = Loop::new(39, 0, 0);
    for k in 0..60u64 {
        if k % 5 == 4 {
            l.woken(l.at() - 8 * MS, 50);
            l.say(7, 0, Event::SysExit { id: NANOSLEEP, ret: -516 });
            l.switch((7, 4), 0);
            l.woken(l.at() - 3 * MS, 50);
            l.sleeps_in(RESTART);
            l.fires(l.at());
            l.works(RESTART);
            continue;
        }
        l.cycle();
    }
    let found = l.found(wish());
    let c = &found.cycles;
    assert_eq!((c.cycles, c.misses, c.pace.period_ns), (59, 0, Some(20_000_000)));
}

#[test]
fn a_signal_that_the_program_takes_for_its_release_makes_a_cycle() {
    let mut l = Loop::new(39, 0, 0);
    for k in 0..60u64 {
        if k % 10 == 9 {
            l.woken(l.at() - 8 * MS, 50);
            l.say(7, 0, Event::SysExit { id: NANOSLEEP, ret: -514 });
            l.now += WORK;
            l.due += PERIOD;
            l.sleep();
            continue;
        }
        l.cycle();
    }
    assert_eq!(l.found(wish()).cycles.cycles, 59);
}

#[test]
fn a_tracer_is_a_cause_of_its_own() {
    let mut l = Loop::new(39, 0, 0);
    for k in 0..60u64 {
        l.fires(l.at());
        if k == 30 {
            l.say(7, 0, Event::SysExit { id: NANOSLEEP, ret: 0 });
            l.switch((7, 8), 0);
            l.woken(l.now + 30 * MS, 60);
            l.say(7, 0, Event::SysEnter { id: WRITE, args: [1; 4] });
            l.works(WRITE);
            continue;
        }
        l.works(NANOSLEEP);
    }
    let found = l.found(wish());
    assert_eq!(found.cycles.cycles, 60, "two releases more, less the last");
    let told = reasons(&found);
    assert!(matches!(told.as_slice(), [(Cause::Traced, 1..=2)]), "{told:?}");
    assert_eq!(found.cycles.late_reasons[0].who, "thread 60");
    is_within(&found, &l);
}

#[test]
fn a_clock_that_is_set_makes_only_what_it_passes_late() {
    const REAL: i64 = 1_700_000_000_000_000_000;
    let mut l = Loop::new(39, REAL, 0);
    for k in 0..200u64 {
        match k {
            // Forward by 30 ms, 5 ms into a sleep: its release is due at once, the next one soon after.
            50 | 100 => {
                let t = l.at() - 15 * MS;
                l.ahead += 30_000_000;
                l.fires(t);
                l.works(NANOSLEEP);
                continue;
            }
            150 => l.ahead -= 500_000_000,
            _ => {}
        }
        l.cycle();
    }
    let found = l.found(wish());
    let c = &found.cycles;
    assert_eq!(c.pace.period_ns, Some(20_000_000));
    assert!(c.misses <= 2, "{} {:?}", c.misses, reasons(&found));
    assert!(c.response.max_ns.is_some_and(|max| max < 35_000_000), "{:?}", c.response.max_ns);
    let late = c.causes.iter().filter(|x| x.cause == Cause::ClockStep).collect::<Vec<_>>();
    assert_eq!(late.len(), 1, "{:?}", c.causes);
    assert!(late[0].who.starts_with("forward by 30"), "{}", late[0].who);
    is_within(&found, &l);
}

#[test]
fn a_clock_that_is_set_by_an_hour_makes_nothing_late_by_an_hour() {
    const REAL: i64 = 1_700_000_000_000_000_000;
    let mut l = Loop::new(39, REAL, 0);
    for k in 0..60u64 {
        if k == 30 {
            let t = l.at() - 15 * MS;
            l.ahead += 3_600_000_000_000;
            l.fires(t);
            // It goes on from the clock as it is now.
            l.due = l.now.saturating_add_signed(l.ahead);
            l.works(NANOSLEEP);
            continue;
        }
        l.cycle();
    }
    let found = l.found(wish());
    assert!(found.cycles.response.max_ns.is_some_and(|max| max < 25_000_000));
    is_within(&found, &l);
}

#[test]
fn timer_slack_accuses_nobody() {
    let mut l = Loop::new(120, 0, 5 * MS);
    for _ in 0..60 {
        l.fires(l.at() + 4 * MS);
        l.works(NANOSLEEP);
    }
    let found = l.found(wish());
    let most = found.cycles.causes.first().expect("a cause");
    assert_eq!((most.cause, most.who.as_str()), (Cause::TimerSlack, ""));
    let foreign = |c: Cause| matches!(c, Cause::InterruptsOff | Cause::Unexplained);
    assert!(!found.cycles.causes.iter().any(|c| foreign(c.cause)), "{:?}", found.cycles.causes);
}

/// Why a thread gets the CPU back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CpuReturn {
    /// Its group's quota is filled up.
    QuotaRefill,
    /// It is its turn.
    Turn,
}

/// In its cycle it loses the CPU to `other` for 60 ms.
fn preempted(until: CpuReturn, other: i32) -> ThreadCycles {
    let mut l = Loop::new(120, 0, 0);
    for k in 0..60u64 {
        l.fires(l.at());
        if k % 10 == 5 {
            l.say(7, 0, Event::SysExit { id: NANOSLEEP, ret: 0 });
            l.switch((7, 0), other);
            l.now += 60 * MS;
            if until == CpuReturn::QuotaRefill {
                l.say(other, 0x09, Event::VectorEntry(Vector::Timer));
                let now_ns = l.now.cast_signed();
                let event = Event::TimerExpire { timer: 9, function: REFILL, now_ns };
                l.say(other, 0x09, event);
                l.say(other, 0x09, Event::VectorExit(Vector::Timer));
            }
            l.switch((other, 0), 7);
            l.say(7, 0, Event::SysEnter { id: WRITE, args: [1; 4] });
            l.works(WRITE);
            continue;
        }
        l.works(NANOSLEEP);
    }
    let found = l.found(wish());
    is_within(&found, &l);
    found
}

#[test]
fn a_quota_accuses_nobody_and_ordinary_threads_take_turns() {
    for (until, other, cause) in [
        (CpuReturn::QuotaRefill, 0, Cause::Throttled),
        (CpuReturn::QuotaRefill, 9, Cause::Throttled),
        (CpuReturn::Turn, 9, Cause::FairShare),
    ] {
        let found = preempted(until, other);
        let told = reasons(&found);
        let first = told.first().map(|(cause, _)| *cause);
        assert_eq!(first, Some(cause), "{told:?}");
        let innocent = |c: Cause| matches!(c, Cause::NotPreemptible | Cause::InterruptsOff);
        assert!(
            !found.cycles.causes.iter().any(|c| innocent(c.cause)),
            "{:?}",
            found.cycles.causes
        );
    }
}

#[test]
fn a_full_pipe_is_charged_to_the_write_that_blocks() {
    let mut l = Loop::new(39, 0, 0);
    for k in 0..40u64 {
        l.fires(l.at());
        if k % 8 == 7 {
            l.say(7, 0, Event::SysExit { id: NANOSLEEP, ret: 0 });
            l.say(7, 0, Event::SysEnter { id: WRITE, args: [4, 0, 512, 0] });
            l.switch((7, 1), 0);
            l.woken(l.now + 330 * MS, 51);
            l.works(WRITE);
            continue;
        }
        l.works(NANOSLEEP);
    }
    let found = l.found(wish());
    let c = &found.cycles;
    let most = c.causes.first().expect("a cause");
    assert_eq!(most.who, "in write of descriptor 4, woken by thread 51");
    assert!(most.total_ns * 10 > c.total_ns() * 9, "{:?}", c.causes);
    let told: Vec<_> = c.late_reasons.iter().map(|r| (r.cause, r.cycles, r.backlog)).collect();
    assert!(matches!(told.as_slice(), [(Cause::Blocked, n, b)] if *n > 70 && *b > 60), "{told:?}");
    is_within(&found, &l);
}

#[test]
fn a_sleep_at_the_entry_of_a_call_is_told_as_one() {
    // SECCOMP_RET_USER_NOTIF holds the thread before its call begins; the supervisor lets it go on, or answers for it.
    for answered in [false, true] {
        let mut l = Loop::new(39, 0, 0);
        for _ in 0..60 {
            l.fires(l.at());
            l.say(7, 0, Event::SysExit { id: NANOSLEEP, ret: 0 });
            l.switch((7, 1), 0);
            l.woken(l.now + 2 * MS, 61);
            if !answered {
                l.say(7, 0, Event::SysEnter { id: WRITE, args: [3; 4] });
            }
            l.works(WRITE);
        }
        let found = l.found(wish());
        let c = &found.cycles;
        assert_eq!((c.cycles, c.pace.period_ns), (59, Some(20_000_000)));
        let most = c.causes.first().expect("a cause");
        assert!(most.who.starts_with("at the entry of write of descriptor"), "{}", most.who);
        assert!(most.who.contains("seccomp") && most.who.ends_with("thread 61"), "{}", most.who);
    }
}
