// SPDX-License-Identifier: MIT OR Apache-2.0
//! latmon's protocol: frames written by hand from its layout, and both roles against each other.

use proptest::prelude::*;
use tailbound_box::stimulus::{CellCount, SourceLimit, StimulusEnd, StimulusRecord};
use tailbound_box::{
    LATMON_CELLS_MAX, LatmonCells, LatmonClient, LatmonCounting, LatmonFault, LatmonRequest,
    LatmonSecond, LatmonSpan, RequestDecoder, RequestFault, RequestMessage,
};

fn request(period_us: u32, cells: u32) -> LatmonRequest {
    LatmonRequest::new(period_us, cells).expect("within the limits")
}

/// Messages of a stream that comes in pieces of `piece` bytes.
fn messages(bytes: &[u8], piece: usize) -> Vec<RequestMessage> {
    let (mut decoder, mut told) = (RequestDecoder::default(), Vec::new());
    for part in bytes.chunks(piece) {
        decoder.push(part, &mut |message| told.push(message));
    }
    told
}

#[test]
fn requests_as_latmus_writes_them() {
    // 1000 µs and 200 cells; 0 and 0.
    let bytes = [0, 0, 0x03, 0xe8, 0, 0, 0, 200, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(request(1000, 200).bytes(), bytes[..8]);
    assert_eq!(LatmonRequest::STOP, bytes[8..]);
    for piece in [1, 3, 8, 16] {
        let right = [RequestMessage::Start(request(1000, 200)), RequestMessage::Stop];
        assert_eq!(messages(&bytes, piece), right);
    }
}

#[test]
fn what_a_box_cannot_do_is_refused_and_what_follows_is_read() {
    let wrong = [
        [0, 0x0f, 0x42, 0x41, 0, 0, 0, 1],
        [0, 0, 0, 100, 0, 0, 0x03, 0xe9],
        [0, 0, 0, 100, 0, 0, 0x03, 0xe8],
    ];
    let right = [
        RequestMessage::Refused(RequestFault::Period(1_000_001)),
        RequestMessage::Refused(RequestFault::Cells(1001)),
        RequestMessage::Start(request(100, LATMON_CELLS_MAX)),
    ];
    assert_eq!(messages(&wrong.concat(), 5), right);
    let mut decoder = RequestDecoder::default();
    decoder.push(&[0, 0, 0], &mut |_| panic!("three bytes are no request"));
    assert_eq!(decoder.end(), Err(RequestFault::Short(3)));
}

/// Two seconds and an end, as the layout says: sum high and low, least, greatest, overruns, samples; three cells.
const BY_HAND: [u8; 84] = [
    0, 0, 0, 1, 0, 0, 0, 10, 0, 0, 0, 5, 0x3b, 0x9a, 0xca, 0, 0, 0, 0, 2, 0, 0, 0, 5, //
    0, 0, 0, 0, 0, 0, 0x0b, 0xb8, 0, 0, 0x0b, 0xb8, 0, 0, 0x0b, 0xb8, 0, 0, 0, 0, 0, 0, 0,
    1, //
    0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, //
    0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 4,
];

#[test]
fn frames_written_by_hand() {
    for piece in [1, 7, 24, 84] {
        let mut client = LatmonClient::new(request(1_000_000, 3));
        for (k, part) in BY_HAND.chunks(piece).enumerate() {
            assert!(!client.is_complete(), "{k}");
            client.push(part).expect("sound");
        }
        assert!(client.is_complete());
        let record = client.into_record();
        let first = LatmonSecond {
            sum_ns: (1 << 32) + 10,
            min_ns: 5,
            max_ns: 1_000_000_000,
            overruns: 2,
            samples: 5,
        };
        let second =
            LatmonSecond { sum_ns: 3000, min_ns: 3000, max_ns: 3000, overruns: 0, samples: 1 };
        assert_eq!(record.seconds(), [first, second]);
        assert_eq!((record.samples(), record.overruns()), (6, 9), "those of the last frame too");
        assert_eq!(record.extremes_ns(), Some((5, 1_000_000_000)));
        assert_eq!(record.sum_ns(), (1 << 32) + 3010);
        assert_eq!(record.cells(), LatmonCells::Whole(&[1, 0, 260]));
        assert_eq!(record.warm_up_samples(), 255);
    }
    let mut client = LatmonClient::new(request(1_000_000, 3));
    client.push(&BY_HAND).expect("sound");
    assert_eq!(client.push(&[0; 2]), Err(LatmonFault::After(2)));
}

#[test]
fn a_stream_that_ends_anywhere_keeps_what_came() {
    for n in 0..BY_HAND.len() {
        let mut client = LatmonClient::new(request(1_000_000, 3));
        client.push(BY_HAND.get(..n).unwrap_or_default()).expect("sound");
        assert!(!client.is_complete());
        let record = client.record();
        assert_eq!(record.seconds().len(), (n / 24).min(2));
        assert_eq!(record.has_ended(), n >= 72);
        assert_eq!(record.cells(), LatmonCells::Cut);
    }
}

#[test]
fn frames_that_cannot_be_are_refused_and_what_came_before_stands() {
    let sound = LatmonSecond { sum_ns: 30, min_ns: 10, max_ns: 20, overruns: 0, samples: 2 };
    for (wrong, words) in [
        (LatmonSecond { min_ns: 21, ..sound }, "least"),
        (LatmonSecond { sum_ns: 41, ..sound }, "sum"),
        (LatmonSecond { sum_ns: 19, ..sound }, "sum"),
        (LatmonSecond { samples: 0, ..sound }, "no samples"),
    ] {
        let mut client = LatmonClient::new(request(100, 0));
        client.push(&sound.bytes()).expect("sound");
        let fault = client.push(&wrong.bytes()).expect_err(words).to_string();
        assert!(fault.contains("frame 2") && fault.contains(words), "{fault}");
        assert_eq!(client.record().seconds(), [sound]);
    }
}

#[test]
fn an_answer_later_than_the_period_makes_zephyrs_cells_useless() {
    // 101 µs of a period of 100 µs: Zephyr counts it in cell 1.
    let late =
        LatmonSecond { sum_ns: 101_000, min_ns: 101_000, max_ns: 101_000, overruns: 1, samples: 1 };
    let mut client = LatmonClient::new(request(100, 2));
    client.push(&late.bytes()).expect("sound");
    client.push(&LatmonCounting::nothing()).expect("the end");
    client.push(&[0, 0, 0, 0, 0, 0, 0, 1]).expect("cells");
    assert!(client.is_complete());
    assert_eq!(client.record().cells(), LatmonCells::Folded);
    // And cells that have less than the frames are of something else.
    let mut client = LatmonClient::new(request(200, 2));
    client.push(&late.bytes()).expect("sound");
    client.push(&LatmonCounting::nothing()).expect("the end");
    client.push(&[0; 8]).expect("cells");
    assert_eq!(client.record().cells(), LatmonCells::TooFew { cells: 0, frames: 1 });
}

#[test]
fn our_box_counts_late_answers_where_they_belong() {
    let mut counting = LatmonCounting::new(request(100, 300));
    for ns in [0, 999, 1000, 100_999, 101_000, 200_999, 201_000, 299_000, 9_000_000_000] {
        counting.answered(ns);
    }
    counting.unanswered();
    // ⌊µs − 1⌋ ÷ 100 each: 1 of 101, 1 of 200, 2 of 201, 2 of 299, 89,999,999 of 9 s; and one without an answer.
    let second = counting.take_second().expect("samples");
    assert_eq!((second.samples, second.overruns), (9, 1 + 1 + 2 + 2 + 89_999 + 1));
    assert_eq!((second.min_ns, second.max_ns), (0, u32::MAX));
    counting.unanswered();
    assert_eq!(counting.take_second(), None, "a frame without samples would be the end");
    let mut client = LatmonClient::new(request(100, 300));
    client.push(&second.bytes()).expect("sound");
    client.push(&counting.trailer()).expect("sound");
    assert!(client.is_complete());
    assert_eq!(client.record().overruns(), u64::from(second.overruns) + 1);
}

fn record(request: LatmonRequest, bytes: &[u8]) -> StimulusRecord {
    let mut client = LatmonClient::new(request);
    client.push(bytes).expect("sound");
    let span = LatmonSpan { elapsed_ns: 5, planned_ns: 6 };
    client.into_record().stimulus("there", span, StimulusEnd::Whole)
}

fn says(record: &StimulusRecord, words: &str) -> bool {
    record.limits.iter().any(|limit| match limit {
        SourceLimit::Stated(sentence) => sentence.contains(words),
        _ => false,
    })
}

#[test]
fn the_record_has_each_answer_once_and_never_forgets_the_tail() {
    let mut counting = LatmonCounting::new(request(2000, 5));
    for ns in [1_500, 2_500, 2_600, 900_000] {
        counting.answered(ns);
    }
    counting.unanswered();
    let of = record(request(2000, 5), &counting.trailer());
    let [channel] = of.channels.as_slice() else { panic!("one channel") };
    let cell = |least_ticks, most_ticks, count| CellCount { least_ticks, most_ticks, count };
    let right =
        [cell(1000, Some(1999), 1), cell(2000, Some(2999), 2), cell(4000, Some(900_000), 1)];
    assert_eq!(channel.cells.answered, right);
    assert_eq!(channel.cells.at_least, [cell(1_000_000, None, 1)]);
    let c = channel.counters;
    assert_eq!((c.sent, c.answered, c.unanswered, channel.lost), (5, 4, 1, 0));
    assert_eq!(channel.extremes, Some((1_500, 900_000)));
    assert!(of.limits.contains(&SourceLimit::GivesUp { after_ticks: 1_000_000 }));
    assert!(of.limits.contains(&SourceLimit::WaitsForAnswer));
    assert!(says(&of, "everything from 4 µs on") && says(&of, "Overruns: 1."));
}

#[test]
fn what_cannot_be_believed_is_not_in_the_record_and_is_said() {
    // By hand: its warm-up makes the extremes those of the frames alone, and the first is a late answer.
    let warm = record(request(2_000_000 / 2, 3), &BY_HAND);
    let [channel] = warm.channels.as_slice() else { panic!("one channel") };
    assert_eq!((channel.counters.answered, channel.extremes), (261, None));
    let cell = |least_ticks, most_ticks, count| CellCount { least_ticks, most_ticks, count };
    // The frames' latest answer, 1 s, is one of the last cell.
    let exact = cell(1_000_000_000, Some(1_000_000_000), 1);
    assert_eq!(channel.cells.answered, [cell(0, Some(999), 1), cell(2000, None, 259), exact]);
    assert!(says(&warm, "255 answers of latmon's warm-up"));
    // Later than the period: two overruns that may be anything, and no cells.
    let late =
        LatmonSecond { sum_ns: 350_000, min_ns: 350_000, max_ns: 350_000, overruns: 5, samples: 1 };
    let bytes = [&late.bytes()[..], &LatmonCounting::nothing(), &[0, 0, 0, 1]].concat();
    let folded = record(request(100, 1), &bytes);
    let [channel] = folded.channels.as_slice() else { panic!("one channel") };
    assert_eq!((channel.counters.answered, channel.lost, channel.counters.unanswered), (1, 0, 0));
    assert_eq!(channel.cells.answered, [cell(350_000, None, 1)]);
    assert_eq!(channel.extremes, Some((350_000, 350_000)));
    assert!(says(&folded, "cannot be used") && says(&folded, "5 of the overruns"));
    let cut = record(request(1_000_000, 3), &BY_HAND[..50]);
    assert!(says(&cut, "did not come"));
    let all = cell(5, None, 6);
    assert_eq!(cut.channels.first().map(|c| c.cells.answered.as_slice()), Some(&[all][..]));
}

proptest! {
    #[test]
    fn both_roles_agree(
        latencies in prop::collection::vec(0u64..900_000, 0..200),
        unanswered in 0u32..5,
        cells in 0u32..=LATMON_CELLS_MAX,
        frames_every in 1usize..50,
        piece in 1usize..100,
    ) {
        let request = request(1000, cells);
        let mut counting = LatmonCounting::new(request);
        let mut stream = Vec::new();
        for (k, ns) in latencies.iter().enumerate() {
            counting.answered(*ns);
            if k % frames_every == 0 && let Some(second) = counting.take_second() {
                stream.extend(second.bytes());
            }
        }
        (0..unanswered).for_each(|_| counting.unanswered());
        stream.extend(counting.trailer());
        let mut client = LatmonClient::new(request);
        for part in stream.chunks(piece) {
            prop_assert!(!client.is_complete());
            client.push(part).expect("sound");
        }
        prop_assert!(client.is_complete());
        let record = client.into_record();
        prop_assert_eq!(record.samples(), latencies.len() as u64);
        prop_assert_eq!(record.overruns(), u64::from(unanswered));
        prop_assert_eq!(record.sum_ns(), latencies.iter().map(|ns| u128::from(*ns)).sum::<u128>());
        let least = latencies.iter().min().zip(latencies.iter().max());
        let shown = record.extremes_ns().map(|(a, b)| (u64::from(a), u64::from(b)));
        prop_assert_eq!(shown, least.map(|(a, b)| (*a, *b)));
        let mut right = vec![0u32; cells as usize];
        for ns in &latencies {
            let last = right.len().saturating_sub(1);
            if let Some(count) = right.get_mut((ns / 1000).min(last as u64) as usize) {
                *count += 1;
            }
        }
        match record.cells() {
            LatmonCells::Whole(counts) => prop_assert_eq!(counts, right),
            other => prop_assert_eq!(other, LatmonCells::NotAsked),
        }
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..500), cells in 0u32..=20) {
        let mut client = LatmonClient::new(request(1000, cells));
        drop(client.push(&bytes));
        let mut decoder = RequestDecoder::default();
        decoder.push(&bytes, &mut |_| {});
    }
}
