// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the box and its host say to each other, and how the box counts.
//!
//! Pure: bytes and times in, messages and counts out; no clock, no port, no allocation. The firmware
//! and the host use the same code, so that it is tested on the host. Units: ticks of the box (two
//! cycles of its clock).
//! Not here: pins and ports of the chip (`firmware`), serial ports and run files of the host.
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]
#![deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic)]

mod cells;
mod channel;
mod counters;
mod crc;
mod decoder;
mod frame;
mod intervals;
mod message;
mod payload;
mod worst;

pub use cells::{CELLS, Cells};
pub use channel::{Channel, ChannelLevel, PulseRecord, Reaction};
pub use counters::Counters;
pub use decoder::{Decoder, Losses};
pub use frame::{FRAME_MAX, Frame, FrameError, PAYLOAD_MAX, VERSION, encode};
pub use intervals::{Intervals, Spacing};
pub use message::{
    BoxFault, CELLS_MAX, CellCounts, Chip, Hello, ListPart, LoopBack, Message, MessageError,
    SAMPLES_MAX, SampleBatch, Set, Shelf, Stimulus, WORST_MAX, WorstPiece,
};
pub use worst::{WORST, Worst, WorstEntry};
