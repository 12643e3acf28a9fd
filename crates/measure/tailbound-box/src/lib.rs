// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reactions timed from outside the machine: edges of two lines, pulses and their answers, and
//! captures of logic analysers as a source of both.
//!
//! Units: ticks of the capture's own clock, which a [`TimeBase`] turns into ns.
//! Pure decoding: bytes come in pieces of any size, edges come out, in bounded memory.
//! Not here: files, run records and what a verdict makes of them (`tailbound-import`); ports.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod capture;
mod channel;
mod edge;
mod intervals;
mod latmon;
mod pairing;
pub mod pico;
pub mod stimulus;
mod time_base;

pub use capture::{Capture, CaptureFormat, CaptureSummary, Ending, RateOrigin, Shortest};
pub use channel::Wiring;
pub use edge::{CaptureLine, Edge, EdgeRule, Level, UnknownEdgeRule};
pub use intervals::{Intervals, Spacing};
pub use latmon::{
    LATMON_CELLS_MAX, LATMON_FRAME_BYTES, LATMON_PATIENCE_NS, LATMON_PERIOD_MAX_US, LATMON_PORT,
    LatmonCells, LatmonClient, LatmonCounting, LatmonFault, LatmonRecord, LatmonRequest,
    LatmonSecond, LatmonSpan, RequestDecoder, RequestFault, RequestMessage,
};
pub use pairing::{Answered, EdgeCounts, Pairing, Promptness, PulseOutcome};
pub use time_base::{SampleRate, TimeBase};

/// Why a capture cannot be read: what is wrong, where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct CaptureError {
    /// Where.
    pub place: CapturePlace,
    /// What is wrong and what to do.
    pub reason: String,
}

/// Where in a capture something is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CapturePlace {
    /// A line, from 1.
    Line(u64),
    /// A byte, from 0.
    Byte(u64),
    /// The capture as a whole.
    Whole,
}

impl CaptureError {
    fn line(line: u64, reason: impl Into<String>) -> Self {
        Self { place: CapturePlace::Line(line), reason: reason.into() }
    }
    fn byte(byte: u64, reason: impl Into<String>) -> Self {
        Self { place: CapturePlace::Byte(byte), reason: reason.into() }
    }
    fn whole(reason: impl Into<String>) -> Self {
        Self { place: CapturePlace::Whole, reason: reason.into() }
    }
}
