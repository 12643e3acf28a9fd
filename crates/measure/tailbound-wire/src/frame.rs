// SPDX-License-Identifier: MIT OR Apache-2.0
//! A frame: version, kind, sequence, length, payload and CRC, stuffed so that the byte 0 stands between frames
//! and nowhere else.
//!
//! The stuffing is COBS (Cheshire and Baker, 1999). A payload can hold any bytes, even those of a frame: after
//! an error, the decoder can never begin within one. All numbers are little-endian.

use crate::crc::crc32;

/// Of the framing and the messages: another version is not read.
pub const VERSION: u8 = 1;

/// Bytes of a payload at most.
pub const PAYLOAD_MAX: usize = 240;

/// Version, kind, sequence (2), length.
pub(crate) const HEAD: usize = 5;

/// CRC-32.
pub(crate) const TAIL: usize = 4;

/// Bytes of a frame before it is stuffed, at most. Below 254: one block of COBS.
pub(crate) const BODY_MAX: usize = HEAD + PAYLOAD_MAX + TAIL;

/// Bytes of an encoded frame at most: a zero before and behind it, and one byte of stuffing.
pub const FRAME_MAX: usize = BODY_MAX + 3;

/// A frame as it was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// What the payload means.
    pub kind: u8,
    /// Counts the frames of a sender.
    pub sequence: u16,
    /// What it carries.
    pub payload: &'a [u8],
}

/// Why a frame could not be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameError {
    /// More than [`PAYLOAD_MAX`] bytes.
    PayloadTooLong,
    /// The caller's buffer has less than the frame's bytes ([`FRAME_MAX`] are always enough).
    BufferTooShort,
}

/// Writes a frame to the beginning of `into`; the number of bytes.
///
/// The zero at the begin ends whatever the line had before, so that noise costs no frame.
///
/// # Errors
/// If the payload or the buffer has not the right size.
pub fn encode(
    kind: u8,
    sequence: u16,
    payload: &[u8],
    into: &mut [u8],
) -> Result<usize, FrameError> {
    let Some(length) = u8::try_from(payload.len()).ok().filter(|_| payload.len() <= PAYLOAD_MAX)
    else {
        return Err(FrameError::PayloadTooLong);
    };
    let [low, high] = sequence.to_le_bytes();
    let mut body = [0_u8; BODY_MAX];
    let head = [VERSION, kind, low, high, length];
    let parts = head.iter().chain(payload);
    for (to, from) in body.iter_mut().zip(parts) {
        *to = *from;
    }
    let summed = HEAD + payload.len();
    let crc = crc32(body.get(..summed).unwrap_or_default()).to_le_bytes();
    for (to, from) in body.iter_mut().skip(summed).zip(crc) {
        *to = from;
    }
    let body = body.get(..summed + TAIL).unwrap_or_default();
    let bytes = body.len() + 3;
    let into = into.get_mut(..bytes).ok_or(FrameError::BufferTooShort)?;
    stuff(body, into);
    Ok(bytes)
}

/// `into` has three bytes more than `body`, which is shorter than 254 bytes.
fn stuff(body: &[u8], into: &mut [u8]) {
    into.fill(0);
    // From the end to the begin, so that how far the next zero is away is known.
    let mut distance = 1_u8;
    for (to, from) in into.iter_mut().skip(2).zip(body).rev() {
        *to = if *from == 0 { core::mem::replace(&mut distance, 1) } else { *from };
        if *from != 0 {
            distance = distance.saturating_add(1);
        }
    }
    if let Some(first) = into.get_mut(1) {
        *first = distance;
    }
}
