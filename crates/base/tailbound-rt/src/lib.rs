// SPDX-License-Identifier: MIT OR Apache-2.0
//! What runs while time is measured: the wake-up loop, the log-linear histogram,
//! exact power sums and the rings that carry records out.
//!
//! Context: HOT. No allocation, no lock, no panic, no unsafe; the only way out is
//! the [`Port`] trait, whose implementation in `tailbound-sys` makes two system
//! calls per cycle. Everything here saturates and counts instead of failing.
//! Units: ns, signed where early is possible.
//! Not here: thread set-up (`tailbound-sys`), statistics (`tailbound-stats`).
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]
#![deny(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::unwrap_used,
    clippy::panic
)]
#![deny(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)]

pub mod answer;
pub mod cyclic;
pub mod cyclic_spread;
pub mod h2;
pub mod handover;
pub mod jobs;
pub mod latch;
mod owed;
pub mod poll;
pub mod queue;
pub mod recorder;
pub mod ring;
pub mod skew;
pub mod spread;
pub mod strike;
pub mod sums;
pub mod ticks;
pub mod window;

pub use cyclic::{LoopEnd, Port, Schedule, Wake};
pub use jobs::Jobs;
pub use recorder::{Exceedance, Recorder, Second};
pub use sums::Sums;
