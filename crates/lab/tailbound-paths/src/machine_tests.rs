// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events by hand, and the variables that they must give.

use tailbound_core::words::Word;
use tailbound_trace::event::Flags;

use super::*;

const OFF: u8 = 0x01;
const RESCHED: u8 = 0x04;
const HARD: u8 = 0x08;
const SOFT: u8 = 0x10;

fn at(t_ns: u64, flags: u8, event: Event) -> Entry {
    Entry { t_ns, cpu: 0, pid: 1, flags: Flags(flags), event }
}

fn irqs(off: bool) -> Event {
    Event::Interrupts { off, caller: 0x10, parent: 0 }
}

fn preemption(off: bool) -> Event {
    Event::Preemption { off, caller: 0x20, parent: 0 }
}

fn switch(next: i32, next_prio: i32) -> Event {
    let comm = Word::new("x");
    Event::Switch {
        prev: 1,
        prev_prio: 120,
        prev_state: 0,
        prev_comm: comm,
        next,
        next_prio,
        next_comm: comm,
    }
}

fn waking(pid: i32, prio: i32) -> Event {
    Event::Waking { pid, prio, cpu: 0, comm: Word::new("x") }
}

const TIMER: Event = Event::VectorEntry(Kind::Timer);

/// The timer's interrupt hits an ordinary thread, within a section from 1100 on, and wakes thread 7; that one sleeps again, and
/// is woken once more, from a halt.
fn events() -> Vec<Entry> {
    vec![
        at(1000, OFF, switch(1, 120)),
        at(1010, OFF, irqs(false)),
        at(1020, 0, preemption(false)),
        at(1100, 0, preemption(true)),
        // The interrupt: 1150 to 1200, with a soft interrupt that another one interrupts, to 1260.
        at(1150, OFF, irqs(true)),
        at(1155, OFF | HARD, TIMER),
        at(1160, OFF | HARD, waking(7, 10)),
        at(1170, OFF | HARD | RESCHED, Event::VectorExit(Kind::Timer)),
        at(1200, OFF | SOFT | RESCHED, irqs(false)),
        at(1210, OFF | SOFT | RESCHED, irqs(true)),
        at(1212, OFF | HARD | SOFT, Event::IrqEntry { irq: 9, name: Word::new("disk") }),
        at(1230, OFF | SOFT | RESCHED, irqs(false)),
        at(1250, OFF | RESCHED, irqs(true)),
        at(1260, OFF | RESCHED, irqs(false)),
        at(1300, RESCHED, preemption(false)),
        at(1310, RESCHED, preemption(true)),
        at(1320, OFF | RESCHED, irqs(true)),
        at(1330, OFF, switch(7, 10)),
        at(1350, OFF, irqs(false)),
        at(1380, 0, preemption(false)),
        // It sleeps.
        at(1400, 0, preemption(true)),
        at(1405, OFF, irqs(true)),
        at(1410, OFF, switch(0, 120)),
        at(1420, OFF, irqs(false)),
        at(1440, OFF, irqs(true)),
        at(1450, OFF, Event::Idle { state: Some(1) }),
        at(1455, OFF, irqs(false)),
        // A timer's interrupt wakes it from the halt.
        at(2000, OFF, irqs(true)),
        at(2005, OFF | HARD, TIMER),
        at(2010, OFF | HARD, waking(7, 10)),
        at(2040, OFF | RESCHED, irqs(false)),
        at(2045, OFF | RESCHED, irqs(true)),
        at(2046, OFF | RESCHED, Event::Idle { state: None }),
        at(2060, RESCHED | OFF, irqs(false)),
        at(2090, OFF | RESCHED, irqs(true)),
        at(2100, OFF, switch(7, 10)),
        at(2110, OFF, irqs(false)),
        at(2120, 0, preemption(false)),
    ]
}

fn evidence(events: &[Entry]) -> Evidence {
    let mut cpu = CpuEvents::new(0, 900);
    events.iter().for_each(|e| cpu.add(e));
    let symbols = Symbols::parse(
        "ffffffff81000000 T begin\nffffffff81000010 T off\nffffffff81000020 T count\n",
    );
    cpu.finish(&Names { symbols: &symbols, begin: symbols.address("begin"), event_ns: Some(1) })
}

#[test]
fn every_stretch_is_in_its_variable_and_interrupts_are_out_of_them() {
    let found = evidence(&events());
    let longest: Vec<_> = found.variables.iter().map(|v| (v.variable, v.ns, v.n)).collect();
    assert_eq!(
        longest,
        [
            // 1100 to 1300, less the interrupts' 110.
            (Variable::Poid, 90, 2),
            (Variable::Paie, 10, 1),
            (Variable::Psd, 70, 3),
            (Variable::St, 60, 3),
            // From the scheduler's return to where interrupts are enabled for the halt.
            (Variable::IdleIn, 35, 1),
            // 2000 to 2090, less 40 of the interrupt.
            (Variable::IdleOut, 50, 1),
        ]
    );
    let poid = &found.variables[0];
    assert_eq!((poid.from.as_str(), poid.to.as_str(), poid.at_ns), ("count", "count", 200));
    let out = found.variables.last().map(|v| v.from.as_str());
    assert_eq!(out, Some("local timer"));
    assert_eq!(poid.tracing_ns, Some(11), "events from 1150 to 1300");
    let executed: Vec<(&str, Vec<i64>)> = found
        .vectors
        .iter()
        .map(|v| (v.name.as_str(), v.executions.iter().map(|e| e.ns).collect()))
        .collect();
    assert_eq!(executed, [("9 disk", vec![20]), ("local timer", vec![90, 40])]);
    // From the waking at 1160 to 1380, and at 2010 to 2120.
    assert_eq!(found.observed, Observed { n: 2, scheduling_ns: 220, sample_ns: 220 });
    assert!(found.preconditions.iter().all(|p| p.holds == Holds::Yes), "{found:?}");
}

#[test]
fn what_a_hole_cuts_is_not_counted_and_said() {
    let mut cpu = CpuEvents::new(0, 900);
    let all = events();
    all.iter().take(6).for_each(|e| cpu.add(e));
    cpu.lose();
    all.iter().skip(12).for_each(|e| cpu.add(e));
    let symbols = Symbols::default();
    let found = cpu.finish(&Names { symbols: &symbols, begin: None, event_ns: None });
    let poid = found.variables.iter().find(|v| v.variable == Variable::Poid);
    assert!(poid.is_none_or(|v| v.ns < 90), "the section from 1100 to 1300 was cut: {poid:?}");
    assert!(found.preconditions.iter().any(|p| p.name == "events" && p.holds == Holds::Unknown));
}

#[test]
fn what_goes_before_real_time_threads_is_seen() {
    let mut cpu = CpuEvents::new(0, 900);
    let comm = Word::new("migration/0");
    let to = |next_prio, next_comm, prev_prio| Event::Switch {
        prev: 5,
        prev_prio,
        prev_state: 0x100,
        prev_comm: comm,
        next: 9,
        next_prio,
        next_comm,
    };
    let events =
        [to(120, comm, 120), to(0, comm, 120), to(-1, Word::new("dl"), 120), to(120, comm, 10)];
    for (event, t_ns) in events.into_iter().zip(1000u64..) {
        cpu.add(&at(t_ns, OFF, event));
    }
    let symbols = Symbols::default();
    let found = cpu.finish(&Names { symbols: &symbols, begin: None, event_ns: None });
    assert_eq!(found.preconditions.iter().filter(|p| p.holds == Holds::No).count(), 3);
}

#[test]
fn no_order_of_events_panics() {
    let kinds = [
        irqs(true),
        irqs(false),
        preemption(true),
        preemption(false),
        switch(0, 120),
        switch(7, 10),
        TIMER,
        Event::Idle { state: Some(1) },
        Event::Idle { state: None },
        waking(7, 10),
        Event::Nmi { handler: 0, ns: 5000 },
    ];
    let mut random = 1u64;
    let mut next = |n: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(random >> 33).unwrap_or(0) % n
    };
    let mut events = Vec::new();
    for t_ns in 0..50_000u64 {
        let flags = u8::try_from(next(256)).unwrap_or(0);
        events.push(at(1000 + t_ns, flags, kinds[next(kinds.len())]));
    }
    let found = evidence(&events);
    assert!(found.variables.iter().all(|v| v.ns >= 0 && v.ns <= 50_000));
}
