// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's side with the firmware itself: its UART and a session, in the emulator's time.

use std::cell::RefCell;
use std::rc::Rc;

use tailbound_box::TimeBase;
use tailbound_box::pico::{BoxCheck, BoxRefusal, BoxSession, Streaming};
use tailbound_box::stimulus::{
    StimulusEnd, StimulusPlan, StimulusProgress, StimulusReaction, StimulusRecord, StimulusSample,
    StimulusShape, StimulusSink, StimulusSpacing,
};

use crate::board::Board;

/// At 125 MHz.
const NS_PER_CYCLE: u64 = 8;
/// The host looks every 40 µs.
const TURN_CYCLES: u64 = 5_000;
/// What the host is given to read the line.
const PATIENCE_NS: i64 = 20_000_000_000;

#[derive(Default)]
struct Given(Vec<StimulusSample>);

impl StimulusSink for Given {
    fn begin(&mut self, tick: TimeBase, _: u8) {
        assert_eq!(tick.time_ns(1), 16);
    }
    fn sample(&mut self, channel: u8, sample: StimulusSample) {
        assert_eq!(channel, 0);
        self.0.push(sample);
    }
    fn progress(&mut self, _: &StimulusProgress) {}
}

/// What happens to bytes for the host, by how many came before.
type Weather = fn(usize, u8) -> Option<u8>;

fn measured(
    board: &mut Board,
    shape: StimulusShape,
    streaming: Streaming,
    weather: Weather,
) -> (Result<StimulusRecord, BoxRefusal>, Given) {
    let plan = StimulusPlan {
        period_ns: 100_000,
        duration_ns: 40_000_000,
        channels: 1,
        shape,
        spacing: StimulusSpacing::Even,
        deadline_ns: None,
    };
    let now = |board: &Board| i64::try_from(board.now * NS_PER_CYCLE).expect("small");
    let begun = now(board);
    let mut given = Given::default();
    let mut session = BoxSession::begin("uart".to_owned(), plan, streaming, begun);
    let mut came = 0;
    while !session.is_over() {
        assert!(now(board) - begun < PATIENCE_NS, "it comes to no end");
        let out = session.outgoing().to_vec();
        session.sent(out.len());
        let back = board.beside(&out, TURN_CYCLES);
        let mut read = Vec::new();
        for byte in back {
            read.extend(weather(came, byte));
            came += 1;
        }
        session.take(&read, now(board), &mut given);
        session.at(now(board), &mut given);
    }
    (session.finish(), given)
}

/// A machine that copies the level after 20 to 60 µs, and the cycles that it took.
fn answering() -> (Rc<RefCell<Vec<u64>>>, Option<Board>) {
    let delays = Rc::new(RefCell::new(Vec::new()));
    let told = Rc::clone(&delays);
    let board = Board::on(Box::new(move |pulse, level| {
        // Even numbers of cycles are whole ticks.
        let delay = 2_500 + pulse * 7_919 % 2_500 * 2;
        told.borrow_mut().push(delay);
        vec![(delay, level)]
    }));
    (delays, board)
}

#[test]
fn a_session_with_the_firmware_knows_every_pulse_to_the_tick() {
    let (delays, Some(mut board)) = answering() else { return };
    for streaming in [Streaming::Samples, Streaming::Cells] {
        delays.borrow_mut().clear();
        board.restart_pulses();
        let (record, given) =
            measured(&mut board, StimulusShape::Toggle, streaming, |_, b| Some(b));
        let record = record.expect("measured");
        assert_eq!(record.end, StimulusEnd::Whole);
        let channel = &record.channels[0];
        let counters = channel.counters;
        assert!((380..=420).contains(&counters.sent), "{counters:?}");
        // The last pulse may have been open.
        let in_flight = u64::from(channel.in_flight.is_some());
        assert_eq!(counters.answered + in_flight, counters.sent, "{counters:?}");
        assert_eq!((counters.unanswered, counters.late, channel.lost), (0, Some(0), 0));
        let answers = given.0.iter().filter_map(|sample| match sample.reaction {
            StimulusReaction::Answered(ticks) => Some((sample.number, ticks)),
            _ => None,
        });
        let delays = delays.borrow();
        for (number, ticks) in answers {
            let truth = delays[usize::try_from(number).expect("few")] / 2;
            assert_eq!(ticks, truth, "pulse {number}");
        }
        match streaming {
            Streaming::Samples => assert_eq!(given.0.len() as u64, counters.sent),
            Streaming::Cells => {
                let cells: u64 = channel.cells.answered.iter().map(|cell| cell.count).sum();
                assert_eq!((cells, given.0.len()), (counters.answered, 0));
            }
        }
    }
}

#[test]
fn over_a_line_that_loses_and_flips_bytes_nothing_is_invented() {
    let (delays, Some(mut board)) = answering() else { return };
    let weather: Weather = |came, byte| match came % 2_003 {
        900 => None,
        1_700 => Some(byte ^ 4),
        _ => Some(byte),
    };
    board.restart_pulses();
    let (record, given) = measured(&mut board, StimulusShape::Toggle, Streaming::Samples, weather);
    let record = record.expect("measured");
    assert_eq!((&record.end, record.channels[0].lost), (&StimulusEnd::Whole, 0));
    assert!(record.link.damaged > 0);
    let delays = delays.borrow();
    for sample in &given.0 {
        if let StimulusReaction::Answered(ticks) = sample.reaction {
            assert_eq!(ticks, delays[usize::try_from(sample.number).expect("few")] / 2);
        }
    }
    let cells = record.channels[0].cells.answered.iter().map(|cell| cell.count).sum::<u64>();
    assert!(cells > 0, "samples were lost, and are known to their cells");
    assert_eq!(given.0.len() as u64 + cells, record.channels[0].counters.sent);
}

#[test]
fn a_check_over_a_wire_is_well() {
    let Some(mut board) = Board::on(Box::new(|_, level| vec![(0, level)])) else { return };
    // As on a chip.
    board.synchronise(2);
    let begun = board.now * NS_PER_CYCLE;
    let mut check = BoxCheck::begin(1, 300_000_000, i64::try_from(begun).expect("small"));
    while !check.is_over() {
        let out = check.outgoing().to_vec();
        check.sent(out.len());
        let back = board.beside(&out, TURN_CYCLES);
        let now = i64::try_from(board.now * NS_PER_CYCLE).expect("small");
        check.take(&back, now);
        check.at(now);
    }
    let report = check.finish().expect("checked");
    assert_eq!(report.refusals(), Vec::<String>::new(), "{report:?}");
    let drift = report.drift.expect("a drift");
    assert!((drift.least_ppb..=drift.most_ppb).contains(&0), "{drift:?}");
}
