// SPDX-License-Identifier: MIT OR Apache-2.0
//! Captures written for tests, by code that shares nothing with the readers.

use std::io::Write;

use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};
use tailbound_box::{
    Capture, CaptureError, CaptureFormat, CaptureSummary, Edge, SampleRate, TimeBase, Wiring,
};

/// All that a capture gives.
#[derive(Debug, PartialEq)]
pub(crate) struct Read {
    pub(crate) edges: Vec<Edge>,
    pub(crate) summary: CaptureSummary,
    pub(crate) base: TimeBase,
}

pub(crate) fn wiring(stimulus: &str, answer: &str) -> Wiring {
    Wiring { stimulus: stimulus.to_owned(), answer: answer.to_owned() }
}

/// Reads `bytes`, handed over in pieces of `size`.
pub(crate) fn read_in(
    format: CaptureFormat,
    wiring: Option<Wiring>,
    rate: Option<SampleRate>,
    bytes: &[u8],
    size: usize,
) -> Result<Read, CaptureError> {
    let mut capture = Capture::new(format, wiring, rate);
    let (mut held, mut edges) = (Vec::new(), Vec::new());
    let mut pieces = bytes.chunks(size.max(1));
    loop {
        let mut out = Vec::new();
        let used = capture.decode(&held, &mut out)?;
        held.drain(..used);
        let full = out.len() >= 1 << 15;
        edges.append(&mut out);
        if full {
            continue;
        }
        let Some(piece) = pieces.next() else { break };
        held.extend_from_slice(piece);
    }
    let summary = capture.finish(&held, &mut edges)?;
    Ok(Read { edges, summary, base: capture.time_base().expect("edges have times") })
}

/// Reads `bytes` at once, its lines being `D0` and `D1`.
pub(crate) fn read(format: CaptureFormat, bytes: &[u8]) -> Result<Read, CaptureError> {
    read_in(format, Some(wiring("D0", "D1")), None, bytes, 1 << 20)
}

/// Samples of two lines, D0 in bit 0: pulses every `period`, answered after each delay, both high for `width`.
pub(crate) fn samples(period: usize, width: usize, delays: &[usize]) -> Vec<u8> {
    let mut all = vec![0u8; period * (delays.len() + 1)];
    for (k, delay) in delays.iter().enumerate() {
        let at = period / 2 + k * period;
        all[at..at + width].iter_mut().for_each(|s| *s |= 1);
        all[at + delay..at + delay + width].iter_mut().for_each(|s| *s |= 2);
    }
    all
}

/// A member of a zip archive.
pub(crate) struct Member<'a> {
    pub(crate) name: &'a str,
    pub(crate) data: &'a [u8],
    pub(crate) deflated: bool,
    /// Sizes and checksum stand behind the data.
    pub(crate) behind: bool,
}

impl<'a> Member<'a> {
    pub(crate) fn new(name: &'a str, data: &'a [u8]) -> Self {
        Self { name, data, deflated: true, behind: false }
    }
}

/// A zip archive with its directory.
pub(crate) fn zip(members: &[Member<'_>]) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for m in members {
        let mut crc = Crc::new();
        crc.update(m.data);
        let packed = if m.deflated {
            let mut packer = DeflateEncoder::new(Vec::new(), Compression::default());
            packer.write_all(m.data).unwrap();
            packer.finish().unwrap()
        } else {
            m.data.to_vec()
        };
        let offset = out.len() as u32;
        let sizes = [crc.sum(), packed.len() as u32, m.data.len() as u32];
        let stated = if m.behind { [0; 3] } else { sizes };
        let head = |stated: [u32; 3]| {
            let mut h = Vec::new();
            let flags = if m.behind { 8u16 } else { 0 };
            for half in [20u16, flags, if m.deflated { 8 } else { 0 }, 0, 0] {
                h.extend(half.to_le_bytes());
            }
            stated.iter().for_each(|s| h.extend(s.to_le_bytes()));
            h.extend((m.name.len() as u16).to_le_bytes());
            h.extend(0u16.to_le_bytes());
            h
        };
        out.extend(b"PK\x03\x04");
        out.extend(head(stated));
        out.extend(m.name.bytes());
        out.extend(&packed);
        if m.behind {
            out.extend(b"PK\x07\x08");
            sizes.iter().for_each(|s| out.extend(s.to_le_bytes()));
        }
        directory.extend(b"PK\x01\x02\x14\0");
        directory.extend(head(sizes));
        directory.extend([0; 10]);
        directory.extend(offset.to_le_bytes());
        directory.extend(m.name.bytes());
    }
    let (at, length) = (out.len() as u32, directory.len() as u32);
    out.extend(&directory);
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend((members.len() as u16).to_le_bytes());
    out.extend((members.len() as u16).to_le_bytes());
    out.extend(length.to_le_bytes());
    out.extend(at.to_le_bytes());
    out.extend([0, 0]);
    out
}

pub(crate) fn metadata(rate: &str, unit: usize) -> String {
    format!(
        "[global]\nsigrok version=0.5.2\n\n[device 1]\ncapturefile=logic-1\ntotal probes={}\nsamplerate={rate}\ntotal analog=0\nprobe1=D0\nprobe2=D1\nunitsize={unit}\n",
        unit * 8
    )
}

/// A session of sigrok with its samples in chunks.
pub(crate) fn session(rate: &str, samples: &[u8], chunk: usize) -> Vec<u8> {
    let text = metadata(rate, 1);
    let chunks: Vec<(String, &[u8])> = samples
        .chunks(chunk)
        .enumerate()
        .map(|(i, data)| (format!("logic-1-{}", i + 1), data))
        .collect();
    let mut members = vec![Member { deflated: false, ..Member::new("version", b"2") }];
    members.push(Member::new("metadata", text.as_bytes()));
    members.extend(chunks.iter().map(|(name, data)| Member::new(name, data)));
    zip(&members)
}

/// The samples as VCD, a tick of `scale` each.
pub(crate) fn vcd(scale: &str, ticks_per_sample: u64, samples: &[u8]) -> String {
    let mut text = format!(
        "$date today $end\n$timescale {scale} $end\n$scope module top $end\n$var wire 1 ! D0 $end\n$var wire 1 \" D1 $end\n$var wire 8 # bus [7:0] $end\n$var real 64 $ volts $end\n$upscope $end\n$enddefinitions $end\n"
    );
    let mut before = None;
    for (k, s) in samples.iter().enumerate() {
        if before == Some(*s) {
            continue;
        }
        text.push_str(&format!("#{}\n", k as u64 * ticks_per_sample));
        for (bit, code) in [(1, '!'), (2, '"')] {
            if before.is_none_or(|b| (b ^ s) & bit != 0) {
                text.push_str(&format!("{}{code}\n", u8::from(s & bit != 0)));
            }
        }
        text.push_str("b1010 #\nr1.5 $\n");
        before = Some(*s);
    }
    text.push_str(&format!("#{}\n", samples.len() as u64 * ticks_per_sample));
    text
}

/// The samples as CSV of sigrok-cli, a row each.
pub(crate) fn sigrok_csv(rate: &str, samples: &[u8]) -> String {
    let mut text = format!(
        "; CSV generated by libsigrok 0.5.2\n; from a test\n; Channels (2/8): D0, D1\n; Samplerate: {rate}\nlogic,logic\n"
    );
    for s in samples {
        text.push_str(&format!("{},{}\n", s & 1, (s >> 1) & 1));
    }
    text
}

/// The samples as CSV of Saleae Logic, `ns` each.
pub(crate) fn saleae_csv(ns: u64, samples: &[u8]) -> String {
    let mut text = "Time [s],D0,D1\n".to_owned();
    let mut before = None;
    for (k, s) in samples.iter().enumerate() {
        if before != Some(*s) {
            let t = k as u64 * ns;
            let (whole, rest) = (t / 1_000_000_000, t % 1_000_000_000);
            text.push_str(&format!("{whole}.{rest:09},{},{}\n", s & 1, (s >> 1) & 1));
        }
        before = Some(*s);
    }
    text
}
