// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is sent arrives; what is damaged never becomes a frame; nothing panics.

use proptest::collection::vec;
use proptest::prelude::*;
use tailbound_wire::{
    BoxFault, Chip, Counters, Decoder, FRAME_MAX, FrameError, Hello, ListPart, Message,
    PAYLOAD_MAX, PulseRecord, Reaction, SAMPLES_MAX, SampleBatch, Set, Shelf, Spacing, Stimulus,
    encode,
};

/// Kind, sequence, payload.
type Owned = (u8, u16, Vec<u8>);

fn encoded(kind: u8, sequence: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = [0; FRAME_MAX];
    let length = encode(kind, sequence, payload, &mut bytes).expect("it fits");
    bytes[..length].to_vec()
}

fn decoded(bytes: &[u8]) -> (Vec<Owned>, Decoder) {
    let mut decoder = Decoder::new();
    let mut frames = Vec::new();
    for &byte in bytes {
        if let Some(frame) = decoder.take(byte) {
            frames.push((frame.kind, frame.sequence, frame.payload.to_vec()));
        }
    }
    (frames, decoder)
}

fn payload() -> impl Strategy<Value = Vec<u8>> {
    // Many zeros and ones: what the stuffing is about.
    vec(prop_oneof![Just(0_u8), Just(1), any::<u8>()], 0..=PAYLOAD_MAX)
}

/// A change of a stream.
#[derive(Debug, Clone)]
enum Damage {
    Flip(prop::sample::Index, u8),
    Lose(prop::sample::Index, usize),
    Insert(prop::sample::Index, Vec<u8>),
    Repeat(prop::sample::Index, usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    let place = any::<prop::sample::Index>;
    prop_oneof![
        (place(), 1..=255_u8).prop_map(|(at, bits)| Damage::Flip(at, bits)),
        (place(), 1..400_usize).prop_map(|(at, n)| Damage::Lose(at, n)),
        (place(), vec(any::<u8>(), 1..20)).prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
        (place(), 1..20_usize).prop_map(|(at, n)| Damage::Repeat(at, n)),
    ]
}

fn apply(bytes: &mut Vec<u8>, damage: &Damage) {
    if bytes.is_empty() {
        return;
    }
    match damage {
        Damage::Flip(at, bits) => {
            let at = at.index(bytes.len());
            bytes[at] ^= bits;
        }
        Damage::Lose(at, n) => {
            let at = at.index(bytes.len());
            bytes.drain(at..bytes.len().min(at + n));
        }
        Damage::Insert(at, more) => {
            let at = at.index(bytes.len());
            bytes.splice(at..at, more.iter().copied());
        }
        Damage::Repeat(at, n) => {
            let at = at.index(bytes.len());
            let again = bytes[at..bytes.len().min(at + n)].to_vec();
            bytes.splice(at..at, again);
        }
    }
}

proptest! {
    #[test]
    fn frames_arrive_as_they_were_sent(sent in vec((any::<u8>(), payload()), 0..8), first in any::<u16>()) {
        let sent: Vec<Owned> = (0..).zip(sent).map(|(i, (kind, payload))| (kind, first.wrapping_add(i), payload)).collect();
        let bytes: Vec<u8> = sent.iter().flat_map(|(k, s, p)| encoded(*k, *s, p)).collect();
        let (frames, decoder) = decoded(&bytes);
        prop_assert_eq!(frames, sent);
        prop_assert_eq!(decoder.losses(), tailbound_wire::Losses::default());
    }

    #[test]
    fn damage_never_gives_a_frame_that_was_not_sent(
        sent in vec((any::<u8>(), payload()), 1..6),
        damages in vec(damage(), 1..6),
    ) {
        let sent: Vec<Owned> = (0..).zip(sent).map(|(i, (kind, payload))| (kind, i, payload)).collect();
        let mut bytes: Vec<u8> = sent.iter().flat_map(|(k, s, p)| encoded(*k, *s, p)).collect();
        for damage in &damages {
            apply(&mut bytes, damage);
        }
        bytes.extend(encoded(7, 100, b"the line is well again"));
        let (frames, _) = decoded(&bytes);
        let (last, before) = frames.split_last().expect("the last frame is whole");
        prop_assert_eq!(last, &(7, 100, b"the line is well again".to_vec()));
        for frame in before {
            prop_assert!(sent.contains(frame), "{:?}", frame);
        }
    }

    #[test]
    fn a_frame_within_a_payload_is_no_frame(inner in vec(any::<u8>(), 0..100), lost in 2..12_usize) {
        let inner = encoded(0x81, 5, &inner);
        let bytes = encoded(0x88, 6, &inner);
        let (frames, decoder) = decoded(&[&bytes[lost..], &[0][..]].concat());
        prop_assert!(frames.is_empty(), "{:?}", frames);
        prop_assert!(decoder.losses().damaged <= 1);
    }

    #[test]
    fn any_bytes_are_survived(bytes in vec(prop_oneof![Just(0_u8), any::<u8>()], 0..2_000), kind in any::<u8>(), payload in payload()) {
        decoded(&bytes);
        let _ = Message::decode(kind, &payload);
    }

    #[test]
    fn what_is_read_is_written_alike(kind in prop::sample::select(vec![1_u8, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0x81, 0x82, 0x85, 0x86, 0x87, 0x88, 0x8A, 0x8F]), payload in vec(prop_oneof![0..4_u8, any::<u8>()], 0..90)) {
        if let Ok(message) = Message::decode(kind, &payload) {
            prop_assert_eq!(message.kind(), kind);
            let mut bytes = [0; FRAME_MAX];
            let length = message.encode(3, &mut bytes).expect("it was a frame");
            let (frames, _) = decoded(&bytes[..length]);
            prop_assert_eq!(frames, vec![(kind, 3, payload)]);
        }
    }
}

#[test]
fn every_kind_of_message_arrives() {
    let outcome = PulseRecord { number: 7, sent_ticks: 1 << 40, reaction: Reaction::Late(99) };
    let piece = ListPart { channel: 1, shelf: Shelf::AtLeast, first: 1_700 };
    let set = Set {
        channels: 1,
        stimulus: Stimulus::Pulse,
        period_ticks: 6_250,
        spacing: Spacing::Random(9),
        width_ticks: 625,
    };
    let hello = Hello {
        firmware: [0, 1, 2],
        chip: Chip::Rp2350,
        channels: 2,
        tick_hz: 75_000_000,
        pins: [2, 3],
        loop_back_ticks: 1,
    };
    let samples = SampleBatch { channel: 0, length: 10, outcomes: [outcome; SAMPLES_MAX] };
    let messages = [
        Message::AskHello,
        Message::Set(set),
        Message::Start,
        Message::Stop,
        Message::AskCounters(1),
        Message::AskCells(piece),
        Message::AskWorst(piece),
        Message::Stream,
        Message::StreamEnd,
        Message::AskLoopBack(0),
        Message::Hello(hello),
        Message::Done(2),
        Message::Counters(1, Counters { sent: u64::MAX, dropped: 3, ..Counters::new() }),
        Message::Samples(samples),
        Message::Fault(3, BoxFault::NotSet),
    ];
    let mut bytes = [0; FRAME_MAX];
    for message in messages {
        let length = message.encode(1, &mut bytes).expect("it fits");
        let (frames, _) = decoded(&bytes[..length]);
        let [(kind, 1, payload)] = &frames[..] else { panic!("{message:?}: {frames:?}") };
        assert_eq!(Message::decode(*kind, payload), Ok(message));
    }
}

#[test]
fn what_is_missing_is_counted() {
    let frames = [1, 2, 5, 6, 6].map(|sequence| encoded(0x82, sequence, &[3]));
    let mut bytes = frames.concat();
    let flipped = frames[0].len() + 4;
    bytes[flipped] ^= 4;
    let (read, decoder) = decoded(&bytes);
    assert_eq!(read.len(), 4);
    let losses = decoder.losses();
    assert_eq!((losses.damaged, losses.missing, losses.foreign), (1, 3, 0));
}

#[test]
fn a_payload_or_buffer_of_the_wrong_size_is_refused() {
    let mut bytes = [0; FRAME_MAX];
    assert_eq!(encode(1, 0, &[0; PAYLOAD_MAX + 1], &mut bytes), Err(FrameError::PayloadTooLong));
    assert_eq!(encode(1, 0, &[0; 10], &mut bytes[..20]), Err(FrameError::BufferTooShort));
    assert_eq!(encode(1, 0, &[1; PAYLOAD_MAX], &mut bytes), Ok(FRAME_MAX));
}
