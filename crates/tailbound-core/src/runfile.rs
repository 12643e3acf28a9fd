// SPDX-License-Identifier: MIT OR Apache-2.0
//! The run file: JSON Lines, append only, one record a line.
//!
//! Context: COLD. Layout: line 1 is a `header` with the schema; the last line is an
//! `end`. Cut off anywhere, what is there is a valid shorter run that says so: the reader
//! drops a last line that does not end in a newline, and `Run::end` is `None`.
//! Source: <https://jsonlines.org>.

use std::io::{self, BufRead, Write};

use base64::Engine as _;

use crate::record::{End, Line, RawRecord, Run, SCHEMA};

/// Longest line accepted: a histogram of every bucket is below 1 MiB.
pub const LINE_MAX: usize = 64 << 20;

/// Why a run file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file could not be read.
    #[error("line {line}: {source}")]
    Io {
        /// Where.
        line: u64,
        /// Why.
        source: io::Error,
    },
    /// A line is not what it should be.
    #[error("line {line}: {reason}")]
    Line {
        /// Where.
        line: u64,
        /// Why.
        reason: String,
    },
    /// Nothing in it.
    #[error("the file is empty")]
    Empty,
    /// A schema of a later version.
    #[error(
        "schema `{0}` is not known to this version (it reads up to `{SCHEMA}`): use a newer tailbound"
    )]
    Schema(String),
}

/// Writes records as lines, and knows how many it wrote.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    lines: u64,
}

impl<W: Write> Writer<W> {
    /// A writer of lines to `out`; give it something buffered.
    pub fn new(out: W) -> Self {
        Self { out, lines: 0 }
    }

    /// Writes one record.
    ///
    /// # Errors
    /// Those of the underlying writer.
    pub fn line(&mut self, line: &Line) -> io::Result<()> {
        let text = serde_json::to_string(line).map_err(io::Error::other)?;
        self.out.write_all(text.as_bytes())?;
        self.out.write_all(b"\n")?;
        self.lines += 1;
        Ok(())
    }

    /// Hands what was written so far to the underlying writer.
    ///
    /// # Errors
    /// Those of the underlying writer.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Writes the last line and gives the underlying writer back.
    ///
    /// # Errors
    /// Those of the underlying writer.
    pub fn end(mut self, reason: &str, measured_ns: i64) -> io::Result<W> {
        let lines = self.lines;
        self.line(&Line::End(End { reason: reason.to_owned(), measured_ns, lines }))?;
        self.out.flush()?;
        Ok(self.out)
    }
}

/// Writes a whole run, as an importer does.
///
/// # Errors
/// Those of the underlying writer.
pub fn write_run<W: Write>(run: &Run, out: W) -> io::Result<W> {
    let mut w = Writer::new(out);
    run.lines().try_for_each(|line| w.line(&line))?;
    let (reason, measured_ns) =
        run.end.as_ref().map_or(("cut-off", run.measured_ns()), |e| (&e.reason, e.measured_ns));
    w.end(reason, measured_ns)
}

/// Reads a whole run.
///
/// # Errors
/// [`ReadError`] with the line number. A file that was cut off is not an error:
/// `Run::end` is `None`. Line types of a later minor version are passed over.
pub fn read_run(mut input: impl BufRead) -> Result<Run, ReadError> {
    let mut run: Option<Run> = None;
    let mut bytes = Vec::new();
    for line in 1u64.. {
        bytes.clear();
        let got = io::Read::take(&mut input, LINE_MAX as u64)
            .read_until(b'\n', &mut bytes)
            .map_err(|source| ReadError::Io { line, source })?;
        if got == 0 {
            break;
        }
        let whole = bytes.ends_with(b"\n");
        if !whole && got >= LINE_MAX {
            return Err(ReadError::Line {
                line,
                reason: format!("longer than {} MiB", LINE_MAX >> 20),
            });
        }
        if bytes.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let parsed = parse_line(&bytes);
        match (&mut run, parsed) {
            // A last line without its newline was cut off, unless it happens to be whole.
            (Some(_), Err(_)) if !whole => break,
            (_, Err(reason)) => return Err(ReadError::Line { line, reason }),
            (Some(run), Ok(Some(record))) => run.absorb(record),
            (Some(_), Ok(None)) => {}
            (None, Ok(Some(Line::Header(header)))) => {
                if header.schema != SCHEMA {
                    return Err(ReadError::Schema(header.schema));
                }
                run = Some(Run::new(*header));
            }
            (None, Ok(_)) => {
                return Err(ReadError::Line {
                    line,
                    reason: "the first line is not a header".to_owned(),
                });
            }
        }
    }
    run.ok_or(ReadError::Empty)
}

/// One line; `None` is a type this version does not know.
fn parse_line(bytes: &[u8]) -> Result<Option<Line>, String> {
    let value: serde_json::Value =
        serde_json::from_slice(bytes).map_err(|e| format!("not JSON: {e}"))?;
    let known = [
        "header",
        "event",
        "second",
        "window",
        "block",
        "exceedance",
        "load",
        "raw",
        "thread",
        "self-cost",
        "after",
        "finding",
        "verdict",
        "end",
    ];
    match value.get("type").and_then(serde_json::Value::as_str) {
        None => Err("no `type` in this line".to_owned()),
        Some(kind) if !known.contains(&kind) => Ok(None),
        Some(kind) => {
            let kind = kind.to_owned();
            serde_json::from_value(value).map(Some).map_err(|e| format!("bad `{kind}` line: {e}"))
        }
    }
}

/// Packs samples for a [`RawRecord`]: zigzag varints, zlib, base64.
#[must_use]
pub fn pack_raw(thread: u32, from: u64, samples: &[i64]) -> RawRecord {
    let mut bytes = Vec::with_capacity(samples.len() * 3);
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
pub fn unpack_raw(raw: &RawRecord) -> Result<Vec<i64>, String> {
    let packed = base64::engine::general_purpose::STANDARD
        .decode(&raw.data)
        .map_err(|e| format!("raw samples: {e}"))?;
    let bytes = miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(&packed, 1 << 30)
        .map_err(|e| format!("raw samples: {e}"))?;
    let mut samples = Vec::new();
    let (mut v, mut shift) = (0u64, 0u32);
    for b in bytes {
        if shift > 63 {
            return Err("raw samples: a number is longer than 64 bits".to_owned());
        }
        v |= u64::from(b & 0x7f) << shift;
        shift += 7;
        if b & 0x80 == 0 {
            samples.push((v >> 1).cast_signed() ^ -(v & 1).cast_signed());
            (v, shift) = (0, 0);
        }
    }
    if samples.len() as u64 != raw.n || shift != 0 {
        return Err(format!("raw samples: {} expected, {} found", raw.n, samples.len()));
    }
    Ok(samples)
}
