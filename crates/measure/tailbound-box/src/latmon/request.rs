// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a client asks of a box.

use super::{LATMON_CELLS_MAX, LATMON_PERIOD_MAX_US};

const BYTES: usize = 8;

/// Pulses that a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatmonRequest {
    period_us: u32,
    cells: u32,
}

/// Why a request is refused. A box answers it as it answers a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestFault {
    /// No such period.
    #[error("a period of {0} µs: latmon has 1 µs to {LATMON_PERIOD_MAX_US} µs")]
    Period(u32),
    /// Too many cells.
    #[error("{0} cells: latmon has at most {LATMON_CELLS_MAX}")]
    Cells(u32),
    /// The stream ends within a request.
    #[error("the request ends after {0} of {BYTES} bytes")]
    Short(usize),
}

/// What arrives at a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestMessage {
    /// Send pulses.
    Start(LatmonRequest),
    /// Send what is left, and the histogram.
    Stop,
    /// The same, because the request cannot be met.
    Refused(RequestFault),
}

impl LatmonRequest {
    /// The bytes that end the pulses.
    pub const STOP: [u8; BYTES] = [0; BYTES];

    /// Pulses of this period, and a histogram of so many cells; 0: none.
    ///
    /// # Errors
    /// [`RequestFault`].
    pub fn new(period_us: u32, cells: u32) -> Result<Self, RequestFault> {
        if !(1..=LATMON_PERIOD_MAX_US).contains(&period_us) {
            return Err(RequestFault::Period(period_us));
        }
        if cells > LATMON_CELLS_MAX {
            return Err(RequestFault::Cells(cells));
        }
        Ok(Self { period_us, cells })
    }

    /// From the end of a sample to the next pulse.
    #[must_use]
    pub fn period_us(self) -> u32 {
        self.period_us
    }

    /// Cells of the histogram.
    #[must_use]
    pub fn cells(self) -> u32 {
        self.cells
    }

    /// Samples of one frame: those of a second if no answer took any time.
    #[must_use]
    pub fn frame_samples(self) -> u32 {
        LATMON_PERIOD_MAX_US / self.period_us
    }

    /// As it is sent.
    #[must_use]
    pub fn bytes(self) -> [u8; BYTES] {
        words(self.period_us, self.cells)
    }
}

fn words(first: u32, second: u32) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    let all = first.to_be_bytes().into_iter().chain(second.to_be_bytes());
    bytes.iter_mut().zip(all).for_each(|(place, byte)| *place = byte);
    bytes
}

/// Reads requests from a stream.
#[derive(Clone, Debug, Default)]
pub struct RequestDecoder {
    kept: Vec<u8>,
}

impl RequestDecoder {
    /// More of the stream; each message is told.
    pub fn push(&mut self, bytes: &[u8], tell: &mut dyn FnMut(RequestMessage)) {
        for byte in bytes {
            self.kept.push(*byte);
            let Some((head, cells)) = self.kept.as_slice().split_first_chunk::<4>() else {
                continue;
            };
            let Some((cells, _)) = cells.split_first_chunk::<4>() else { continue };
            let (period_us, cells) = (u32::from_be_bytes(*head), u32::from_be_bytes(*cells));
            self.kept.clear();
            tell(match LatmonRequest::new(period_us, cells) {
                Ok(request) => RequestMessage::Start(request),
                Err(RequestFault::Period(0)) => RequestMessage::Stop,
                Err(fault) => RequestMessage::Refused(fault),
            });
        }
    }

    /// The stream ends here.
    ///
    /// # Errors
    /// [`RequestFault::Short`]: within a request.
    pub fn end(&self) -> Result<(), RequestFault> {
        if self.kept.is_empty() { Ok(()) } else { Err(RequestFault::Short(self.kept.len())) }
    }
}
