// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of attribution, on made-up events: every cause once, what is missing, and what must not be
//! claimed.

mod limits;

use std::collections::BTreeSet;
use std::sync::Arc;

use tailbound_core::blame::{BlameRecord, Cause, Phase, Sureness};
use tailbound_core::words::Word;

use super::{BlameSelection, DueTimes, Engine, Follow, Ground, Late, WatchFilter};
use crate::event::{Entry, Event, FaultMode, Flags, Vector};
use crate::symbols::Symbols;

/// The late thread: FIFO 80, as the kernel counts.
const TARGET: i32 = 7;
const PRIO: i32 = 19;
const DUE: u64 = 1_000_000;
/// The stopper of CPU 0, and from it on those of the others.
const STOPPER: i32 = 20;

const THREAD: u8 = 0;
const HARD: u8 = 0x08 | 0x01;
const SOFT: u8 = 0x10;
const IRQS_OFF: u8 = 0x01;
const RESCHED: u8 = 0x04;

const TIMER_FN: u64 = 0x1000;
const VMSTAT: u64 = 0x2000;
const SERVER: u64 = 0x3000;
const PERIOD: u64 = 0x4000;
const FLUSH: u64 = 0x5000;

fn symbols() -> Arc<Symbols> {
    Arc::new(Symbols::parse(
        "1000 t hrtimer_wakeup\n2000 t vmstat_update\n3000 t dl_task_timer\n\
         4000 t sched_rt_period_timer\n5000 t flush_tlb_func\n6000 t end\n",
    ))
}

/// A trace on its way: events are appended in the order of their times.
struct Story {
    entries: Vec<Entry>,
    end: u64,
}

fn at(t: u64, cpu: u32, pid: i32, flags: u8, event: Event) -> Entry {
    Entry { t_ns: DUE + t, cpu, pid, flags: Flags(flags), event }
}

fn switch(prev: (i32, i32, i64), next: (i32, i32)) -> Event {
    let name = |pid: i32| match pid {
        0 => Word::new("swapper"),
        STOPPER.. => Word::new(&format!("migration/{}", pid - STOPPER)),
        _ => Word::new(&format!("t{pid}")),
    };
    Event::Switch {
        prev: prev.0,
        prev_prio: prev.1,
        prev_state: prev.2,
        prev_comm: name(prev.0),
        next: next.0,
        next_prio: next.1,
        next_comm: name(next.0),
    }
}

fn waking() -> Event {
    Event::Waking { pid: TARGET, prio: PRIO, cpu: 0, comm: Word::new("target") }
}

impl Story {
    /// On CPU 0 the target sleeps and `pid` runs; 100 µs before the due time.
    fn new(pid: i32, prio: i32) -> Self {
        let mut story = Self { entries: Vec::new(), end: 0 };
        let early = Entry {
            t_ns: DUE - 100_000,
            ..at(0, 0, TARGET, THREAD, switch((TARGET, PRIO, 1), (pid, prio)))
        };
        story.entries.push(early);
        story
    }

    fn then(mut self, t: u64, cpu: u32, pid: i32, flags: u8, event: Event) -> Self {
        self.entries.push(at(t, cpu, pid, flags, event));
        self
    }

    /// The timer's interrupt at `t` in the time of `pid`, which wakes the target and takes 3 µs.
    fn timer(self, t: u64, pid: i32) -> Self {
        self.then(t, 0, pid, HARD, Event::VectorEntry(Vector::Timer))
            .then(
                t + 500,
                0,
                pid,
                HARD,
                Event::TimerExpire { timer: 1, function: TIMER_FN, now_ns: 0 },
            )
            .then(t + 1000, 0, pid, HARD, waking())
            .then(t + 2000, 0, pid, HARD | RESCHED, Event::TimerExit { timer: 1 })
            .then(t + 3000, 0, pid, HARD | RESCHED, Event::VectorExit(Vector::Timer))
    }

    /// The CPU goes over to the target at `t`, which has read the clock 1 µs later.
    fn target(mut self, t: u64, from: i32, prio: i32) -> Self {
        self.end = t + 1000;
        self.then(t, 0, from, THREAD, switch((from, prio, 0), (TARGET, PRIO)))
    }

    fn explain(self, ground: Ground) -> BlameRecord {
        let mut entries = self.entries;
        entries.sort_by_key(|e| e.t_ns);
        let mut engine = Engine::new(WatchFilter::Threads(BTreeSet::from([TARGET])), symbols());
        entries.iter().for_each(|e| engine.entry(e));
        let mut wakeups = engine.take_wakeups();
        wakeups.extend(engine.open_wakeups());
        let late =
            Late { pid: TARGET, due_ns: DUE, end_ns: DUE + self.end, cpu: Some(0), ours: true };
        let record = engine.explain(&late, wakeups.last(), &ground);
        let sum: i64 = record.parts.iter().map(|p| p.ns).sum();
        assert_eq!(sum, record.latency_ns, "nothing is left out: {:#?}", record.parts);
        let mut to = 0;
        for part in &record.parts {
            assert_eq!(part.from_ns, to, "parts adjoin");
            to += part.ns;
        }
        record
    }

    fn metal(self) -> BlameRecord {
        self.explain(Ground {
            virtual_machine: Some(false),
            firmware: Some(false),
            ..Ground::default()
        })
    }

    fn culprit(self) -> (Cause, String) {
        let record = self.metal();
        let (cause, who) = record.culprit();
        (cause, who.to_owned())
    }
}

fn named(cause: Cause, who: &str) -> (Cause, String) {
    (cause, who.to_owned())
}

#[test]
fn an_early_and_quick_wake_up_is_the_kernels_way() {
    let record = Story::new(0, 120).timer(200, 0).target(5000, 0, 120).metal();
    assert_eq!(record.culprit().0, Cause::WakeUp, "{:#?}", record.parts);
    let phases: Vec<Phase> = record.parts.iter().map(|p| p.phase).collect();
    assert_eq!(phases, [Phase::Timer, Phase::WakeUp, Phase::Switch, Phase::Return]);
}

#[test]
fn a_device_and_a_soft_interrupt_are_named() {
    let story = Story::new(5, 120)
        .then(50, 0, 5, HARD, Event::IrqEntry { irq: 36, name: Word::new("eth0") })
        .then(90_000, 0, 5, HARD, Event::IrqExit { irq: 36 })
        .timer(91_000, 5)
        .target(95_000, 5, 120);
    assert_eq!(story.culprit(), named(Cause::Interrupt, "36 eth0"));
    let story = Story::new(5, 120)
        .timer(200, 5)
        .then(3500, 0, 5, SOFT, Event::SoftirqEntry { vec: 3 })
        .then(90_000, 0, 5, SOFT, Event::SoftirqExit { vec: 3 })
        .target(91_000, 5, 120);
    assert_eq!(story.culprit(), named(Cause::Softirq, "NET_RX"));
}

#[test]
fn a_thread_of_higher_and_one_of_lower_priority_are_two_things() {
    let higher = Story::new(5, 9).timer(200, 5).target(90_000, 5, 9);
    assert_eq!(higher.culprit(), named(Cause::HigherPriority, "t5-5"));
    let lower = Story::new(5, 120).timer(200, 5).target(90_000, 5, 120);
    assert_eq!(lower.culprit(), named(Cause::NotPreemptible, "t5-5"));
}

#[test]
fn work_and_locks_are_named_with_what_they_are() {
    let work = Story::new(5, 120)
        .then(10, 0, 5, THREAD, Event::WorkStart { function: VMSTAT })
        .timer(200, 5)
        .then(89_000, 0, 5, THREAD | RESCHED, Event::WorkEnd)
        .target(90_000, 5, 120);
    assert_eq!(work.culprit(), named(Cause::Workqueue, "t5-5 vmstat_update"));
    let spin = Story::new(5, 120)
        .then(10, 1, 6, THREAD, Event::LockGot { lock: 99 })
        .then(20, 0, 5, IRQS_OFF, Event::LockWait { lock: 99, flags: 1 })
        .then(80_000, 0, 5, IRQS_OFF, Event::LockGot { lock: 99 })
        .timer(81_000, 5)
        .target(85_000, 5, 120);
    let (cause, who) = spin.culprit();
    assert_eq!(cause, Cause::LockSpin);
    assert!(who.starts_with("t5-5") && who.contains("thread 6"), "{who}");
}

#[test]
fn a_late_timer_is_disabled_interrupts_only_where_that_is_known() {
    // Records are made while the timer is due: interrupts are disabled, whatever lies beneath.
    let told = || {
        Story::new(5, 120)
            .then(100, 0, 5, IRQS_OFF, Event::Wakeup { pid: 4, cpu: 0 })
            .then(40_000, 0, 5, IRQS_OFF, Event::Wakeup { pid: 4, cpu: 0 })
            .then(80_000, 0, 5, IRQS_OFF, Event::Wakeup { pid: 4, cpu: 0 })
            .timer(81_000, 5)
            .target(85_000, 5, 120)
    };
    assert_eq!(told().culprit(), named(Cause::InterruptsOff, "t5-5"));
    let guest = Ground { virtual_machine: Some(true), ..Ground::default() };
    assert_eq!(told().explain(guest).culprit().0, Cause::InterruptsOff);
    // Nothing is recorded: on metal nothing else stops one CPU, in a guest its host may have.
    let silent = || Story::new(5, 120).timer(90_000, 5).target(95_000, 5, 120);
    assert_eq!(silent().culprit(), named(Cause::InterruptsOff, "t5-5"));
    let record = silent().explain(guest);
    assert_eq!(record.culprit().0, Cause::Unexplained, "{:#?}", record.parts);
    assert!(record.culprit().1.contains("t5-5"), "but who ran is told");
    let counted = Ground { virtual_time: true, virtual_machine: Some(true), ..Ground::default() };
    let record = silent().explain(counted);
    assert_eq!(
        record.culprit().0,
        Cause::InterruptsOff,
        "nobody takes a CPU whose time is counted"
    );
}

#[test]
fn the_host_is_named_where_every_busy_cpu_was_silent() {
    let story = |busy: bool| {
        // A CPU that made a record each µs until then.
        let mut story = Story::new(5, 120);
        for n in 0..950 {
            let wakeup = Event::Wakeup { pid: 4, cpu: 1 };
            story
                .entries
                .push(Entry { t_ns: DUE - 950_000 + n * 1_000, ..at(0, 1, 6, THREAD, wakeup) });
        }
        let story = story.then(0, 1, 6, THREAD, switch((8, 120, 1), (6, 120)));
        let story = match busy {
            true => story,
            false => story.then(1, 1, 6, THREAD, switch((6, 120, 1), (0, 120))),
        };
        story
            .timer(900_000, 5)
            .then(901_000, 1, if busy { 6 } else { 0 }, HARD, Event::VectorEntry(Vector::Timer))
            .target(905_000, 5, 120)
    };
    let guest = Ground { virtual_machine: Some(true), ..Ground::default() };
    let record = story(true).explain(guest);
    assert_eq!(record.culprit().0, Cause::Host, "{:#?}", record.parts);
    assert_eq!(record.sureness(Cause::Host, record.culprit().1), Sureness::Likely);
    let metal = Ground { virtual_machine: Some(false), firmware: Some(true), ..guest };
    assert_eq!(
        story(true).explain(metal).culprit().0,
        Cause::Firmware,
        "its interrupts are counted"
    );
    let record = story(false).explain(guest);
    assert_eq!(record.culprit().0, Cause::Unexplained, "an idle CPU is silent anyway");
}

#[test]
fn fair_server_and_throttling_are_told_by_the_timer_that_ends_them() {
    let story = |function| {
        Story::new(4, 98)
            .then(10, 0, 4, THREAD, switch((4, 98, 0), (5, 120)))
            .timer(200, 5)
            .then(49_990_000, 0, 5, HARD, Event::VectorEntry(Vector::Timer))
            .then(49_991_000, 0, 5, HARD, Event::TimerExpire { timer: 2, function, now_ns: 0 })
            .then(49_993_000, 0, 5, HARD, Event::VectorExit(Vector::Timer))
            .target(50_000_000, 5, 120)
    };
    assert_eq!(story(SERVER).culprit(), named(Cause::FairServer, "t5-5"));
    assert_eq!(story(PERIOD).culprit(), named(Cause::RtThrottling, "t5-5"));
    let neither = story(TIMER_FN).metal();
    let (cause, who) = neither.culprit();
    assert_eq!(neither.sureness(cause, who), Sureness::Unsure, "{:#?}", neither.parts);
}

#[test]
fn an_interrupt_from_another_cpu_has_a_sender() {
    let story = Story::new(5, 120)
        .then(5, 1, 6, THREAD, switch((8, 120, 1), (6, 120)))
        .then(20, 1, 6, THREAD, Event::IpiSend { cpu: 0, callsite: 0, callback: FLUSH })
        .then(30, 0, 5, HARD, Event::VectorEntry(Vector::Ipi("function call")))
        .then(40, 0, 5, HARD, Event::CallEntry { function: FLUSH })
        .then(70_000, 0, 5, HARD, Event::CallExit)
        .then(70_010, 0, 5, HARD, Event::VectorExit(Vector::Ipi("function call")))
        .timer(71_000, 5)
        .target(75_000, 5, 120);
    let (cause, who) = story.culprit();
    assert_eq!(
        (cause, who.as_str()),
        (Cause::Ipi, "function call flush_tlb_func (TLB flush) from t6-6")
    );
}

#[test]
fn a_storm_of_short_interrupts_is_no_ordinary_way() {
    let mut story = Story::new(5, 120).timer(200, 5);
    for n in 0..40 {
        let t = 4_000 + n * 5_000;
        story = story
            .then(t, 0, 5, HARD, Event::VectorEntry(Vector::Timer))
            .then(t + 100, 0, 5, HARD, Event::TimerExpire { timer: 9, function: PERIOD, now_ns: 0 })
            .then(t + 4_000, 0, 5, HARD, Event::VectorExit(Vector::Timer));
    }
    let record = story.target(205_000, 5, 120).metal();
    assert_eq!(record.culprit(), (Cause::TimerInterrupt, "sched_rt_period_timer"));
}

#[test]
fn an_nmi_is_known_only_at_its_end() {
    let story = Story::new(5, 120)
        .timer(200, 5)
        .then(80_000, 0, 5, 0x40, Event::Nmi { handler: FLUSH, ns: 70_000 })
        .target(81_000, 5, 120);
    assert_eq!(story.culprit().0, Cause::Nmi);
}

#[test]
fn a_page_fault_on_the_way_back_is_the_threads() {
    let story = Story::new(0, 120).timer(200, 0).target(5000, 0, 120);
    let mut story =
        story.then(5500, 0, TARGET, THREAD, Event::PageFault { mode: FaultMode::User, address: 1 });
    story.end = 90_000;
    assert_eq!(story.culprit().0, Cause::PageFault);
}

#[test]
fn who_is_woken_by_a_thread_waits_for_that_thread() {
    let woken = |story: Story| {
        story
            .then(80_000, 0, 5, THREAD, waking())
            .then(80_500, 0, 5, THREAD | RESCHED, Event::Wakeup { pid: TARGET, cpu: 0 })
            .target(82_000, 5, 120)
    };
    let (cause, who) = woken(Story::new(5, 120)).culprit();
    assert_eq!((cause, who.as_str()), (Cause::Waker, "t5-5"));
    // The one that is to wake it is kept off its CPU by a third: an inversion.
    let story = Story::new(5, 120).then(1000, 0, 5, THREAD, switch((5, 120, 0), (6, 60))).then(
        79_000,
        0,
        6,
        THREAD,
        switch((6, 60, 1), (5, 120)),
    );
    let record = woken(story).metal();
    let (cause, who) = record.culprit();
    assert_eq!((cause, who), (Cause::PriorityInversion, "t5-5 behind t6-6"));
    let told = record.chain.join(" ");
    assert!(told.contains("t5-5 (ordinary) was ready and had no CPU for 78.0 µs"), "{told}");
    assert!(told.contains("because of t6-6 (real-time priority 39)"), "{told}");
    // One that would keep off the waiting thread too is no inversion; nor is a boosted owner.
    let story = Story::new(5, 120).then(1000, 0, 5, THREAD, switch((5, 120, 0), (6, 9))).then(
        79_000,
        0,
        6,
        THREAD,
        switch((6, 9, 1), (5, 120)),
    );
    assert_eq!(woken(story).culprit().0, Cause::Waker);
    let boost = Event::Prio { pid: 5, old: 120, new: PRIO };
    let story = Story::new(5, 120).then(1000, 0, TARGET, THREAD, boost);
    assert_eq!(woken(story).culprit().0, Cause::Waker, "its owner ran all the time");
}

#[test]
fn what_recording_costs_is_a_part_of_its_own() {
    let ground = Ground {
        virtual_machine: Some(false),
        firmware: Some(false),
        event_ns: 100,
        ..Ground::default()
    };
    let record = Story::new(5, 120).timer(200, 5).target(90_000, 5, 120).explain(ground);
    let tracing = record.share_ns(Cause::Tracing, "");
    assert_eq!((tracing, record.tracing_ns), (600, 600), "six records: {:#?}", record.parts);
    assert_eq!(record.culprit().0, Cause::NotPreemptible);
    // No more than the segment has, whatever a record is said to cost.
    let dear = Ground { event_ns: 1_000_000, ..ground };
    let record = Story::new(5, 120).timer(200, 5).target(90_000, 5, 120).explain(dear);
    assert_eq!(record.tracing_ns, record.latency_ns - 200, "before the first nothing was recorded");
}

#[test]
fn a_change_of_frequency_is_named_where_nothing_else_explains_the_time() {
    let mut story = Story::new(0, 120).timer(200, 0).target(5000, 0, 120);
    story.end = 60_000;
    let changed = |cpu| Event::Frequency { cpu, khz: 1_200_000 };
    let told = |cpu| {
        Story { entries: story.entries.clone(), end: story.end }
            .then(5500, 0, TARGET, THREAD, changed(cpu))
            .culprit()
    };
    assert_eq!(told(0), named(Cause::Frequency, "to 1200 MHz"));
    assert_eq!(told(1).0, Cause::Unexplained, "another CPU's");
}

#[test]
fn stopped_cpus_and_the_console_are_seen_through_disabled_interrupts() {
    let stopper = |pid| switch((5, 120, 0), (pid, -1));
    let story = Story::new(5, 120)
        .then(10, 0, 5, THREAD, stopper(STOPPER))
        .then(10, 1, 5, THREAD, stopper(STOPPER + 1))
        .timer(80_000, STOPPER)
        .target(85_000, STOPPER, -1);
    assert_eq!(story.culprit(), named(Cause::StopMachine, "migration/0-20"));
    let story = Story::new(5, 120)
        .then(100, 0, 5, IRQS_OFF, Event::Console)
        .then(80_000, 0, 5, IRQS_OFF, Event::Wakeup { pid: 4, cpu: 0 })
        .timer(81_000, 5)
        .target(85_000, 5, 120);
    assert_eq!(story.culprit().0, Cause::Console);
}

#[test]
fn without_a_wake_up_nobody_is_said_to_have_kept_the_thread_waiting() {
    let mut story = Story::new(5, 120).then(50_000, 0, 5, THREAD, Event::WorkEnd);
    story.end = 90_000;
    let record = story.metal();
    assert_eq!(record.culprit(), (Cause::Unexplained, "its wake-up was not recorded"));
}

#[test]
fn switches_that_a_kernel_does_not_record_are_found_again() {
    // As one hypervisor's guests do not record those that leave the idle task.
    let mut story = Story::new(0, 120).timer(200, 0).then(
        30_000,
        0,
        TARGET,
        THREAD,
        Event::TimerStart { timer: 1, function: TIMER_FN, due_ns: 9, latest_ns: 9 },
    );
    story.end = 20_000;
    let record = story.metal();
    assert_eq!(record.parts.last().map(|p| p.phase), Some(Phase::Switch), "{:#?}", record.parts);
    // Another thread's record where one was believed to run: neither is charged.
    let mut story = Story::new(5, 120).timer(200, 5).then(60_000, 0, 9, THREAD, Event::WorkEnd);
    story.end = 70_000;
    let record = story.metal();
    assert!(
        record.share_ns(Cause::Unexplained, "events are missing") > 50_000,
        "{:#?}",
        record.parts
    );
}

#[test]
fn idle_states_and_lost_events_are_told() {
    let idle = |lost| {
        let story = Story::new(0, 120)
            .then(0, 0, 0, THREAD, Event::Idle { state: Some(3) })
            .timer(300_000, 0)
            .target(303_500, 0, 120);
        story.explain(Ground { lost, ..Ground::default() })
    };
    let record = idle(false);
    assert_eq!(record.culprit(), (Cause::IdleExit, "state 3"));
    assert!(!record.lost && idle(true).lost);
    assert!(record.chain.iter().any(|s| s.contains("idle state (state 3)")), "{:?}", record.chain);
}

#[test]
fn due_times_of_another_clock_are_carried_over() {
    let latency = |due_ns: i64, due_times: DueTimes| {
        let mut story = Story::new(5, 120).timer(200, 5).target(5000, 5, 120);
        let start = Event::TimerStart { timer: 1, function: TIMER_FN, due_ns, latest_ns: due_ns };
        let start = Entry { t_ns: DUE - 200_000, ..at(0, 0, TARGET, THREAD, start) };
        story.entries.insert(0, start);
        for e in &mut story.entries {
            if let Event::TimerExpire { now_ns, .. } = &mut e.event {
                *now_ns = due_ns + 300;
            }
        }
        let watched = WatchFilter::Threads(BTreeSet::from([TARGET]));
        let wanted = BlameSelection { realtime: true, above_ns: 0, most: 1 };
        let mut follow = Follow::new(watched, symbols(), Ground::default(), wanted);
        follow.due_times(due_times);
        story.entries.iter().for_each(|e| follow.entry(e));
        follow.finish().records.first().map(|r| r.latency_ns)
    };
    let on_trace = i64::try_from(DUE).expect("small");
    assert_eq!(latency(on_trace, DueTimes::OnTraceClock), Some(5000));
    // The expiry was recorded at 700 and was 300 late by its own clock.
    assert_eq!(latency(77_000, DueTimes::CarriedOver), Some(4600));
    let since_1970 = 1_795_287_536_000_000_000;
    assert_eq!(latency(since_1970, DueTimes::OnTraceClock), Some(4600), "CLOCK_REALTIME");
}

#[test]
fn a_wake_up_with_very_many_parts_keeps_the_longest_and_its_length() {
    let mut story = Story::new(5, 120).timer(200, 5);
    for i in 0..20_000u64 {
        let t = 10_000 + i * 2000;
        let long = if i == 7000 { 1950 } else { 100 };
        story = story
            .then(t, 0, 5, HARD, Event::IrqEntry { irq: 9, name: Word::new("eth0") })
            .then(t + long, 0, 5, HARD, Event::IrqExit { irq: 9 });
    }
    let record = story.target(60_000_000, 5, 120).metal();
    assert!(record.parts.len() <= 256, "{}", record.parts.len());
    let irq = record.parts.iter().filter(|p| p.cause == Cause::Interrupt).map(|p| p.ns).max();
    assert!(irq >= Some(1950), "{irq:?}");
    assert!(record.lanes.iter().all(|l| l.spans.len() <= 512));
}
