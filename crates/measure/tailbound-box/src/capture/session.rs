// SPDX-License-Identifier: MIT OR Apache-2.0
//! Session files of sigrok and PulseView (`.sr`): a zip archive with `metadata` and the samples in chunks `logic-1-1`,
//! `logic-1-2`, …, one bit a channel.
//!
//! Units: ticks of one sample. Source: sigrok's "File format:Sigrok/v2". Chunks are read as they stand, so
//! they must stand in their order and behind `metadata`, as sigrok writes them.

use crate::CaptureError;
use crate::capture::levels::{Levels, LineState};
use crate::capture::zip::{Archive, ArchivePart};
use crate::capture::{CaptureSummary, EDGES_MAX, Ending, RateOrigin};
use crate::channel::Wiring;
use crate::edge::{CaptureLine, Edge};
use crate::time_base::{SampleRate, TimeBase};

/// Longest description of a capture.
const METADATA_BYTES_MAX: usize = 1 << 20;
/// Most bytes of a sample: 8,192 channels.
const UNIT_BYTES_MAX: usize = 1 << 10;
const ANEW: &str = "write it anew with `sigrok-cli -i FILE -o NEW.sr`";

/// Is it one? `version` or `metadata` is its first member.
pub(crate) fn is_one(head: &[u8]) -> bool {
    let name = head.get(30..).unwrap_or_default();
    head.starts_with(b"PK\x03\x04")
        && [&b"version"[..], b"metadata"].iter().any(|first| name.starts_with(first))
}

/// What a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Member {
    Metadata,
    Samples,
    Other,
}

/// One bit of a sample.
#[derive(Clone, Copy, Debug)]
struct Bit {
    byte: usize,
    mask: u8,
}

/// What `metadata` says.
#[derive(Debug)]
struct Layout {
    rate: SampleRate,
    unit: usize,
    bits: [Bit; 2],
    samples: String,
}

/// A session file while it is read.
#[derive(Debug)]
pub(crate) struct Session {
    wiring: Option<Wiring>,
    rate: Option<SampleRate>,
    archive: Archive,
    member: Member,
    metadata: Vec<u8>,
    writer: Option<String>,
    layout: Option<Layout>,
    chunks: u64,
    /// Bytes of a sample that is not whole yet.
    torn: Vec<u8>,
    tick: i64,
    last: Option<[bool; 2]>,
    levels: Levels,
}

impl Session {
    pub(crate) fn new(wiring: Option<Wiring>, rate: Option<SampleRate>) -> Self {
        Self {
            wiring,
            rate,
            archive: Archive::new(),
            member: Member::Other,
            metadata: Vec::new(),
            writer: None,
            layout: None,
            chunks: 0,
            torn: Vec::new(),
            tick: 0,
            last: None,
            levels: Levels::default(),
        }
    }

    pub(crate) fn time_base(&self) -> Option<TimeBase> {
        self.layout.as_ref().map(|layout| layout.rate.time_base())
    }

    pub(crate) fn decode(
        &mut self,
        bytes: &[u8],
        out: &mut Vec<Edge>,
    ) -> Result<usize, CaptureError> {
        let mut used = 0;
        // Taken out, so that what it gives can be looked at by the rest.
        let mut archive = std::mem::replace(&mut self.archive, Archive::new());
        while out.len() < EDGES_MAX {
            let at = archive.at();
            let (done, part) = archive.next(bytes.get(used..).unwrap_or_default())?;
            used += done;
            match part {
                ArchivePart::Begin(name) => self.begin(&name, at)?,
                ArchivePart::Bytes(piece) => match self.member {
                    Member::Metadata if self.metadata.len() + piece.len() > METADATA_BYTES_MAX => {
                        return Err(CaptureError::byte(at, "its `metadata` is longer than 1 MiB"));
                    }
                    Member::Metadata => self.metadata.extend_from_slice(piece),
                    Member::Samples => self.samples(piece, out),
                    Member::Other => {}
                },
                ArchivePart::End if self.member == Member::Metadata => self.describe()?,
                ArchivePart::End => {}
                ArchivePart::Nothing if done == 0 => break,
                ArchivePart::Nothing => {}
            }
        }
        self.archive = archive;
        Ok(used)
    }

    fn begin(&mut self, name: &str, at: u64) -> Result<(), CaptureError> {
        self.member = Member::Other;
        if name == "metadata" {
            self.member = Member::Metadata;
            self.metadata.clear();
            return Ok(());
        }
        let samples = self.layout.as_ref().map_or("logic-1", |layout| layout.samples.as_str());
        let Some(number) = name.strip_prefix(samples) else { return Ok(()) };
        let number: Option<u64> = match number.strip_prefix('-') {
            Some(digits) => digits.parse().ok(),
            None if number.is_empty() => Some(1),
            None => return Ok(()),
        };
        if self.layout.is_none() {
            let reason = format!("its samples stand before its `metadata`: {ANEW}");
            return Err(CaptureError::byte(at, reason));
        }
        self.chunks += 1;
        if number != Some(self.chunks) {
            let reason = format!(
                "here its chunk {} of samples should stand, and `{name}` does: one is missing, or they are in another order; {ANEW}",
                self.chunks
            );
            return Err(CaptureError::byte(at, reason));
        }
        self.member = Member::Samples;
        Ok(())
    }

    /// Reads `metadata`, which is all there now.
    fn describe(&mut self) -> Result<(), CaptureError> {
        let text = String::from_utf8_lossy(&self.metadata).into_owned();
        let (mut device, mut own) = (0u32, Vec::new());
        for line in text.lines().map(str::trim) {
            device += u32::from(line.starts_with("[device"));
            if let Some((key, value)) = line.split_once('=') {
                match (device, key.trim()) {
                    (0, "sigrok version") => self.writer = Some(format!("sigrok {}", value.trim())),
                    (1, key) => own.push((key, value.trim())),
                    _ => {}
                }
            }
        }
        let value = |key: &str| own.iter().find(|(k, _)| *k == key).map(|(_, value)| *value);
        let number = |key: &str| value(key).and_then(|v| v.parse::<usize>().ok());
        let mut probes: Vec<(usize, &str)> = own
            .iter()
            .filter_map(|(key, name)| {
                let number: usize = key.strip_prefix("probe")?.parse().ok()?;
                Some((number.checked_sub(1)?, *name))
            })
            .collect();
        probes.sort_unstable_by_key(|(bit, _)| *bit);
        let names: Vec<String> = probes.iter().map(|(_, name)| (*name).to_owned()).collect();
        let chosen = Wiring::find(self.wiring.as_ref(), &names)?;
        let bits = chosen.map(|position| {
            let bit = probes.get(position).map_or(0, |(bit, _)| *bit);
            Bit { byte: bit / 8, mask: 1 << (bit % 8) }
        });
        let wide = number("total probes").unwrap_or(0).div_ceil(8);
        let unit = number("unitsize").unwrap_or(wide);
        let wrong = |reason: &str| Err(CaptureError::whole(reason));
        if unit == 0 || unit > UNIT_BYTES_MAX || bits.iter().any(|bit| bit.byte >= unit) {
            return wrong(
                "its `metadata` gives samples a size (unitsize) that cannot hold its channels: the file is damaged",
            );
        }
        let stated = value("samplerate").and_then(|rate| rate.parse().ok());
        let Some(rate) = self.rate.or(stated) else {
            return wrong("its `metadata` states no sample rate: give it with --sample-rate");
        };
        let samples = value("capturefile").unwrap_or("logic-1").to_owned();
        self.layout = Some(Layout { rate, unit, bits, samples });
        Ok(())
    }

    fn samples(&mut self, mut piece: &[u8], out: &mut Vec<Edge>) {
        let Some(&Layout { unit, bits, .. }) = self.layout.as_ref() else { return };
        if !self.torn.is_empty() {
            let (first, rest) = piece.split_at(piece.len().min(unit - self.torn.len()));
            self.torn.extend_from_slice(first);
            piece = rest;
            if self.torn.len() < unit {
                return;
            }
            let sample = std::mem::take(&mut self.torn);
            self.sample(&sample, bits, out);
        }
        let samples = piece.chunks_exact(unit);
        self.torn.extend_from_slice(samples.remainder());
        samples.for_each(|sample| self.sample(sample, bits, out));
    }

    #[inline]
    fn sample(&mut self, sample: &[u8], bits: [Bit; 2], out: &mut Vec<Edge>) {
        let now = bits.map(|bit| sample.get(bit.byte).is_some_and(|b| b & bit.mask != 0));
        if self.last != Some(now) {
            self.last = Some(now);
            self.levels.until(self.tick, out);
            for (line, bit) in [CaptureLine::Stimulus, CaptureLine::Answer].into_iter().zip(now) {
                self.levels.set(line, LineState::of_bit(bit), self.tick, out);
            }
        }
        self.tick += 1;
    }

    pub(crate) fn finish(&mut self, out: &mut Vec<Edge>) -> Result<CaptureSummary, CaptureError> {
        let Some(layout) = &self.layout else {
            return Err(CaptureError::whole(
                "its `metadata` is not in it: the file was cut off, or is no session file of sigrok",
            ));
        };
        if self.tick == 0 {
            return Err(CaptureError::whole(
                "there is no sample of a logic channel in it: the file was cut off, or is of analog channels alone",
            ));
        }
        self.levels.end(out);
        let ending = if !self.archive.is_whole() {
            Ending::Cut("the archive has no directory at its end")
        } else if !self.torn.is_empty() {
            Ending::Cut("its last sample is not whole")
        } else {
            Ending::Whole
        };
        Ok(CaptureSummary {
            end_tick: self.tick,
            writer: self.writer.take(),
            resolution_ns: layout.rate.period_ns(),
            rate: RateOrigin::Stated,
            ending,
            unknown_states: 0,
            shortest: self.levels.shortest(),
        })
    }
}
