// SPDX-License-Identifier: MIT OR Apache-2.0
//! Made-up logs of two CPUs, and of one: what is told of them, and what is refused.
//!
//! Of two, the measured thread is on CPU 1; the guest's clock is 1,000 ns behind QEMU's.

use std::io::Cursor;

use tailbound_core::paths::PathsRecord;

use super::*;
use crate::blocks::Block;
use crate::record::{
    self, LOG_COMPARED, LOG_COUNT, LOG_HEAD_BYTES, LOG_STATUS, MAGIC, kind, state, status,
};

const SYMBOLS: &str = "\
ffffffff81000000 T hrtimer_interrupt
ffffffff81000100 T hrtimer_wakeup
ffffffff81000200 t __schedule
ffffffff81000300 T spin_lock
ffffffff81000400 T spin_unlock
ffffffff81a00400 T asm_sysvec_apic_timer_interrupt
ffffffff81a00500 T asm_exc_page_fault
ffffffff81a00600 T asm_sysvec_reschedule_ipi
";
const INTERRUPT: u64 = 0xffff_ffff_8100_0000;
const SETS: u64 = 0xffff_ffff_8100_0180;
const SCHEDULE: u64 = 0xffff_ffff_8100_0200;
const LOCK: u64 = 0xffff_ffff_8100_0300;
const UNLOCK: u64 = 0xffff_ffff_8100_0400;
const TIMER: u64 = 0xffff_ffff_81a0_0400;
const FAULT: u64 = 0xffff_ffff_81a0_0500;
const TOLD: u64 = 0xffff_ffff_81a0_0600;
const THREAD: u64 = 0xffff_8880_0000_0007;
const OFF: u8 = state::INTERRUPTS_OFF;
const RESCHED: u8 = state::RESCHED;

/// Time, CPU, kind, state, value.
type One = (u64, u8, u8, u8, u64);

fn log(records: &[One]) -> Cursor<Vec<u8>> {
    let mut words = vec![0u64; LOG_HEAD_BYTES / 8];
    words[0] = MAGIC;
    words[LOG_COUNT] = records.len() as u64;
    (words[LOG_STATUS], words[LOG_COMPARED]) = (status::WHOLE, 1);
    for (t_ns, cpu, kind, state, value) in records {
        words.extend([record::head(*t_ns, state | cpu << 4, *kind), *value]);
    }
    Cursor::new(words.iter().flat_map(|w| w.to_ne_bytes()).collect())
}

/// Two wake-ups: the first is of a timer of CPU 1, for which it is not CPU 1's turn at once, and loses its turn twice on
/// its way; the second's timer is on CPU 0, which tells CPU 1.
fn two() -> Vec<One> {
    vec![
        (5000, 1, kind::TURN, 0, 0),
        (5099, 1, kind::HALT, 0, 0),
        (5100, 0, kind::TURN, 0, 100),
        // Due at 10,000. CPU 1 executes its first instruction at 11,500.
        (11_500, 1, kind::TURN, 0, 6500),
        (11_500, 1, kind::ENTER, 0, TIMER),
        (11_500, 1, kind::STATE, OFF, TIMER),
        (11_510, 1, kind::POINT, OFF, INTERRUPT),
        (11_520, 1, kind::WAKE, OFF, THREAD),
        (11_520, 1, kind::DUE, OFF, 9000),
        (11_530, 1, kind::STATE, OFF | RESCHED, LOCK),
        (11_540, 1, kind::POINT, OFF | RESCHED, SCHEDULE),
        (11_545, 0, kind::TURN, 0, 6545),
        (11_565, 1, kind::TURN, OFF | RESCHED, 6565),
        (11_570, 1, kind::SWITCH, OFF | RESCHED, THREAD),
        (11_580, 1, kind::STATE, state::USER, UNLOCK),
        (11_580, 1, kind::RETURN, state::USER, THREAD),
        (11_585, 0, kind::TURN, 0, 6585),
        (11_605, 1, kind::TURN, state::USER, 6605),
        (11_620, 1, kind::READ, state::USER, THREAD),
        (11_690, 1, kind::SWITCH, 0, 1),
        (11_699, 1, kind::HALT, 0, 0),
        (11_700, 0, kind::TURN, 0, 6700),
        (11_799, 0, kind::HALT, 0, 0),
        // Due at 20,000, while all halt.
        (20_000, 0, kind::TURN, 0, 6800),
        (20_000, 0, kind::ENTER, 0, TIMER),
        (20_000, 0, kind::STATE, OFF, TIMER),
        (20_010, 0, kind::POINT, OFF, INTERRUPT),
        (20_020, 0, kind::WAKE, OFF, THREAD),
        (20_020, 0, kind::DUE, OFF, 19_000),
        (20_050, 1, kind::TURN, 0, 6850),
        (20_050, 1, kind::ENTER, 0, TOLD),
        (20_050, 1, kind::STATE, OFF, TOLD),
        (20_060, 1, kind::STATE, OFF | RESCHED, LOCK),
        (20_070, 1, kind::POINT, OFF | RESCHED, SCHEDULE),
        (20_080, 1, kind::SWITCH, OFF | RESCHED, THREAD),
        (20_090, 1, kind::STATE, state::USER, UNLOCK),
        (20_090, 1, kind::RETURN, state::USER, THREAD),
        (20_110, 1, kind::READ, state::USER, THREAD),
    ]
}

/// The readings of the clock, less due times by it.
const SAMPLES: [i64; 2] = [11_620 - 1000 - 9000, 20_110 - 1000 - 19_000];

fn told(records: &[One]) -> Result<PathsRecord, LookError> {
    told_of(records, &SAMPLES)
}

fn told_of(records: &[One], latencies_ns: &[i64]) -> Result<PathsRecord, LookError> {
    let mut entries = [0; wakeups::ENTRIES];
    entries[0] = TIMER;
    let marks =
        Marks { entries, interrupt: INTERRUPT, schedule: SCHEDULE, sets: SETS, second: None };
    let samples = Samples { start_ns: 9000, latencies_ns, step_ns: 1, guest: Guest::X86_64 };
    let symbols = Symbols::parse(SYMBOLS);
    let mut found = Sparse::of(&mut log(records), marks, &symbols, samples)?;
    found.keep_shares(&[625, 375]);
    Ok(found.record().clone())
}

/// Each 10 µs a wake-up 100 ns late on one CPU, and then one that another interrupt is in the way of: it ends 2,600 ns after the
/// due time and has the timer set `set` ns after it; the timer comes at 2,900.
fn with_a_late_one(set: u64) -> Result<PathsRecord, LookError> {
    let mut records = Vec::new();
    let mut wakes = |due: u64, taken: u64| {
        records.extend([
            (taken, 0, kind::ENTER, 0, TIMER),
            (taken, 0, kind::STATE, OFF, TIMER),
            (taken + 10, 0, kind::WAKE, OFF, THREAD),
            (taken + 10, 0, kind::DUE, OFF, due - 1000),
            (taken + 50, 0, kind::SWITCH, OFF, THREAD),
            (taken + 100, 0, kind::STATE, state::USER, UNLOCK),
            (taken + 100, 0, kind::RETURN, state::USER, THREAD),
            (taken + 900, 0, kind::STATE, 0, UNLOCK),
        ]);
    };
    let dues = (0..40).map(|n| 10_000 + 10_000 * n);
    dues.for_each(|due| wakes(due, due));
    wakes(410_000, 412_900);
    let late = [
        (409_500, 0, kind::ENTER, 0, TOLD),
        (409_500, 0, kind::STATE, OFF, TOLD),
        (410_000 + set, 0, kind::POINT, OFF, SETS),
        (412_600, 0, kind::STATE, 0, UNLOCK),
    ];
    records.splice(8 * 40..8 * 40, late);
    let mut latencies_ns = [100; 41];
    latencies_ns[40] = 3000;
    told_of(&records, &latencies_ns)
}

#[test]
fn a_timer_that_was_due_when_it_was_set_comes_after_the_section_that_set_it() {
    let record = with_a_late_one(2500).unwrap();
    assert_eq!((record.checks.delayed, record.checks.set_late), (1, 1));
    let behind = record.wakeups[0].behind.as_ref().unwrap();
    let expected = ("asm_sysvec_reschedule_ipi", "spin_unlock", 3100);
    assert_eq!((behind.from.as_str(), behind.to.as_str(), behind.ns), expected);
    assert_eq!(record.wakeups[0].legs[0].ns, 2900);
    // Set long before, the timer would have come where interrupts were enabled again.
    let error = with_a_late_one(1000).unwrap_err();
    assert!(matches!(error, LookError::Elsewhere { late: 1, all: 1 }));
}

#[test]
fn a_turn_that_another_cpu_has_is_time_and_not_its_own() {
    let record = told(&two()).unwrap();
    let first = &record.wakeups[0];
    assert_eq!((first.activation, first.handed_over.is_none()), (0, true));
    let legs: Vec<_> = first.legs.iter().map(|l| (l.name.as_str(), l.ns, l.own_ns)).collect();
    assert_eq!(
        legs,
        [
            ("due to interrupt", 1500, Some(0)),
            ("entry", 10, Some(10)),
            ("timers", 10, Some(10)),
            ("to the other CPU", 0, Some(0)),
            ("wake-up", 10, Some(10)),
            ("to the scheduler", 10, Some(10)),
            ("scheduler", 30, Some(10)),
            ("switch to user mode", 10, Some(10)),
            ("reading the clock", 40, Some(20)),
        ]
    );
    let several = record.checks.several.unwrap();
    assert_eq!((several.turns, several.out_of_turn, record.checks.delayed), (10, 1, 0));
}

#[test]
fn a_section_that_ended_where_the_cpu_halted_is_in_nobodys_way() {
    let mut records = two();
    records.insert(1, (5050, 1, kind::STATE, OFF, LOCK));
    records.insert(2, (5099, 1, kind::STATE, 0, UNLOCK));
    let record = told(&records).unwrap();
    assert_eq!(record.wakeups[0].behind, None);
}

#[test]
fn a_wake_up_that_another_cpus_timer_made_is_told_as_such() {
    let record = told(&two()).unwrap();
    let second = &record.wakeups[1];
    let legs: Vec<_> = second.legs.iter().map(|l| (l.ns, l.own_ns)).collect();
    let own = |ns| (ns, Some(ns));
    assert_eq!(
        legs,
        [own(0), own(10), own(10), (30, None), own(10), own(10), own(10), own(10), own(20)]
    );
    let over = second.handed_over.as_ref().unwrap();
    assert_eq!((over.cpu, over.by.as_deref()), (0, Some("asm_sysvec_reschedule_ipi")));
    let several = record.checks.several.unwrap();
    assert_eq!((several.handed_over, several.unexplained), (1, 0));
    // No instant of a timer on the thread's own CPU says how long such a one waits.
    assert!(record.curve.is_empty());
}

#[test]
fn what_told_the_cpu_is_an_interrupt_or_is_not_explained() {
    let with = |entry: u64| -> Vec<One> {
        let told = |(t, cpu, kind, state, value): One| {
            (t, cpu, kind, state, if value == TOLD { entry } else { value })
        };
        two().into_iter().map(told).collect()
    };
    let mut without = two();
    without.retain(|r| r.2 != kind::ENTER || r.4 != TOLD);
    for records in [with(FAULT), without] {
        let record = told(&records).unwrap();
        assert_eq!(record.checks.several.unwrap().unexplained, 1);
        assert_eq!(record.wakeups[1].handed_over.as_ref().unwrap().by, None);
    }
}

#[test]
fn sections_are_of_their_cpu_and_have_a_length_of_their_own() {
    let record = told(&two()).unwrap();
    assert_eq!(record.cpus.iter().map(|c| c.cpu).collect::<Vec<_>>(), [1, 0]);
    assert_eq!(record.cpus[0].share_permille, Some(375));
    let executed: Vec<i64> = record.cpus.iter().map(|c| c.executed_ns).collect();
    assert_eq!(executed, [45 + 20 + 95 + 40, 1500 + 20 + 20 + 100 + 50]);
    let off: Vec<_> = record
        .sections
        .iter()
        .filter(|s| s.kind == SectionKind::InterruptsOff)
        .map(|s| (s.cpu, s.longest_ns, s.own_ns, s.from.as_str(), s.to.as_str()))
        .collect();
    // CPU 0 is within one when the window ends.
    assert_eq!(
        off,
        [
            (Some(1), 80, Some(60), "asm_sysvec_apic_timer_interrupt", "spin_unlock"),
            (Some(1), 40, Some(40), "asm_sysvec_reschedule_ipi", "spin_unlock"),
        ]
    );
}

#[test]
fn an_interrupt_that_its_own_cpu_kept_waiting_needs_a_section() {
    let mut records = two();
    records[3] = (10_000, 1, kind::TURN, 0, 5000);
    assert!(matches!(told(&records), Err(LookError::Elsewhere { late: 1, all: 1 })));
    // Another CPU's is none.
    let section = |cpu| {
        let mut records = records.clone();
        records.insert(4, (10_000, cpu, kind::STATE, OFF, LOCK));
        records.insert(5, (11_500, cpu, kind::STATE, 0, UNLOCK));
        told(&records)
    };
    assert!(matches!(section(0), Err(LookError::Elsewhere { .. })));
    let record = section(1).unwrap();
    assert_eq!((record.checks.delayed, record.checks.several.unwrap().out_of_turn), (1, 0));
    let behind = record.wakeups[0].behind.as_ref().unwrap();
    assert_eq!((behind.from.as_str(), behind.own_ns), ("spin_lock", Some(1500)));
}

#[test]
fn a_timer_that_was_set_while_another_cpu_had_its_turn_is_so_much_late() {
    let mut records = two();
    // CPU 1 executes when it is due, and its timer comes 1,500 ns late.
    records[3] = (10_000, 1, kind::TURN, 0, 5000);
    // It lost its turn for 1,400 ns while it set it.
    records[1] = (5099, 1, kind::POINT, 0, SETS);
    records.insert(3, (6500, 1, kind::TURN, 0, 1500));
    records.insert(4, (6599, 1, kind::HALT, 0, 0));
    records.insert(5, (6600, 0, kind::TURN, 0, 1600));
    let record = told(&records).unwrap();
    assert_eq!((record.checks.delayed, record.checks.several.unwrap().out_of_turn), (0, 1));
    records[1] = (5099, 1, kind::POINT, 0, SCHEDULE);
    assert!(matches!(told(&records), Err(LookError::Elsewhere { late: 1, all: 1 })));
}

#[test]
fn what_does_not_fit_is_refused() {
    let mut unread = two();
    unread.retain(|r| r.2 != kind::READ);
    assert!(matches!(told(&unread), Err(LookError::Unread(2))));
    let mut hole = two();
    hole[3] = (11_501, 1, kind::TURN, 0, 6500);
    assert!(matches!(told(&hole), Err(LookError::Turns { wrong: 2, .. })));
    let mut disabled = two();
    let enters = disabled.iter().position(|r| r.2 == kind::ENTER && r.1 == 0).unwrap();
    disabled[enters].3 = OFF;
    assert!(matches!(told(&disabled), Err(LookError::Disabled(1))));
}

#[test]
fn what_a_cpu_executed_is_its_own_blocks() {
    let block = |t_ns, cpu, address| Some(Block { t_ns, address, cpu, stack: 0x3000 });
    let blocks =
        [block(10, 1, LOCK), block(30, 0, SCHEDULE), block(70, 1, LOCK + 4), block(90, 0, LOCK)];
    let (symbols, plan) =
        (Symbols::parse(SYMBOLS), Plan::of(crate::plan::X86_64_SYMBOLS, Guest::X86_64).unwrap());
    let of = |cpu| {
        let lines =
            tree(&blocks, cpu, GuestWindow { from_ns: 0, to_ns: 100 }, &symbols, &plan).lines();
        lines.iter().map(|l| (l.name.clone(), l.total_ns)).collect::<Vec<_>>()
    };
    assert_eq!(of(1), [("spin_lock".to_owned(), 40)]);
    assert_eq!(of(0), [("__schedule".to_owned(), 40)]);
}
