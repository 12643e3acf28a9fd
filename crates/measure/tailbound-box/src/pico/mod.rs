// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's side of the box on a Raspberry Pi Pico: what is asked, what is made of the answers.
//!
//! Pure: bytes and times in, bytes and a record out; the caller has the port and the clock.
//! Units: ns of the host's clock, ticks of the box.
//! Not here: the messages and how the box counts (`tailbound-wire`), ports (`tailbound-stimulus`).

mod check;
mod drift;
mod greeting;
mod line;
mod link;
mod look;
mod session;
mod settings;

pub use check::{BoxCheck, BoxCheckReport, LoopBackReport};
pub use drift::{ClockReading, CrystalDrift};
pub use greeting::{BoxRefusal, FIRMWARE};
pub use session::{BoxSession, Streaming};
