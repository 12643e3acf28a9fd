// SPDX-License-Identifier: MIT OR Apache-2.0
//! The protocol between a latency box of Zephyr (`latmon`) and who asks it for pulses (`latmus`), both roles.
//!
//! Units: ns, µs where the protocol has them. Bytes come in pieces of any size, messages go out. Not here: sockets.
//!
//! ```text
//! client  8 bytes    period in µs, cells                          (big-endian, 32 bits each)
//!                    a period of 0 or a request that is refused: stop
//! box    24 bytes    sum (64), least, greatest (ns), overruns, samples: one a second
//!        24 bytes    the same with 0 samples: the end
//!         4 × cells  a histogram of cells of 1 µs, the last of all that is beyond
//! ```
//! Source: latmon of Zephyr 4.1, as described.

mod client;
mod counting;
mod record;
mod request;
mod second;
mod stimulus;

pub use client::{LatmonClient, LatmonFault};
pub use counting::LatmonCounting;
pub use record::{LatmonCells, LatmonRecord};
pub use request::{LatmonRequest, RequestDecoder, RequestFault, RequestMessage};
pub use second::{LATMON_FRAME_BYTES, LatmonSecond};
pub use stimulus::LatmonSpan;

/// TCP port of the box, and the UDP port to which it sends its address in text until a client comes.
pub const LATMON_PORT: u16 = 2306;
/// Most cells of a histogram.
pub const LATMON_CELLS_MAX: u32 = 1000;
/// Longest period.
pub const LATMON_PERIOD_MAX_US: u32 = 1_000_000;
/// Zephyr's box waits so long for an answer; then the pulse is an overrun and no sample.
pub const LATMON_PATIENCE_NS: u64 = 1_000_000;
const CELL_NS: u64 = 1000;
