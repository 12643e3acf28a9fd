// SPDX-License-Identifier: MIT OR Apache-2.0
//! What cannot be of a format, told while it is read: before memory is spent on all of it.
//!
//! Units: bytes. Limits: what is refused here takes some 32 MiB at most, however long the file is; 1 GiB is kept only of
//! lines that begin as those of their tool. Whoever names a format has it judged by that format alone.
//! Not here: what is wrong in a file of the right kind (the parsers).

use crate::error::{Fault, Place};
use crate::format::{self, Format};
use crate::json::JSON_MAX;
use crate::text::{LINE_MAX, Lines, TOO_LONG};
use crate::unlike::Unlike;

/// Longest file of lines that is read as a whole.
const LINES_MAX: u64 = 1 << 30;
/// By then a line of the tool must have come.
const MARK_MAX: usize = 16 << 20;
/// The least that tells text from numbers.
const TEXT_MIN: usize = 16;

/// How a format is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Numbers in binary.
    Binary,
    /// One document, which begins with this.
    Document(u8, &'static str),
    /// Lines of text.
    Lines,
}

pub(crate) const fn kind(format: Format) -> Kind {
    match format {
        Format::RawU32 | Format::RawU64 | Format::JitterdebuggerRaw | Format::SigrokSession => {
            Kind::Binary
        }
        Format::Own
        | Format::CyclictestJson
        | Format::OslatJson
        | Format::RtTestsJson
        | Format::CyclicdeadlineJson
        | Format::JitterdebuggerJson => Kind::Document(b'{', "JSON"),
        Format::RtevalXml => Kind::Document(b'<', "XML"),
        Format::CyclictestHistogram
        | Format::CyclictestStatus
        | Format::CyclictestVerbose
        | Format::OslatText
        | Format::RtlaTimerlat
        | Format::RtlaOsnoise
        | Format::XenomaiGnuplot
        | Format::XenomaiText
        | Format::RtaiText
        | Format::Latmus
        | Format::LatmusText
        | Format::RtTestsText
        | Format::CyclicdeadlineText
        | Format::Hwlatdetect
        | Format::RtlaTop
        | Format::RtlaAnalysis
        | Format::LatencyTrace
        | Format::Sysjitter
        | Format::HdrHistogram
        | Format::StressNg
        | Format::Vcd
        | Format::SigrokCsv
        | Format::SaleaeCsv
        | Format::Column => Kind::Lines,
    }
}

/// Longest file of a format that is read as a whole.
pub(crate) const fn whole_max(format: Format) -> u64 {
    match kind(format) {
        Kind::Document(..) => JSON_MAX as u64,
        Kind::Binary | Kind::Lines => LINES_MAX,
    }
}

/// A file of more bytes than are read.
pub(crate) fn too_long(format: Format) -> Fault {
    Fault::file(format!("longer than {} MiB", whole_max(format) >> 20))
}

/// Could a file that begins so be of `format`?
pub(crate) fn head(format: Format, bytes: &[u8]) -> Result<(), Fault> {
    match kind(format) {
        Kind::Binary => {
            let is_text = |b: &u8| matches!(b, b' '..=b'~' | b'\t' | b'\r' | b'\n');
            if bytes.len() >= TEXT_MIN && bytes.iter().all(is_text) {
                return Err(Fault::byte(0, "this is text, and no numbers in binary"));
            }
            Ok(())
        }
        Kind::Document(first, what) => {
            no_zero(bytes, 0)?;
            let start = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
            match start.iter().position(|b| !b.is_ascii_whitespace()) {
                Some(at) if start.get(at) != Some(&first) => {
                    let at = (bytes.len() - start.len() + at) as u64;
                    let shown = char::from(first);
                    Err(Fault::byte(at, format!("not {what}, which begins with `{shown}`")))
                }
                _ => Ok(()),
            }
        }
        Kind::Lines => no_zero(bytes, 0),
    }
}

/// Text has no bytes of zeros, unless it is in another encoding.
fn no_zero(bytes: &[u8], offset: u64) -> Result<(), Fault> {
    let Some(at) = bytes.iter().position(|b| *b == 0) else { return Ok(()) };
    match tailbound_core::runfile::utf16(bytes) {
        Some(encoding) if offset == 0 => Err(Fault::file(Unlike::Encoding(encoding).to_string())),
        _ => Err(Fault::byte(offset + at as u64, "a byte of zeros: this is no text")),
    }
}

/// Looks at a file of text while it becomes longer.
#[derive(Debug)]
pub(crate) struct Early {
    format: Format,
    /// Bytes that were looked at.
    seen: usize,
    /// Whole lines among them, and where the open one begins.
    lines: u64,
    line_at: usize,
    marked: bool,
}

impl Early {
    pub(crate) const fn new(format: Format) -> Self {
        Self { format, seen: 0, lines: 0, line_at: 0, marked: false }
    }

    /// Looks at what came to `bytes`, which are all so far.
    pub(crate) fn more(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let new = bytes.get(self.seen..).unwrap_or_default();
        no_zero(new, self.seen as u64)?;
        if kind(self.format) == Kind::Lines {
            for (at, _) in new.iter().enumerate().filter(|(_, b)| **b == b'\n') {
                self.line(self.seen + at)?;
                self.lines += 1;
                self.line_at = self.seen + at + 1;
            }
            self.line(bytes.len())?;
        }
        self.seen = bytes.len();
        if !self.marked && self.seen >= MARK_MAX {
            self.begun(bytes)?;
            self.marked = true;
        }
        Ok(())
    }

    fn line(&self, end: usize) -> Result<(), Fault> {
        let too_long = end.saturating_sub(self.line_at) > LINE_MAX;
        if too_long { Err(Fault::line(self.lines + 1, TOO_LONG)) } else { Ok(()) }
    }

    /// So long a beginning holds what the format is known by.
    fn begun(&self, bytes: &[u8]) -> Result<(), Fault> {
        match kind(self.format) {
            // A document is not read for much longer.
            Kind::Binary | Kind::Document(..) => Ok(()),
            Kind::Lines => {
                let carried = crate::carried::plain(bytes);
                let mut lines = Lines::new(&carried.bytes).filter_map(Result::ok);
                if lines.any(|(_, line)| format::of_line(line.trim()).is_some_and(|f| self.is(f))) {
                    return Ok(());
                }
                let why =
                    format!("no line of {} among the first {} MiB", self.format, MARK_MAX >> 20);
                Err(Fault { place: Place::Line(self.lines + 1), reason: why })
            }
        }
    }

    /// Are lines of `other` to be expected? RTAI's rows look like Xenomai's.
    fn is(&self, other: Format) -> bool {
        let alike = [Format::XenomaiText, Format::RtaiText, Format::LatmusText];
        other == self.format || (alike.contains(&other) && alike.contains(&self.format))
    }
}
