// SPDX-License-Identifier: MIT OR Apache-2.0
//! From bytes, as they come, to frames; and an account of what was lost.
//!
//! A frame is given only where its version, its length and its CRC are right. Whatever came before, the next
//! zero begins a new one.

use crate::crc::crc32;
use crate::frame::{BODY_MAX, Frame, HEAD, TAIL, VERSION};

/// What did not become a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Losses {
    /// Pieces between two zeros that are no frame: cut, flipped, or noise.
    pub damaged: u64,
    /// Frames whose version is not this one's; their CRC was right.
    pub foreign: u64,
    /// Frames that are missing by the sequence of their sender.
    pub missing: u64,
}

/// Reads frames out of a stream of bytes.
#[derive(Debug, Clone)]
pub struct Decoder {
    /// One more than a frame: a piece that fills it is too long.
    bytes: [u8; BODY_MAX + 2],
    length: usize,
    expected: Option<u16>,
    losses: Losses,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

/// What a piece was.
enum Chunk {
    Frame { kind: u8, sequence: u16, payload: usize },
    Foreign,
    Damaged,
}

impl Decoder {
    /// Nothing received.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            bytes: [0; BODY_MAX + 2],
            length: 0,
            expected: None,
            losses: Losses { damaged: 0, foreign: 0, missing: 0 },
        }
    }

    /// What was lost until now.
    #[must_use]
    pub const fn losses(&self) -> Losses {
        self.losses
    }

    /// Takes the next byte of the line; the frame, if this byte ends one.
    pub fn take(&mut self, byte: u8) -> Option<Frame<'_>> {
        if byte != 0 {
            if let Some(place) = self.bytes.get_mut(self.length) {
                *place = byte;
                self.length += 1;
            }
            return None;
        }
        let length = core::mem::take(&mut self.length);
        if length == 0 {
            return None;
        }
        match self.piece(length) {
            Chunk::Frame { kind, sequence, payload } => {
                self.follow(sequence);
                let payload = self.bytes.get(1 + HEAD..1 + HEAD + payload)?;
                Some(Frame { kind, sequence, payload })
            }
            Chunk::Foreign => {
                self.losses.foreign = self.losses.foreign.saturating_add(1);
                None
            }
            Chunk::Damaged => {
                self.losses.damaged = self.losses.damaged.saturating_add(1);
                None
            }
        }
    }

    /// Undoes the stuffing in place and judges what comes out.
    fn piece(&mut self, length: usize) -> Chunk {
        let Some(piece) = self.bytes.get_mut(..length) else { return Chunk::Damaged };
        let Some(&first) = piece.first() else { return Chunk::Damaged };
        let mut next = usize::from(first);
        while let Some(place) = piece.get_mut(next) {
            next += usize::from(core::mem::take(place));
        }
        // The last distance points exactly behind the frame.
        let body = piece.get(1..).unwrap_or_default();
        if next != length || body.len() < HEAD + TAIL || body.len() > BODY_MAX {
            return Chunk::Damaged;
        }
        let (summed, crc) = body.split_at(body.len() - TAIL);
        if crc != crc32(summed).to_le_bytes() {
            return Chunk::Damaged;
        }
        let [version, kind, low, high, payload] =
            *summed.first_chunk::<HEAD>().unwrap_or(&[0; HEAD]);
        if version != VERSION {
            return Chunk::Foreign;
        }
        if usize::from(payload) != summed.len() - HEAD {
            return Chunk::Damaged;
        }
        Chunk::Frame {
            kind,
            sequence: u16::from_le_bytes([low, high]),
            payload: usize::from(payload),
        }
    }

    /// Counts what is missing before this frame. One that is behind by more than half of all numbers is that
    /// of a sender which began anew.
    fn follow(&mut self, sequence: u16) {
        let gap = self.expected.map_or(0, |expected| sequence.wrapping_sub(expected));
        if gap <= u16::MAX / 2 {
            self.losses.missing = self.losses.missing.saturating_add(u64::from(gap));
        }
        self.expected = Some(sequence.wrapping_add(1));
    }
}
