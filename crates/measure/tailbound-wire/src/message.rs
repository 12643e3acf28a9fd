// SPDX-License-Identifier: MIT OR Apache-2.0
//! What box and host say: the meaning of a frame's kind and payload.
//!
//! The host asks, the box answers each question with one frame: what was asked for, `Done` or `Fault`. Only
//! `Samples` come unasked, after `Stream`.

use crate::cells::CELLS;
use crate::channel::{PulseRecord, Reaction};
use crate::counters::{COUNTERS, Counters};
use crate::frame::{FrameError, PAYLOAD_MAX, encode};
use crate::intervals::Spacing;
use crate::payload::{PayloadReader, PayloadWriter};

/// Counts of cells in a frame at most.
pub const CELLS_MAX: usize = 56;

/// Entries of the worst list in a frame at most.
pub const WORST_MAX: usize = 10;

/// SampleBatch in a frame at most.
pub const SAMPLES_MAX: usize = 10;

/// A chip that the box is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chip {
    /// Raspberry Pi Pico.
    Rp2040,
    /// Raspberry Pi Pico 2.
    Rp2350,
}

/// Who answers, and in which units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello {
    /// Of the firmware: major, minor, patch.
    pub firmware: [u8; 3],
    /// What it runs on.
    pub chip: Chip,
    /// Channels that it has.
    pub channels: u8,
    /// Ticks a second.
    pub tick_hz: u32,
    /// Where channel 0 gives pulses and hears answers; channel n is 2n pins further.
    pub pins: [u8; 2],
    /// Ticks that a wire from the output to the input must read.
    pub loop_back_ticks: u8,
}

/// How a pulse looks, and so what answers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stimulus {
    /// The line changes its level; the machine copies it.
    Toggle,
    /// The line goes up and comes back; the machine answers with an edge up.
    Pulse,
}

/// How to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Set {
    /// Channels, from the first.
    pub channels: u8,
    /// Of the answers.
    pub stimulus: Stimulus,
    /// Between pulses, on average.
    pub period_ticks: u32,
    /// Even or random; channel n has the seed plus n.
    pub spacing: Spacing,
    /// How long the line is up in `Stimulus::Pulse`.
    pub width_ticks: u32,
}

/// Which of two histograms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shelf {
    /// Reactions that are known.
    Answered,
    /// Least times of unanswered pulses.
    AtLeast,
}

/// From where on a list is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListPart {
    /// Of which channel.
    pub channel: u8,
    /// Of which histogram; the worst list has only one.
    pub shelf: Shelf,
    /// The first cell or entry.
    pub first: u16,
}

/// Counts of cells that stand together. Empty behind the last cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellCounts {
    /// Where they begin.
    pub piece: ListPart,
    /// How many of `counts` are.
    pub length: u8,
    /// One a cell.
    pub counts: [u32; CELLS_MAX],
}

/// Entries of the worst list, in no order. Empty behind the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorstPiece {
    /// Of which channel.
    pub channel: u8,
    /// The first entry.
    pub first: u16,
    /// How many of `entries` are.
    pub length: u8,
    /// One a pulse.
    pub entries: [PulseRecord; WORST_MAX],
}

/// SampleBatch of a channel in the order in which they were known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleBatch {
    /// Of which channel.
    pub channel: u8,
    /// How many of `outcomes` are.
    pub length: u8,
    /// One a pulse.
    pub outcomes: [PulseRecord; SAMPLES_MAX],
}

/// What a wire from output to input read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopBack {
    /// Of which channel.
    pub channel: u8,
    /// Pulses that were sent for it.
    pub sent: u32,
    /// Of which came back.
    pub answered: u32,
    /// The shortest way; `u32::MAX` if none came back.
    pub least_ticks: u32,
    /// The longest.
    pub most_ticks: u32,
}

/// Why the box did not do as asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoxFault {
    /// It does not know this kind of message.
    Kind,
    /// A value is outside of what it can do.
    Value,
    /// Not while it measures.
    Measuring,
    /// Nothing was set.
    NotSet,
    /// Pulses were planned too late: the schedule slipped, and the measurement ended there.
    Slipped,
}

/// All that is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    /// Host: who is there?
    AskHello,
    /// Host: measure so.
    Set(Set),
    /// Host: begin.
    Start,
    /// Host: end.
    Stop,
    /// Host: the counters of a channel.
    AskCounters(u8),
    /// Host: cells of a histogram.
    AskCells(ListPart),
    /// Host: entries of the worst list.
    AskWorst(ListPart),
    /// Host: samples of all channels from now on.
    Stream,
    /// Host: no more samples.
    StreamEnd,
    /// Host: send pulses over a wire from the output to the input of a channel.
    AskLoopBack(u8),
    /// Box: it is me.
    Hello(Hello),
    /// Box: what this kind asked for is done.
    Done(u8),
    /// Box: the counters of a channel.
    Counters(u8, Counters),
    /// Box: cells.
    Cells(CellCounts),
    /// Box: entries.
    Worst(WorstPiece),
    /// Box: samples.
    Samples(SampleBatch),
    /// Box: what the wire read.
    LoopBack(LoopBack),
    /// Box: a message of this kind was not followed. Kind 0: none was, it happened by itself.
    Fault(u8, BoxFault),
}

/// Why a frame is no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageError {
    /// Of no known kind.
    Kind(u8),
    /// The payload is too short, too long, or has a value without meaning.
    Payload(u8),
}

impl Message {
    /// The kind of the frame that carries it.
    #[must_use]
    pub const fn kind(&self) -> u8 {
        match self {
            Self::AskHello => 0x01,
            Self::Set(_) => 0x02,
            Self::Start => 0x03,
            Self::Stop => 0x04,
            Self::AskCounters(_) => 0x05,
            Self::AskCells(_) => 0x06,
            Self::AskWorst(_) => 0x07,
            Self::Stream => 0x08,
            Self::StreamEnd => 0x09,
            Self::AskLoopBack(_) => 0x0A,
            Self::Hello(_) => 0x81,
            Self::Done(_) => 0x82,
            Self::Counters(..) => 0x85,
            Self::Cells(_) => 0x86,
            Self::Worst(_) => 0x87,
            Self::Samples(_) => 0x88,
            Self::LoopBack(_) => 0x8A,
            Self::Fault(..) => 0x8F,
        }
    }

    /// Writes the frame that carries it; the number of bytes.
    ///
    /// # Errors
    /// If the buffer is too short: [`crate::FRAME_MAX`] bytes are enough.
    pub fn encode(&self, sequence: u16, into: &mut [u8]) -> Result<usize, FrameError> {
        let mut payload = PayloadWriter::new();
        match self {
            Self::AskHello | Self::Start | Self::Stop | Self::Stream | Self::StreamEnd => {}
            Self::AskCounters(byte) | Self::AskLoopBack(byte) | Self::Done(byte) => {
                payload.u8(*byte)
            }
            Self::Set(set) => set.write(&mut payload),
            Self::AskCells(piece) | Self::AskWorst(piece) => piece.write(&mut payload),
            Self::Hello(hello) => hello.write(&mut payload),
            Self::Counters(channel, counters) => {
                payload.u8(*channel);
                counters.values().into_iter().for_each(|value| payload.u64(value));
            }
            Self::Cells(cells) => {
                cells.piece.write(&mut payload);
                let counts = cells.counts.iter().take(usize::from(cells.length));
                counts.for_each(|count| payload.u32(*count));
            }
            Self::Worst(worst) => {
                payload.u8(worst.channel);
                payload.u16(worst.first);
                let entries = worst.entries.iter().take(usize::from(worst.length));
                entries.for_each(|entry| entry.write(&mut payload));
            }
            Self::Samples(samples) => {
                payload.u8(samples.channel);
                let outcomes = samples.outcomes.iter().take(usize::from(samples.length));
                outcomes.for_each(|outcome| outcome.write(&mut payload));
            }
            Self::LoopBack(check) => {
                payload.u8(check.channel);
                payload.u32(check.sent);
                payload.u32(check.answered);
                payload.u32(check.least_ticks);
                payload.u32(check.most_ticks);
            }
            Self::Fault(kind, fault) => {
                payload.u8(*kind);
                payload.u8(fault.code());
            }
        }
        encode(self.kind(), sequence, payload.bytes().ok_or(FrameError::PayloadTooLong)?, into)
    }

    /// What a frame says.
    ///
    /// # Errors
    /// If it is no message, or has bytes behind it.
    pub fn decode(kind: u8, payload: &[u8]) -> Result<Self, MessageError> {
        let mut reader = PayloadReader::new(payload);
        if !KINDS.contains(&kind) {
            return Err(MessageError::Kind(kind));
        }
        Self::read(kind, &mut reader)
            .filter(|_| reader.is_empty())
            .ok_or(MessageError::Payload(kind))
    }

    fn read(kind: u8, r: &mut PayloadReader<'_>) -> Option<Self> {
        Some(match kind {
            0x01 => Self::AskHello,
            0x02 => Self::Set(Set::read(r)?),
            0x03 => Self::Start,
            0x04 => Self::Stop,
            0x05 => Self::AskCounters(r.u8()?),
            0x06 => Self::AskCells(ListPart::read(r)?),
            0x07 => Self::AskWorst(ListPart::read(r)?),
            0x08 => Self::Stream,
            0x09 => Self::StreamEnd,
            0x0A => Self::AskLoopBack(r.u8()?),
            0x81 => Self::Hello(Hello::read(r)?),
            0x82 => Self::Done(r.u8()?),
            0x85 => {
                let channel = r.u8()?;
                let mut values = [0; COUNTERS];
                for value in &mut values {
                    *value = r.u64()?;
                }
                Self::Counters(channel, Counters::from_values(values))
            }
            0x86 => Self::Cells(CellCounts::read(r)?),
            0x87 => {
                let (channel, first) = (r.u8()?, r.u16()?);
                let mut entries = [PulseRecord::NONE; WORST_MAX];
                let length = outcomes(r, &mut entries)?;
                Self::Worst(WorstPiece { channel, first, length, entries })
            }
            0x88 => {
                let channel = r.u8()?;
                let mut all = [PulseRecord::NONE; SAMPLES_MAX];
                let length = outcomes(r, &mut all)?;
                Self::Samples(SampleBatch { channel, length, outcomes: all })
            }
            0x8A => Self::LoopBack(LoopBack {
                channel: r.u8()?,
                sent: r.u32()?,
                answered: r.u32()?,
                least_ticks: r.u32()?,
                most_ticks: r.u32()?,
            }),
            0x8F => Self::Fault(r.u8()?, BoxFault::from_code(r.u8()?)?),
            _ => return None,
        })
    }
}

const KINDS: [u8; 18] = [
    0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0A, 0x81, 0x82, 0x85, 0x86, 0x87, 0x88,
    0x8A, 0x8F,
];

const _: () =
    assert!(SAMPLES_MAX * PulseRecord::BYTES < PAYLOAD_MAX && CELLS_MAX * 4 + 4 <= PAYLOAD_MAX);

/// All outcomes that the rest of a payload has.
fn outcomes(r: &mut PayloadReader<'_>, into: &mut [PulseRecord]) -> Option<u8> {
    let mut length = 0;
    for place in into {
        if r.is_empty() {
            break;
        }
        *place = PulseRecord::read(r)?;
        length += 1;
    }
    Some(length)
}

impl PulseRecord {
    const BYTES: usize = 21;

    fn write(&self, payload: &mut PayloadWriter) {
        payload.u64(self.number);
        payload.u64(self.sent_ticks);
        payload.u8(match self.reaction {
            Reaction::Answered(_) => 0,
            Reaction::Late(_) => 1,
            Reaction::AtLeast(_) => 2,
            Reaction::Unknown => 3,
        });
        payload.u32(self.reaction.ticks());
    }

    fn read(r: &mut PayloadReader<'_>) -> Option<Self> {
        let (number, sent_ticks, which, ticks) = (r.u64()?, r.u64()?, r.u8()?, r.u32()?);
        let reaction = match (which, ticks) {
            (0, ticks) => Reaction::Answered(ticks),
            (1, ticks) => Reaction::Late(ticks),
            (2, ticks) => Reaction::AtLeast(ticks),
            (3, 0) => Reaction::Unknown,
            _ => return None,
        };
        Some(Self { number, sent_ticks, reaction })
    }
}

impl Hello {
    fn write(&self, payload: &mut PayloadWriter) {
        payload.put(&self.firmware);
        payload.u8(match self.chip {
            Chip::Rp2040 => 0,
            Chip::Rp2350 => 1,
        });
        payload.u8(self.channels);
        payload.u32(self.tick_hz);
        payload.put(&self.pins);
        payload.u8(self.loop_back_ticks);
    }

    fn read(r: &mut PayloadReader<'_>) -> Option<Self> {
        Some(Self {
            firmware: [r.u8()?, r.u8()?, r.u8()?],
            chip: match r.u8()? {
                0 => Chip::Rp2040,
                1 => Chip::Rp2350,
                _ => return None,
            },
            channels: r.u8()?,
            tick_hz: r.u32()?,
            pins: [r.u8()?, r.u8()?],
            loop_back_ticks: r.u8()?,
        })
    }
}

impl Set {
    fn write(&self, payload: &mut PayloadWriter) {
        payload.u8(self.channels);
        payload.u8(match self.stimulus {
            Stimulus::Toggle => 0,
            Stimulus::Pulse => 1,
        });
        payload.u32(self.period_ticks);
        let (random, seed) = match self.spacing {
            Spacing::Even => (0, 0),
            Spacing::Random(seed) => (1, seed),
        };
        payload.u8(random);
        payload.u32(seed);
        payload.u32(self.width_ticks);
    }

    fn read(r: &mut PayloadReader<'_>) -> Option<Self> {
        Some(Self {
            channels: r.u8()?,
            stimulus: match r.u8()? {
                0 => Stimulus::Toggle,
                1 => Stimulus::Pulse,
                _ => return None,
            },
            period_ticks: r.u32()?,
            spacing: match (r.u8()?, r.u32()?) {
                (0, 0) => Spacing::Even,
                (1, seed) => Spacing::Random(seed),
                _ => return None,
            },
            width_ticks: r.u32()?,
        })
    }
}

impl ListPart {
    fn write(self, payload: &mut PayloadWriter) {
        payload.u8(self.channel);
        payload.u8(match self.shelf {
            Shelf::Answered => 0,
            Shelf::AtLeast => 1,
        });
        payload.u16(self.first);
    }

    fn read(r: &mut PayloadReader<'_>) -> Option<Self> {
        Some(Self {
            channel: r.u8()?,
            shelf: match r.u8()? {
                0 => Shelf::Answered,
                1 => Shelf::AtLeast,
                _ => return None,
            },
            first: r.u16()?,
        })
    }
}

impl CellCounts {
    fn read(r: &mut PayloadReader<'_>) -> Option<Self> {
        let mut cells = Self { piece: ListPart::read(r)?, length: 0, counts: [0; CELLS_MAX] };
        for count in &mut cells.counts {
            if r.is_empty() {
                break;
            }
            *count = r.u32()?;
            cells.length += 1;
        }
        let end = usize::from(cells.piece.first) + usize::from(cells.length);
        (cells.length == 0 || end <= CELLS).then_some(cells)
    }
}

impl BoxFault {
    const fn code(self) -> u8 {
        match self {
            Self::Kind => 0,
            Self::Value => 1,
            Self::Measuring => 2,
            Self::NotSet => 3,
            Self::Slipped => 4,
        }
    }

    const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            0 => Self::Kind,
            1 => Self::Value,
            2 => Self::Measuring,
            3 => Self::NotSet,
            4 => Self::Slipped,
            _ => return None,
        })
    }
}
