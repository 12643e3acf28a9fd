// SPDX-License-Identifier: MIT OR Apache-2.0
//! The client's side of a measurement: what a box sends, until its histogram.

use super::record::LatmonRecord;
use super::request::LatmonRequest;
use super::second::{LATMON_FRAME_BYTES, LatmonSecond};

/// Frames that a box may send and a client keeps: 12 days.
const SECONDS_MAX: usize = 1 << 20;

/// Why what came is no answer of a box. What came before it stands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LatmonFault {
    /// A frame cannot be.
    #[error("frame {frame}: {why}. This is no latmon, or one of another layout")]
    Frame {
        /// From 1.
        frame: u64,
        /// What is wrong with it.
        why: &'static str,
    },
    /// More than were asked for.
    #[error("{0} bytes came after the histogram")]
    After(usize),
    /// More frames than are kept.
    #[error("more than {SECONDS_MAX} frames came")]
    Frames,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaited {
    Frame,
    Cells,
    Nothing,
}

/// One measurement, from the request on.
#[derive(Clone, Debug)]
pub struct LatmonClient {
    record: LatmonRecord,
    awaited: Awaited,
    kept: Vec<u8>,
}

impl LatmonClient {
    /// After this request was sent.
    #[must_use]
    pub fn new(request: LatmonRequest) -> Self {
        Self {
            record: LatmonRecord::new(request),
            awaited: Awaited::Frame,
            kept: Vec::with_capacity(LATMON_FRAME_BYTES),
        }
    }

    /// More of the stream.
    ///
    /// # Errors
    /// [`LatmonFault`].
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<(), LatmonFault> {
        while !bytes.is_empty() {
            let wanted = match self.awaited {
                Awaited::Frame => LATMON_FRAME_BYTES,
                Awaited::Cells => 4,
                Awaited::Nothing => return Err(LatmonFault::After(bytes.len())),
            };
            let taken = bytes.len().min(wanted.saturating_sub(self.kept.len()));
            let (head, rest) = bytes.split_at(taken);
            self.kept.extend_from_slice(head);
            bytes = rest;
            if self.kept.len() < wanted {
                continue;
            }
            match self.awaited {
                Awaited::Frame => self.frame()?,
                Awaited::Cells | Awaited::Nothing => self.cell(),
            }
            self.kept.clear();
        }
        Ok(())
    }

    fn frame(&mut self) -> Result<(), LatmonFault> {
        let Some((bytes, _)) = self.kept.split_first_chunk::<LATMON_FRAME_BYTES>() else {
            return Ok(());
        };
        let second = LatmonSecond::read(bytes);
        if let Some(why) = second.contradiction() {
            let frame = self.record.seconds().len() as u64 + 1;
            return Err(LatmonFault::Frame { frame, why });
        }
        if second.samples > 0 {
            if self.record.seconds().len() == SECONDS_MAX {
                return Err(LatmonFault::Frames);
            }
            self.record.add(second);
            return Ok(());
        }
        self.record.end(second.overruns);
        self.awaited = match self.record.request().cells() {
            0 => Awaited::Nothing,
            _ => Awaited::Cells,
        };
        Ok(())
    }

    fn cell(&mut self) {
        let count = self.kept.iter().fold(0u32, |sum, byte| sum << 8 | u32::from(*byte));
        if self.record.add_cell(count) == self.record.request().cells() as usize {
            self.awaited = Awaited::Nothing;
        }
    }

    /// Everything that was asked for came.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.awaited == Awaited::Nothing
    }

    /// What came so far.
    #[must_use]
    pub fn record(&self) -> &LatmonRecord {
        &self.record
    }

    /// What came.
    #[must_use]
    pub fn into_record(self) -> LatmonRecord {
        self.record
    }
}
