// SPDX-License-Identifier: MIT OR Apache-2.0
//! A second emulator, by others: both tell the same of the same delays, to the tick.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::board::{Board, elf};
use tailbound_wire::{Decoder, FRAME_MAX, Message, PulseRecord, Set, Spacing, Stimulus};

const SET: Set = Set {
    channels: 1,
    stimulus: Stimulus::Toggle,
    period_ticks: 6_250,
    spacing: Spacing::Random(11),
    width_ticks: 0,
};

const PULSES: usize = 120;

/// In cycles: odd ones as well, one behind the next pulse, two pulses without an answer.
fn delays() -> Vec<Option<u64>> {
    let mut delays: Vec<Option<u64>> =
        (0..PULSES as u64 + 8).map(|n| Some(n * 37 % 5_000)).collect();
    delays[40] = Some(14_000);
    delays[41] = Some(9_000);
    (delays[70], delays[71]) = (None, None);
    delays
}

fn frame(sequence: u16, message: &Message) -> String {
    let mut bytes = [0; FRAME_MAX];
    let length = message.encode(sequence, &mut bytes).expect("it fits");
    bytes[..length].iter().map(|byte| format!("{byte:02x}")).collect()
}

fn records(samples: &[tailbound_wire::SampleBatch]) -> BTreeMap<u64, PulseRecord> {
    let all = samples.iter().flat_map(|s| s.outcomes[..usize::from(s.length)].to_vec());
    all.map(|record| (record.number, record)).take(PULSES).collect()
}

/// Ends with the test, however that ends.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What the second emulator's box sent; `None` where it cannot be asked.
fn second() -> Option<Vec<u8>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    if !here.join("node_modules/rp2040js").exists() {
        eprintln!("skipped: no rp2040js: npm ci in firmware/proof");
        return None;
    }
    let asks = [Message::Stream, Message::Set(SET), Message::Start];
    let asks: Vec<String> =
        (0..).zip(&asks).map(|(i, ask)| format!("\"{}\"", frame(i, ask))).collect();
    let delays: Vec<String> =
        delays().iter().map(|d| d.map_or("null".to_owned(), |d| d.to_string())).collect();
    let order = format!(
        "{{\"elf\":\"{}\",\"asks\":[{}],\"stop\":\"{}\",\"delays\":[{}],\"pulses\":{PULSES}}}",
        elf().display(),
        asks.join(","),
        frame(3, &Message::Stop),
        delays.join(",")
    );
    #[expect(clippy::disallowed_methods, reason = "waited for below")]
    let node = Command::new("node")
        .arg("second-opinion.mjs")
        .current_dir(here)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(node) = node else {
        eprintln!("skipped: there is no node");
        return None;
    };
    let mut node = Guard(node);
    node.0.stdin.take().expect("piped").write_all(order.as_bytes()).expect("it reads");
    let mut said = String::new();
    std::io::Read::read_to_string(&mut node.0.stdout.take().expect("piped"), &mut said)
        .expect("text");
    assert!(node.0.wait().expect("it ends").success());
    let bytes = said
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).expect("text"), 16).expect("hex"));
    Some(bytes.collect())
}

#[test]
fn two_emulators_tell_the_same() {
    let delays = delays();
    let machine: crate::board::Machine = Box::new(move |pulse, level| {
        delays.get(pulse as usize).copied().flatten().map(|at| (at, level)).into_iter().collect()
    });
    let Some(mut board) = Board::on(machine) else { return };
    board.ask(&Message::Stream);
    board.ask(&Message::Set(SET));
    board.restart_pulses();
    board.ask(&Message::Start);
    while board.pulses() < PULSES as u64 {
        board.run(1_000);
    }
    board.run(20_000);
    board.ask(&Message::Stop);
    board.run(500_000);
    let first = records(&board.samples);
    let Some(bytes) = second() else { return };
    let mut decoder = Decoder::new();
    let mut samples = Vec::new();
    for byte in bytes {
        let Some(frame) = decoder.take(byte) else { continue };
        if let Ok(Message::Samples(batch)) = Message::decode(frame.kind, frame.payload) {
            samples.push(batch);
        }
    }
    let second = records(&samples);
    assert!(first.len() >= PULSES - 2, "{}", first.len());
    for number in 0..PULSES as u64 - 2 {
        assert_eq!(first.get(&number), second.get(&number), "pulse {number}");
    }
}
