// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the firmware tells is what was injected, to the tick.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::board::{Board, Machine};
use tailbound_wire::{
    BoxFault, CELLS, Cells, Counters, ListPart, Message, PulseRecord, Reaction, Set, Shelf,
    Spacing, Stimulus,
};

/// 10 kHz at 125 MHz.
const SET: Set = Set {
    channels: 1,
    stimulus: Stimulus::Toggle,
    period_ticks: 6_250,
    spacing: Spacing::Even,
    width_ticks: 0,
};

const PERIOD_CYCLES: u64 = 12_500;

/// How many pulses, unless `TAILBOUND_BOX_PULSES` says.
fn pulses() -> u64 {
    std::env::var("TAILBOUND_BOX_PULSES").ok().and_then(|n| n.parse().ok()).unwrap_or(10_000)
}

fn wire(delay: u64) -> Machine {
    Box::new(move |_, level| vec![(delay, level)])
}

fn counters(board: &mut Board) -> Counters {
    counters_of(board, 0)
}

fn counters_of(board: &mut Board, channel: u8) -> Counters {
    match board.ask(&Message::AskCounters(channel)) {
        Message::Counters(of, counters) if of == channel => counters,
        other => panic!("{other:?}"),
    }
}

fn cells(board: &mut Board, shelf: Shelf) -> BTreeMap<usize, u32> {
    cells_of(board, 0, shelf)
}

fn cells_of(board: &mut Board, channel: u8, shelf: Shelf) -> BTreeMap<usize, u32> {
    let mut all = BTreeMap::new();
    let mut first = 0_u16;
    while usize::from(first) < CELLS {
        let Message::Cells(part) =
            board.ask(&Message::AskCells(ListPart { channel, shelf, first }))
        else {
            panic!("no cells")
        };
        assert!(part.length > 0);
        for (i, count) in part.counts.iter().take(usize::from(part.length)).enumerate() {
            if *count > 0 {
                all.insert(usize::from(first) + i, *count);
            }
        }
        first += u16::from(part.length);
    }
    all
}

fn worst(board: &mut Board) -> Vec<PulseRecord> {
    let mut all = Vec::new();
    loop {
        let first = all.len() as u16;
        let part = ListPart { channel: 0, shelf: Shelf::Answered, first };
        let Message::Worst(part) = board.ask(&Message::AskWorst(part)) else { panic!("no list") };
        if part.length == 0 {
            return all;
        }
        all.extend(&part.entries[..usize::from(part.length)]);
    }
}

fn streamed(board: &Board) -> Vec<PulseRecord> {
    board.samples.iter().flat_map(|s| s.outcomes[..usize::from(s.length)].to_vec()).collect()
}

fn begin(board: &mut Board, set: Set) {
    assert_eq!(board.ask(&Message::Set(set)), Message::Done(2));
    board.restart_pulses();
    assert_eq!(board.ask(&Message::Start), Message::Done(3));
}

fn run_until(board: &mut Board, pulses: u64) {
    let end = board.now + pulses * 20 * PERIOD_CYCLES;
    while board.pulses() < pulses && board.now < end {
        board.run(10_000);
    }
    assert!(board.pulses() >= pulses, "only {} pulses", board.pulses());
    board.run(PERIOD_CYCLES / 2);
    assert_eq!(board.ask(&Message::Stop), Message::Done(4));
}

#[test]
fn the_box_says_who_it_is_and_refuses_what_it_cannot_do() {
    let Some(mut board) = Board::on(wire(0)) else { return };
    let Message::Hello(hello) = board.ask(&Message::AskHello) else { panic!("no hello") };
    assert_eq!((hello.tick_hz, hello.channels, hello.pins), (62_500_000, 4, [2, 3]));
    assert_eq!(board.ask(&Message::Start), Message::Fault(3, BoxFault::NotSet));
    let fast = Set { period_ticks: 10, ..SET };
    assert_eq!(board.ask(&Message::Set(fast)), Message::Fault(2, BoxFault::Value));
    assert_eq!(board.ask(&Message::AskCounters(9)), Message::Fault(5, BoxFault::Value));
    begin(&mut board, SET);
    assert_eq!(board.ask(&Message::Set(SET)), Message::Fault(2, BoxFault::Measuring));
    assert_eq!(board.ask(&Message::Start), Message::Fault(3, BoxFault::Measuring));
}

#[test]
fn a_wire_reads_the_cycles_of_the_synchroniser() {
    for (cycles, ticks) in [(0, 0), (2, 1)] {
        let Some(mut board) = Board::on(wire(0)) else { return };
        board.synchronise(cycles);
        let Message::LoopBack(read) = board.ask(&Message::AskLoopBack(0)) else { panic!("none") };
        assert_eq!((read.least_ticks, read.most_ticks), (ticks, ticks), "{read:?}");
        assert!(read.sent >= 256 && read.sent - read.answered <= 1, "{read:?}");
    }
}

/// Delays in ticks: each of the exact cells, then some of each octave; one of 100 behind the next pulse.
fn delay(pulse: u64) -> u64 {
    match pulse % 100 {
        99 => 6_250 + 1_000 + pulse % 4_000,
        n if n < 80 => pulse % 5_237,
        n => 128 << (n % 6),
    }
}

#[test]
fn ten_thousand_pulses_at_10_khz_are_told_as_they_were_injected() {
    let pulses = pulses();
    // After a late answer, the next one comes when the machine is through: still in its order.
    let actual: Rc<RefCell<Vec<u64>>> = Rc::default();
    let told = Rc::clone(&actual);
    let mut free_ticks = 0;
    let machine: Machine = Box::new(move |pulse, level| {
        let sent = pulse * 6_250;
        let answer = (sent + delay(pulse)).max(free_ticks + 10);
        free_ticks = answer;
        told.borrow_mut().push(answer - sent);
        let at = (answer - sent) * 2;
        // Every fifth answer that is in time is followed by two edges.
        if pulse % 5 == 0 && answer - sent < 5_300 {
            free_ticks += 40;
            return vec![(at, level), (at + 40, !level), (at + 80, level)];
        }
        vec![(at, level)]
    });
    let Some(mut board) = Board::on(machine) else { return };
    assert_eq!(board.ask(&Message::Stream), Message::Done(8));
    begin(&mut board, SET);
    run_until(&mut board, pulses);
    let counters = counters(&mut board);
    let actual = actual.borrow();
    // At the end the line rests low: one edge more where it was up.
    assert_eq!(counters.sent.next_multiple_of(2), board.pulses());
    assert_eq!(counters.answered + counters.unanswered, counters.sent);
    assert!(counters.unanswered <= 2, "only what was open at the end: {counters:?}");
    assert_eq!((counters.unknown, counters.edges_lost, counters.dropped), (0, 0, 0));
    assert_eq!((counters.held, counters.unassigned), (0, 0));
    let mut records = streamed(&board);
    assert_eq!(records.len() as u64, counters.sent);
    records.sort_unstable_by_key(|record| record.number);
    let mut expected = BTreeMap::new();
    let (mut late, mut spurious) = (0, 0);
    for record in &records {
        let truth = actual[record.number as usize];
        assert_eq!(record.sent_ticks, (record.number + 1) * 6_250);
        match record.reaction {
            Reaction::Answered(ticks) => assert_eq!(u64::from(ticks), truth, "{record:?}"),
            Reaction::Late(ticks) => {
                assert_eq!(u64::from(ticks), truth, "{record:?}");
                late += 1;
            }
            Reaction::AtLeast(ticks) => assert!(u64::from(ticks) <= truth, "{record:?}"),
            Reaction::Unknown => panic!("{record:?}"),
        }
        if !matches!(record.reaction, Reaction::AtLeast(_)) {
            *expected.entry(Cells::cell(truth as u32)).or_insert(0_u32) += 1;
        }
        spurious += 2 * u64::from(record.number % 5 == 0 && truth < 5_300);
    }
    assert!(late > 0 && counters.late == late, "{late} {counters:?}");
    assert!(counters.spurious.abs_diff(spurious) <= 2, "{spurious} {counters:?}");
    assert_eq!(cells(&mut board, Shelf::Answered), expected);
    let mut worst: Vec<u32> = worst(&mut board).iter().map(|r| r.reaction.ticks()).collect();
    worst.sort_unstable();
    let mut all: Vec<u32> = records.iter().map(|r| r.reaction.ticks()).collect();
    all.sort_unstable();
    assert_eq!(worst, all[all.len() - 256.min(all.len())..]);
    println!("{} pulses, {} cells, {late} late", counters.sent, expected.len());
}

#[test]
fn a_machine_that_is_silent_for_a_while_is_found_again() {
    let machine: Machine =
        Box::new(
            |pulse, level| if (50..70).contains(&pulse) { vec![] } else { vec![(400, level)] },
        );
    let Some(mut board) = Board::on(machine) else { return };
    assert_eq!(board.ask(&Message::Stream), Message::Done(8));
    begin(&mut board, SET);
    run_until(&mut board, 120);
    let counters = counters(&mut board);
    // At the end the line rests low: one edge more where it was up.
    assert_eq!(counters.sent.next_multiple_of(2), board.pulses());
    assert!((20..30).contains(&counters.unanswered) && counters.held > 0, "{counters:?}");
    for record in streamed(&board) {
        let is_silent = (50..70).contains(&record.number);
        match record.reaction {
            Reaction::Answered(ticks) => assert!(ticks == 200 && !is_silent, "{record:?}"),
            Reaction::AtLeast(ticks) => assert!(is_silent || ticks <= 200, "{record:?}"),
            _ => panic!("{record:?}"),
        }
    }
    let last = streamed(&board).into_iter().max_by_key(|r| r.number).expect("some");
    assert_eq!(last.reaction, Reaction::Answered(200), "{last:?}");
}

#[test]
fn pulses_with_a_width_at_random_intervals_are_on_their_schedule() {
    let machine: Machine =
        Box::new(
            |edge, level| {
                if level { vec![(300 + edge % 8 * 10, true), (700, false)] } else { vec![] }
            },
        );
    let Some(mut board) = Board::on(machine) else { return };
    assert_eq!(board.ask(&Message::Stream), Message::Done(8));
    let spacing = Spacing::Random(5);
    begin(&mut board, Set { stimulus: Stimulus::Pulse, width_ticks: 100, spacing, ..SET });
    run_until(&mut board, 400);
    let mut due = 0;
    let mut intervals = tailbound_wire::Intervals::new(6_250, spacing);
    let records = streamed(&board);
    assert!(records.len() >= 199);
    for record in records {
        due += u64::from(intervals.next());
        assert_eq!(record.sent_ticks, due);
        let expected = 150 + (record.number * 2 % 8 * 5) as u32;
        assert_eq!(record.reaction, Reaction::Answered(expected), "{record:?}");
    }
}

#[test]
fn a_host_that_does_not_read_costs_samples_and_nothing_else() {
    let Some(mut board) = Board::on(wire(1_000)) else { return };
    // The rate of the wire, 1 Mbaud, and then a tenth of it.
    board.pace(12_500);
    assert_eq!(board.ask(&Message::Stream), Message::Done(8));
    begin(&mut board, SET);
    run_until(&mut board, 1_500);
    board.pace(100);
    board.run(20_000_000);
    let counters = counters(&mut board);
    assert_eq!(counters.answered, counters.sent);
    assert!(counters.dropped > 0);
    assert_eq!(streamed(&board).len() as u64 + counters.dropped, counters.sent);
    assert_eq!(
        cells(&mut board, Shelf::Answered),
        BTreeMap::from([(Cells::cell(500), counters.sent as u32)])
    );
}

#[test]
fn ringing_faster_than_edges_are_taken_is_counted_and_not_believed() {
    let machine: Machine = Box::new(|pulse, level| {
        if pulse == 20 {
            (0..200)
                .map(|i| (400 + i * 16, level == (i % 2 == 0)))
                .chain([(5_000, level)])
                .collect()
        } else {
            vec![(400, level)]
        }
    });
    let Some(mut board) = Board::on(machine) else { return };
    assert_eq!(board.ask(&Message::Stream), Message::Done(8));
    begin(&mut board, SET);
    run_until(&mut board, 60);
    let counters = counters(&mut board);
    assert!(counters.edges_lost > 0 || counters.spurious >= 200, "{counters:?}");
    for record in streamed(&board) {
        match record.reaction {
            Reaction::Answered(ticks) | Reaction::AtLeast(ticks) => {
                assert!(ticks <= 200 || record.number == 20, "{record:?}")
            }
            Reaction::Unknown => {}
            Reaction::Late(_) => panic!("{record:?}"),
        }
    }
}

#[test]
fn four_channels_on_two_blocks_are_told_apart_to_the_tick() {
    const DELAYS_TICKS: [u64; 4] = [200, 77, 1_001, 3];
    // The last one misses a pulse in fifty.
    let machine = |channel: usize| -> Machine {
        Box::new(move |pulse, level| {
            let is_deaf = channel == 3 && pulse % 50 == 7;
            if is_deaf { vec![] } else { vec![(DELAYS_TICKS[channel] * 2, level)] }
        })
    };
    let Some(mut board) = Board::with((0..4).map(machine).collect()) else { return };
    begin(&mut board, Set { channels: 4, ..SET });
    run_until(&mut board, 300);
    for (channel, delay_ticks) in (0..4).zip(DELAYS_TICKS) {
        let counters = counters_of(&mut board, channel);
        let cells = cells_of(&mut board, channel, Shelf::Answered);
        // Its pulses are further apart while it is not known which of them an edge answers.
        let least = if channel == 3 { 100 } else { 290 };
        assert!(counters.sent >= least, "{channel}: {counters:?}");
        assert_eq!((counters.unknown, counters.edges_lost, counters.dropped), (0, 0, 0));
        let cell = Cells::cell(delay_ticks as u32);
        assert_eq!(cells.get(&cell), Some(&(counters.answered as u32)), "{channel}: {cells:?}");
        let missing = counters.sent - counters.answered;
        if channel == 3 {
            // One that is not answered leaves the line as it was, so that the next one brings no edge either.
            assert!(missing > 5, "{counters:?}");
        } else {
            assert!(missing <= 1 && cells.len() == 1, "{channel}: {counters:?} {cells:?}");
        }
    }
}
