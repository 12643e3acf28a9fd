// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every rule on made-up events, broken and kept; clauses of the kernel's specification one by one.

use tailbound_core::rules::{Cost, Rule, Stack};
use tailbound_core::words::Word;

use super::{CallTable, Rules, Tally, Violation};
use crate::event::{Entry, Event, FaultMode, Flags};

/// The watched thread: FIFO 80, as the kernel counts.
const RT: i32 = 7;
const PRIO: i32 = 19;
/// Another watched thread of the program, ordinary.
const LOW: i32 = 8;
const HARD: u8 = 0x08;
const SOFT: u8 = 0x10;
const NMI: u8 = 0x40;

const READ: i64 = 0;
const MMAP: i64 = 9;
const MUNMAP: i64 = 11;
const FSYNC: i64 = 74;
const SETSCHEDULER: i64 = 144;
const FUTEX: i64 = 202;
const NANOSLEEP: i64 = 230;

const ABSOLUTE: [u64; 4] = [1, 1, 0, 0];
const WAIT: u64 = 128;
const WAKE: u64 = 129;
const LOCK_PI: u64 = 134;

/// Events at times that go up by 1 µs each.
struct Story {
    rules: Rules,
    t_ns: u64,
    prio: i32,
}

fn name(pid: i32) -> Word {
    Word::new(&format!("t{pid}"))
}

impl Story {
    fn new() -> Self {
        let mut rules = Rules::new(CallTable::X86_64);
        [RT, LOW, 9].into_iter().for_each(|tid| rules.watch(tid));
        let mut story = Self { rules, t_ns: 1_000_000, prio: PRIO };
        story.switch(5, 120, 0, RT, PRIO);
        story
    }

    fn at(&mut self, cpu: u32, pid: i32, flags: u8, event: Event) {
        self.t_ns += 1000;
        self.rules.entry(&Entry { t_ns: self.t_ns, cpu, pid, flags: Flags(flags), event });
    }

    fn switch(&mut self, prev: i32, prev_prio: i32, prev_state: i64, next: i32, next_prio: i32) {
        let event = Event::Switch {
            prev,
            prev_prio,
            prev_state,
            prev_comm: name(prev),
            next,
            next_prio,
            next_comm: name(next),
        };
        self.at(0, prev, 0, event);
    }

    fn enter(&mut self, id: i64, args: [u64; 4]) {
        self.at(0, RT, 0, Event::SysEnter { id, args });
    }

    fn exit(&mut self, id: i64, ret: i64) {
        self.at(0, RT, 0, Event::SysExit { id, ret });
    }

    fn waking(&mut self, by: i32, flags: u8) {
        let event = Event::Waking { pid: RT, prio: self.prio, cpu: 0, comm: name(RT) };
        self.at(0, by, flags, event);
    }

    /// Off the CPU in `state`, which `by` of this priority gets; woken by it with these flags.
    fn off(&mut self, state: i64, by: i32, by_prio: i32, flags: u8) {
        let prio = self.prio;
        self.switch(RT, prio, state, by, by_prio);
        self.waking(by, flags);
        self.switch(by, by_prio, 0, RT, prio);
    }

    /// A whole system call that sleeps interruptibly.
    fn sleeps(&mut self, id: i64, args: [u64; 4], by_prio: i32, flags: u8) {
        self.enter(id, args);
        self.off(1, 5, by_prio, flags);
        self.exit(id, 0);
    }

    /// A cycle: an absolute sleep, ended by the timer's interrupt.
    fn cycle(&mut self) {
        self.sleeps(NANOSLEEP, ABSOLUTE, 120, HARD);
    }

    fn cycles(&mut self, n: usize) {
        (0..n).for_each(|_| self.cycle());
    }

    fn found(mut self) -> Vec<Violation> {
        let mut all = self.rules.take();
        all.extend(self.rules.finish());
        all
    }

    fn names(self) -> Vec<Rule> {
        self.found().into_iter().map(|v| v.rule).collect()
    }
}

#[test]
fn a_program_that_keeps_the_rules_has_no_violation() {
    let mut story = Story::new();
    story.enter(MMAP, [0; 4]);
    story.exit(MMAP, 0);
    story.cycles(5);
    story.sleeps(FUTEX, [64, LOCK_PI, 0, 0], 120, 0);
    story.sleeps(FUTEX, [68, WAIT, 0, 0], PRIO, 0);
    story.cycles(5);
    story.enter(MUNMAP, [0; 4]);
    story.exit(MUNMAP, 0);
    story.switch(RT, PRIO, 0x10, 0, 120);
    assert_eq!(story.found(), []);
}

#[test]
fn page_faults_of_a_real_time_thread_are_told_with_a_limit_of_their_cost() {
    let mut story = Story::new();
    story.at(0, RT, 0, Event::PageFault { mode: FaultMode::User, address: 1 << 20 });
    story.enter(READ, [3, 0, 0, 0]);
    story.at(0, RT, 0, Event::PageFault { mode: FaultMode::Kernel, address: 1 << 20 });
    story.exit(READ, 1);
    story.at(0, RT, 0, Event::PageFault { mode: FaultMode::User, address: 1 << 20 });
    let found = story.found();
    assert_eq!(found.len(), 3);
    assert!(found.iter().all(|v| v.rule == Rule::PageFault));
    assert_eq!(found[0].cost, Cost::at_most(1000));
    assert_eq!(found[1].site, "kernel access");
    assert_eq!(found[2].cost, Cost::default(), "nothing followed");
}

#[test]
fn page_faults_of_others_are_none() {
    let mut story = Story::new();
    story.switch(RT, PRIO, 0, LOW, 120);
    story.at(0, LOW, 0, Event::PageFault { mode: FaultMode::User, address: 1 << 20 });
    story.at(1, 99, 0, Event::PageFault { mode: FaultMode::User, address: 1 << 20 });
    story.at(0, LOW, 0, Event::SysEnter { id: READ, args: [0; 4] });
    assert_eq!(story.found(), []);
}

#[test]
fn a_thread_whose_priority_is_lent_to_it_is_real_time() {
    let mut story = Story::new();
    story.switch(RT, PRIO, 0, LOW, 120);
    story.at(1, RT, 0, Event::Prio { pid: LOW, old: 120, new: PRIO });
    story.at(0, LOW, 0, Event::PageFault { mode: FaultMode::User, address: 1 << 20 });
    story.at(0, LOW, 0, Event::SysEnter { id: READ, args: [0; 4] });
    assert_eq!(story.names(), [Rule::PageFault]);
}

/// (RT and SLEEP) imply RT_VALID_SLEEP_REASON or ALLOWLIST: each clause true and not.
#[test]
fn reasons_to_sleep() {
    let bad = [
        (READ, [3, 0, 0, 0]),
        (NANOSLEEP, [1, 0, 0, 0]),
        (NANOSLEEP, [0, 1, 0, 0]),
        (35, [0; 4]),
        (7, [0; 4]),
        (281, [0; 4]),
        (449, [0; 4]),
    ];
    for (id, args) in bad {
        let mut story = Story::new();
        story.sleeps(id, args, 120, HARD);
        assert_eq!(story.names(), [Rule::SleepMethod], "{id} {args:?}");
    }
    let good = [
        (NANOSLEEP, [1, 1, 0, 0]),
        (NANOSLEEP, [11, 1, 0, 0]),
        (FUTEX, [64, WAIT, 7, 0]),
        (FUTEX, [64, 9, 7, 0]),
        (FUTEX, [64, 11, 7, 0]),
        (232, [3, 0, 0, 0]),
    ];
    for (id, args) in good {
        let mut story = Story::new();
        story.sleeps(id, args, 120, HARD);
        assert_eq!(story.found(), [], "{id} {args:?}");
    }
}

#[test]
fn a_sleep_outside_of_any_call_and_one_that_began_before_the_recording() {
    let mut story = Story::new();
    story.off(1, 5, 120, HARD);
    assert_eq!(story.found(), [], "nothing is known of a call that began before");
    let mut story = Story::new();
    story.exit(READ, 0);
    story.off(1, 5, 120, HARD);
    assert_eq!(story.names(), [Rule::SleepMethod]);
}

#[test]
fn an_uninterruptible_sleep_and_a_preemption_are_not_of_the_monitor() {
    for state in [0, 2, 0x100] {
        let mut story = Story::new();
        story.enter(READ, [3, 0, 0, 0]);
        story.off(state, 5, 120, HARD);
        assert_eq!(story.found(), [], "{state}");
    }
}

#[test]
fn an_ordinary_thread_may_sleep_as_it_likes() {
    let mut story = Story::new();
    story.prio = 120;
    story.sleeps(READ, [3, 0, 0, 0], 120, SOFT);
    assert_eq!(story.found(), []);
}

#[test]
fn a_wait_for_the_kernels_lock_with_inheritance_is_allowed() {
    let mut story = Story::new();
    story.enter(READ, [3, 0, 0, 0]);
    story.at(0, RT, 0, Event::LockWait { lock: 1, flags: 8 });
    story.off(1, 5, 120, 0);
    story.at(0, RT, 0, Event::LockGot { lock: 1 });
    assert_eq!(story.found(), []);
    let mut story = Story::new();
    story.enter(READ, [3, 0, 0, 0]);
    story.at(0, RT, 0, Event::LockWait { lock: 1, flags: 0 });
    story.off(1, 5, 120, 0);
    assert_eq!(story.names(), [Rule::SleepMethod], "another lock");
}

/// (not WAKE) until RT_FRIENDLY_WAKE: each clause true and not.
#[test]
fn wakers() {
    let wait = [64, WAIT, 7, 0];
    let friendly = [(PRIO, 0), (PRIO - 1, 0), (-1, 0), (120, HARD), (120, NMI), (120, HARD | SOFT)];
    for (prio, flags) in friendly {
        let mut story = Story::new();
        story.sleeps(FUTEX, wait, prio, flags);
        assert_eq!(story.found(), [], "{prio} {flags}");
    }
    for (prio, flags) in [(PRIO + 1, 0), (120, 0), (PRIO, SOFT)] {
        let mut story = Story::new();
        story.sleeps(FUTEX, wait, prio, flags);
        assert_eq!(story.names(), [Rule::LowPriorityWaker], "{prio} {flags}");
    }
}

#[test]
fn a_friendly_waker_after_another_one_is_enough() {
    let mut story = Story::new();
    story.enter(FUTEX, [64, WAIT, 7, 0]);
    story.switch(RT, PRIO, 1, 5, 120);
    story.waking(5, 0);
    story.waking(5, HARD);
    story.switch(5, 120, 0, RT, PRIO);
    assert_eq!(story.found(), []);
}

/// Seen where a lock with inheritance is handed over to a thread that spins for it: the wake-up comes when that thread
/// has the lock, has given it back and sleeps until its next cycle.
#[test]
fn a_wake_up_that_comes_too_late_to_end_anything_is_not_held_against_the_thread() {
    let mut story = Story::new();
    story.enter(FUTEX, [64, LOCK_PI, 0, 0]);
    story.exit(FUTEX, 0);
    story.enter(NANOSLEEP, ABSOLUTE);
    story.off(1, 5, 120, 0);
    story.off(1, 5, 120, HARD);
    story.exit(NANOSLEEP, 0);
    assert_eq!(story.rules.too_late(), 1);
    assert_eq!(story.found(), []);
}

#[test]
fn a_less_urgent_thread_that_ends_a_sleep_is_named_with_the_clock() {
    let mut story = Story::new();
    story.sleeps(NANOSLEEP, ABSOLUTE, 120, 0);
    let found = story.found();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].site, "clock_nanosleep, MONOTONIC");
    let text = &found[0].text;
    assert!(text.contains("until a time of CLOCK_MONOTONIC and was woken by t5"), "{text}");
}

/// Seen on a virtual machine whose second CPU told no switch from its idle thread.
#[test]
fn a_sleep_is_judged_where_the_switch_back_to_the_thread_is_missing() {
    let mut story = Story::new();
    story.enter(NANOSLEEP, [1, 0, 0, 0]);
    story.switch(RT, PRIO, 1, 0, 120);
    story.waking(0, HARD);
    story.exit(NANOSLEEP, 0);
    story.enter(NANOSLEEP, [1, 0, 0, 0]);
    story.switch(RT, PRIO, 1, 0, 120);
    story.waking(0, HARD);
    story.switch(RT, PRIO, 1, 0, 120);
    let found = story.found();
    let told: Vec<(Rule, Cost)> = found.iter().map(|v| (v.rule, v.cost)).collect();
    let late = (Rule::SleepMethod, Cost::at_most(2000));
    assert_eq!(told, [late, late]);
}

#[test]
fn a_waker_of_unknown_priority_is_not_judged() {
    let mut story = Story::new();
    story.enter(FUTEX, [64, WAIT, 7, 0]);
    story.switch(RT, PRIO, 1, 5, 120);
    let event = Event::Waking { pid: RT, prio: PRIO, cpu: 0, comm: name(RT) };
    story.at(3, 77, 0, event);
    story.switch(5, 120, 0, RT, PRIO);
    assert_eq!(story.found(), []);
}

#[test]
fn lost_events_make_no_violation() {
    let mut story = Story::new();
    story.enter(READ, [3, 0, 0, 0]);
    story.switch(RT, PRIO, 1, 5, 120);
    story.rules.lost();
    story.waking(5, 0);
    story.switch(5, 120, 0, RT, PRIO);
    story.off(1, 5, 120, 0);
    assert_eq!(story.found(), []);
}

#[test]
fn a_contended_lock_without_inheritance_is_named_with_its_holder() {
    let mut story = Story::new();
    story.sleeps(FUTEX, [64, WAIT, 2, 0], PRIO, 0);
    story.enter(FUTEX, [64, WAKE, 1, 0]);
    story.exit(FUTEX, 0);
    let found = story.found();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].rule, Rule::NonPiLock);
    assert!(found[0].text.contains("held by t5-5 (real-time priority 80)"), "{}", found[0].text);
    // Neither a condition variable, nor one that the thread does not give back itself.
    for (value, wakes) in [(7, true), (2, false)] {
        let mut story = Story::new();
        story.sleeps(FUTEX, [64, WAIT, value, 0], PRIO, 0);
        if wakes {
            story.enter(FUTEX, [64, WAKE, 1, 0]);
            story.exit(FUTEX, 0);
        }
        assert_eq!(story.found(), []);
    }
    let mut story = Story::new();
    story.sleeps(FUTEX, [64, LOCK_PI, 0, 0], 120, 0);
    story.enter(FUTEX, [64, 135, 0, 0]);
    assert_eq!(story.found(), [], "with inheritance");
}

#[test]
fn one_wait_for_a_lock_breaks_one_rule() {
    // Its owner is an ordinary thread: that it wakes the thread is what the lock is for.
    let mut story = Story::new();
    story.sleeps(FUTEX, [64, WAIT, 2, 0], 120, 0);
    story.enter(FUTEX, [64, WAKE, 1, 0]);
    story.exit(FUTEX, 0);
    assert_eq!(story.names(), [Rule::NonPiLock]);
    // A word of that value that the thread never gives back was no lock.
    let mut story = Story::new();
    story.sleeps(FUTEX, [64, WAIT, 2, 0], 120, 0);
    assert_eq!(story.names(), [Rule::LowPriorityWaker]);
}

#[test]
fn a_sleep_at_the_entry_of_a_call_names_the_call() {
    for begins in [true, false] {
        let mut story = Story::new();
        story.enter(MMAP, [0; 4]);
        story.exit(MMAP, 0);
        story.off(1, 5, 120, 0);
        if begins {
            story.enter(READ, [3, 0, 0, 0]);
        }
        story.exit(READ, 0);
        let found = story.found();
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            (found[0].rule, found[0].site.as_str()),
            (Rule::SleepMethod, "at the entry of read")
        );
        assert!(found[0].text.contains("seccomp notifier"), "{}", found[0].text);
    }
    let mut story = Story::new();
    story.enter(MMAP, [0; 4]);
    story.exit(MMAP, 0);
    story.off(1, 5, 120, 0);
    let found = story.found();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].site, "in no system call");
}

#[test]
fn memory_is_taken_within_cycles_only_once_there_are_cycles() {
    let mut story = Story::new();
    for _ in 0..3 {
        story.enter(MMAP, [0; 4]);
        story.exit(MMAP, 0);
        story.cycle();
    }
    for _ in 0..2 {
        story.enter(MUNMAP, [0; 4]);
        story.exit(MUNMAP, 0);
        story.cycle();
    }
    story.enter(MUNMAP, [0; 4]);
    story.exit(MUNMAP, 0);
    let found = story.found();
    let rules: Vec<Rule> = found.iter().map(|v| v.rule).collect();
    assert_eq!(rules, [Rule::Allocation; 2], "neither at the start nor at the end");
    assert_eq!((found[0].site.as_str(), found[0].cost), ("munmap", Cost::exact(1000)));
}

#[test]
fn a_call_that_blocks_uninterruptibly_within_a_cycle() {
    let blocks = |story: &mut Story| {
        story.enter(FSYNC, [3, 0, 0, 0]);
        story.off(2, 5, 120, HARD);
        story.exit(FSYNC, 0);
    };
    let mut story = Story::new();
    blocks(&mut story);
    story.cycles(4);
    blocks(&mut story);
    story.cycle();
    story.enter(FSYNC, [3, 0, 0, 0]);
    story.exit(FSYNC, 0);
    story.cycle();
    let found = story.found();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].rule, found[0].site.as_str()), (Rule::BlockingCall, "fsync"));
    assert_eq!(found[0].cost, Cost::exact(2000));
}

/// A (first) wakes B, which wakes C (last); B has the CPU between.
fn chain(first: i32, middle: i32, last: i32) -> Vec<Rule> {
    let mut story = Story::new();
    let (a, b, c) = (RT, LOW, 9);
    story.at(0, RT, 0, Event::SysExit { id: FUTEX, ret: 0 });
    story.switch(RT, PRIO, 0, b, middle);
    story.at(0, b, 0, Event::SysEnter { id: FUTEX, args: [64, WAIT, 7, 0] });
    story.switch(b, middle, 1, a, first);
    story.at(0, a, 0, Event::Waking { pid: b, prio: middle, cpu: 0, comm: name(b) });
    story.switch(a, first, 0x100, b, middle);
    story.at(0, b, 0, Event::SysExit { id: FUTEX, ret: 0 });
    story.at(0, b, 0, Event::Waking { pid: c, prio: last, cpu: 0, comm: name(c) });
    // Who was woken by somebody less urgent is of another rule.
    story.names().into_iter().filter(|r| *r == Rule::PipelineOrder).collect()
}

#[test]
fn a_link_that_is_less_urgent_than_both_sides() {
    assert_eq!(chain(19, 120, 29), [Rule::PipelineOrder]);
    assert_eq!(chain(19, 39, 29), [Rule::PipelineOrder]);
    assert!(chain(19, 29, 39).is_empty(), "falling");
    assert!(chain(19, 19, 19).is_empty(), "level");
    assert!(chain(39, 29, 19).is_empty(), "rising is told of the wakers, not of the chain");
    assert!(chain(120, 120, 19).is_empty(), "it begins with an ordinary thread");
}

#[test]
fn a_thread_with_the_number_of_one_that_has_ended_is_another_one() {
    let mut story = Story::new();
    story.enter(READ, [3, 0, 0, 0]);
    story.switch(RT, PRIO, 0x10, 5, 120);
    story.switch(5, 120, 0, RT, PRIO);
    story.off(1, 5, 120, HARD);
    assert_eq!(
        story.found(),
        [],
        "what it sleeps in is not known, and it is not in the call of the first"
    );
}

#[test]
fn the_dead_are_forgotten_where_there_are_many() {
    let mut rules = Rules::new(CallTable::X86_64);
    for tid in 10..20_000 {
        rules.watch(tid);
        let switch = |prev, prev_state, next| Event::Switch {
            prev,
            prev_prio: PRIO,
            prev_state,
            prev_comm: name(1),
            next,
            next_prio: PRIO,
            next_comm: name(1),
        };
        for event in [switch(1, 0, tid), switch(tid, 0x10, 1)] {
            rules.entry(&Entry { t_ns: 1, cpu: 0, pid: 1, flags: Flags(0), event });
        }
    }
    let known = (10..20_000).filter(|tid| rules.knows(*tid)).count();
    assert!(known <= 4096 && rules.knows(19_999), "{known}");
}

#[test]
fn a_policy_that_was_refused_and_done_without() {
    let refused = |then: i64| {
        let mut story = Story::new();
        story.prio = 120;
        story.enter(SETSCHEDULER, [0, 1, 0, 0]);
        story.exit(SETSCHEDULER, -1);
        if then <= 0 {
            story.enter(SETSCHEDULER, [0, 1, 0, 0]);
            story.exit(SETSCHEDULER, then);
        }
        story.off(1, 5, 120, HARD);
        story.names()
    };
    assert_eq!(refused(1), [Rule::PolicyRefused]);
    assert_eq!(refused(-1), [Rule::PolicyRefused], "twice is one thread");
    assert!(refused(0).is_empty(), "the second attempt was granted");
    let mut story = Story::new();
    story.enter(SETSCHEDULER, [0, 3, 0, 0]);
    story.exit(SETSCHEDULER, -1);
    story.prio = 120;
    story.off(1, 5, 120, HARD);
    assert_eq!(story.found(), [], "another policy than a real-time one");
}

#[test]
fn places_are_counted_with_the_first_and_the_worst() {
    let mut tally = Tally::default();
    let one = |ns, t_ns, site: &str| Violation {
        rule: Rule::SleepMethod,
        tid: RT,
        t_ns,
        at_ns: t_ns,
        site: site.to_owned(),
        address: 0,
        cost: Cost::exact(ns),
        text: format!("{ns}"),
    };
    for (ns, t) in [(5, 10), (9, 20), (7, 30)] {
        tally.add(one(ns, t, "read"), "ctl", Some("step"), Stack::absent("no perf"), 10);
    }
    tally.add(one(1, 40, "poll"), "ctl", None, Stack::default(), 10);
    assert_eq!(tally.n(), 4);
    let records = tally.records();
    let first = &records[0];
    assert_eq!((first.site.as_str(), first.n, first.total), ("read in step", 3, Cost::exact(21)));
    assert_eq!((first.first.t_ns, first.worst.t_ns), (0, 10));
    assert_eq!(records.len(), 2);
}
