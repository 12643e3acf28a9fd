// SPDX-License-Identifier: MIT OR Apache-2.0
//! A capture of a logic analyser as edges of two of its lines, whatever format it is in.
//!
//! Units: ticks of the capture; bytes. Bytes come in pieces of any size: what is not consumed is
//! handed in again with more behind it. Memory: bounded, whatever the capture's length.
//! Not here: which edges are pulses and answers (`pairing`).

mod csv;
mod levels;
mod rows;
mod session;
mod steps;
mod vcd;
mod zip;

use crate::CaptureError;
use crate::channel::Wiring;
use crate::edge::Edge;
use crate::time_base::{SampleRate, TimeBase};

/// Edges that are found before a caller is given them.
pub(crate) const EDGES_MAX: usize = 1 << 15;
/// Longest line or word of a capture in text.
pub(crate) const WORD_BYTES_MAX: usize = 1 << 20;

/// A format of captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureFormat {
    /// Value change dump, IEEE 1364.
    Vcd,
    /// A session file of sigrok and PulseView (`.sr`): a zip archive.
    SigrokSession,
    /// CSV of sigrok-cli.
    SigrokCsv,
    /// CSV of Saleae Logic: a row for each transition.
    SaleaeCsv,
}

impl CaptureFormat {
    /// By the beginning of a file.
    #[must_use]
    pub fn of(head: &[u8]) -> Option<Self> {
        if session::is_one(head) {
            return Some(Self::SigrokSession);
        }
        let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
        if vcd::is_one(text) {
            Some(Self::Vcd)
        } else if csv::is_sigrok(text) {
            Some(Self::SigrokCsv)
        } else if csv::is_saleae(text) {
            Some(Self::SaleaeCsv)
        } else {
            None
        }
    }
}

/// Whether a capture was all there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// As far as its format can tell.
    Whole,
    /// It ends in the middle; how that shows.
    Cut(&'static str),
}

/// How long the shortest level of a line was, and how often it was so short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortest {
    /// In ticks.
    pub ticks: i64,
    /// How often.
    pub n: u64,
}

/// What is known of a capture when all of it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureSummary {
    /// Where it ends.
    pub end_tick: i64,
    /// What wrote it, as it says itself.
    pub writer: Option<String>,
    /// From one sample to the next, at most.
    pub resolution_ns: u64,
    /// Whether that was stated, by the capture or by the user; else it follows from the times in it.
    pub rate: RateOrigin,
    /// Whether it was all there.
    pub ending: Ending,
    /// States that were neither 0 nor 1 after a level was known, of both lines.
    pub unknown_states: u64,
    /// The shortest level between two edges, of the stimulus and of the answer.
    pub shortest: [Option<Shortest>; 2],
}

/// Where the sample rate is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateOrigin {
    /// The capture or the user.
    Stated,
    /// The steps of the times in the capture.
    Steps,
}

/// A capture while it is read.
#[derive(Debug)]
pub struct Capture {
    decoder: Decoder,
}

#[derive(Debug)]
enum Decoder {
    Vcd(Box<vcd::Vcd>),
    Session(Box<session::Session>),
    Csv(Box<csv::Csv>),
}

impl Capture {
    /// Of a format; `rate` outranks what the capture says.
    #[must_use]
    pub fn new(format: CaptureFormat, wiring: Option<Wiring>, rate: Option<SampleRate>) -> Self {
        let decoder = match format {
            CaptureFormat::Vcd => Decoder::Vcd(Box::new(vcd::Vcd::new(wiring, rate))),
            CaptureFormat::SigrokSession => {
                Decoder::Session(Box::new(session::Session::new(wiring, rate)))
            }
            CaptureFormat::SigrokCsv => {
                Decoder::Csv(Box::new(csv::Csv::new(csv::CsvDialect::Sigrok, wiring, rate)))
            }
            CaptureFormat::SaleaeCsv => {
                Decoder::Csv(Box::new(csv::Csv::new(csv::CsvDialect::Saleae, wiring, rate)))
            }
        };
        Self { decoder }
    }

    /// Adds the edges in `bytes` to `out` until about 32,768 are in it; the number of bytes that are done with.
    /// With fewer edges it needs more bytes behind those that are not done with.
    ///
    /// # Errors
    /// What is wrong with the capture, and where.
    pub fn decode(&mut self, bytes: &[u8], out: &mut Vec<Edge>) -> Result<usize, CaptureError> {
        match &mut self.decoder {
            Decoder::Vcd(vcd) => vcd.decode(bytes, out),
            Decoder::Session(session) => session.decode(bytes, out),
            Decoder::Csv(csv) => csv.decode(bytes, out),
        }
    }

    /// After the last byte; `rest` is what was not done with. Adds the last edges to `out`.
    ///
    /// # Errors
    /// There is nothing in the capture that could be read.
    pub fn finish(
        &mut self,
        rest: &[u8],
        out: &mut Vec<Edge>,
    ) -> Result<CaptureSummary, CaptureError> {
        match &mut self.decoder {
            Decoder::Vcd(vcd) => vcd.finish(rest, out),
            Decoder::Session(session) => session.finish(out),
            Decoder::Csv(csv) => csv.finish(rest, out),
        }
    }

    /// Length of a tick; known before the first edge.
    #[must_use]
    pub fn time_base(&self) -> Option<TimeBase> {
        match &self.decoder {
            Decoder::Vcd(vcd) => vcd.time_base(),
            Decoder::Session(session) => session.time_base(),
            Decoder::Csv(csv) => csv.time_base(),
        }
    }
}
