// SPDX-License-Identifier: MIT OR Apache-2.0
//! The run file: JSON Lines, append only, one record per line.
//!
//! Layout: line 1 is a `header` with the schema; the last line is an
//! `end`. Cut off anywhere, what is there is a valid shorter run that says so.
//! The `end` line, and `digest` lines on the way, hold the digest of all that stands before.
//! Not here: the reader (`read`), the digest (`digest`), what a reader looks for (`audit`).
//! Source: <https://jsonlines.org>.

mod audit;
mod begin;
mod digest;
mod fault;
mod partial;
mod read;
mod shortened;
mod trail;

use std::io::{self, Write};

use base64::Engine as _;

use crate::Run;
use crate::ended::EndReason;
use crate::limits::RAW_SAMPLES_MAX;
use crate::printable;
use crate::record::{End, Line, RawRecord};
pub use begin::{is_run_file, utf16};
use digest::Running;
pub use fault::{LineFault, RawFault};
pub use read::{
    ReadError, read_line, read_run, read_run_checked, read_run_shortened, read_run_without,
};
pub use trail::{Integrity, Seal};

/// Writes records as lines, and knows how many and which it wrote.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    lines: u64,
    digest: Running,
}

impl<W: Write> Writer<W> {
    /// A writer of lines to `out`; give it something buffered.
    pub fn new(out: W) -> Self {
        Self { out, lines: 0, digest: Running::default() }
    }

    /// Writes one record.
    ///
    /// # Errors
    /// Those of the underlying writer.
    pub fn line(&mut self, line: &Line) -> io::Result<()> {
        self.bytes(text_of(line)?.as_bytes())
    }

    fn bytes(&mut self, line: &[u8]) -> io::Result<()> {
        self.digest.add(line);
        self.out.write_all(line)?;
        self.lines = self.lines.saturating_add(1);
        Ok(())
    }

    /// Writes a line with the digest of all before it: up to there a file that is cut off later
    /// is known to be as it was written.
    ///
    /// # Errors
    /// Those of the underlying writer.
    pub fn checkpoint(&mut self) -> io::Result<()> {
        let line = format!("{{\"type\":\"digest\",\"lines\":{}}}", self.lines);
        self.bytes(&self.digest.sealed(&line))
    }

    /// Hands what was written so far to the underlying writer.
    ///
    /// # Errors
    /// Those of the underlying writer.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Writes the last line, with the digest of the whole file, and gives the underlying writer back.
    ///
    /// # Errors
    /// Those of the underlying writer.
    pub fn end(mut self, reason: EndReason, measured_ns: i64) -> io::Result<W> {
        let lines = self.lines;
        let text = text_of(&Line::End(End { reason, measured_ns, lines }))?;
        self.bytes(&self.digest.sealed(text.trim_end()))?;
        self.out.flush()?;
        Ok(self.out)
    }
}

/// One copy for all writers.
fn text_of(line: &Line) -> io::Result<String> {
    let mut text = printable::json(serde_json::to_string(line).map_err(io::Error::other)?);
    text.push('\n');
    Ok(text)
}

/// Writes a whole run, as an importer does.
///
/// # Errors
/// Those of the underlying writer.
pub fn write_run<W: Write>(run: &Run, out: W) -> io::Result<W> {
    let mut w = Writer::new(out);
    run.lines().try_for_each(|line| w.line(&line))?;
    w.end(run.end_reason(), run.measured_ns())
}

/// Packs samples for a [`RawRecord`]: zigzag varints, zlib, base64.
#[must_use]
pub fn pack_raw(thread: u32, from: u64, samples: &[i64]) -> RawRecord {
    let mut bytes = Vec::with_capacity(samples.len().saturating_mul(3));
    for &s in samples {
        let mut v = ((s << 1) ^ (s >> 63)).cast_unsigned();
        while v >= 0x80 {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "the low seven bits are what is written"
            )]
            bytes.push(v as u8 | 0x80);
            v >>= 7;
        }
        #[expect(clippy::cast_possible_truncation, reason = "below 128 here")]
        bytes.push(v as u8);
    }
    let packed = miniz_oxide::deflate::compress_to_vec_zlib(&bytes, 6);
    RawRecord {
        thread,
        from,
        n: samples.len() as u64,
        data: base64::engine::general_purpose::STANDARD.encode(packed),
    }
}

/// Unpacks the samples of a [`RawRecord`].
///
/// # Errors
/// What is wrong with the data.
pub fn unpack_raw(raw: &RawRecord) -> Result<Vec<i64>, RawFault> {
    if raw.n > RAW_SAMPLES_MAX {
        return Err(RawFault::TooMany(RAW_SAMPLES_MAX));
    }
    // A number has at most ten bytes, of seven bits each.
    let most = usize::try_from(raw.n).unwrap_or(0).saturating_mul(10);
    let packed =
        base64::engine::general_purpose::STANDARD.decode(&raw.data).map_err(RawFault::Base64)?;
    let bytes = miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(&packed, most)
        .map_err(|e| RawFault::Zlib(e.to_string()))?;
    let mut samples = Vec::new();
    let (mut v, mut shift) = (0u64, 0u32);
    for b in bytes {
        if shift > 63 {
            return Err(RawFault::Number);
        }
        v |= u64::from(b & 0x7f) << shift;
        shift = shift.saturating_add(7);
        if b & 0x80 == 0 {
            samples.push((v >> 1).cast_signed() ^ (v & 1).cast_signed().wrapping_neg());
            (v, shift) = (0, 0);
        }
    }
    if samples.len() as u64 != raw.n || shift != 0 {
        return Err(RawFault::Count { expected: raw.n, found: samples.len() });
    }
    Ok(samples)
}
