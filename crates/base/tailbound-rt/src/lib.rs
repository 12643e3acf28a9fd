// SPDX-License-Identifier: MIT OR Apache-2.0
//! What runs while time is measured: the wake-up loop, the log-linear histogram,
//! exact power sums and the rings that carry records out.
//!
//! For whoever measures how late a thread wakes up, and wants nothing of the measurement in the figure: `no_std`, no
//! dependency, no allocation, no lock, no panic, no unsafe. The only way out is the [`Port`] trait, for which two system
//! calls a cycle are enough. `tailbound-sys` has one for Linux; a test has a clock of its own:
//!
//! ```
//! use core::sync::atomic::AtomicBool;
//! use tailbound_rt::{LoopEnd, Port, Recorder, Schedule, Wake, cyclic};
//!
//! /// A clock on which each sleep ends 3 µs late, and one of them 2.5 ms.
//! struct Simulated {
//!     now_ns: i64,
//!     sleeps: u64,
//! }
//!
//! impl Port for Simulated {
//!     fn sleep_until(&mut self, due_ns: i64) -> Wake {
//!         self.sleeps += 1;
//!         self.now_ns = due_ns + if self.sleeps == 10 { 2_500_000 } else { 3_000 };
//!         Wake::Due
//!     }
//!     fn now_ns(&mut self) -> i64 {
//!         self.now_ns
//!     }
//! }
//!
//! // Half a megabyte: not for a stack.
//! static RECORDER: Recorder = Recorder::new();
//! let schedule = Schedule { first_ns: 0, interval_ns: 1_000_000, activations: 100 };
//! let mut port = Simulated { now_ns: 0, sleeps: 0 };
//! let end = cyclic::run(&mut port, &schedule, &RECORDER, &AtomicBool::new(false));
//! assert_eq!(end, LoopEnd::Complete);
//!
//! // Any other thread may look, at any time.
//! let (woken, missed) = (RECORDER.wakeups(), RECORDER.missed());
//! assert_eq!((woken.n, woken.max_ns), (98, Some(2_500_000)));
//! // Two activations fell due while it was late: 1.5 and 0.5 ms they would have been.
//! assert_eq!((missed.n, missed.max_ns, missed.min_ns), (2, Some(1_500_000), Some(500_000)));
//! ```
//!
//! # What is where
//!
//! [`cyclic`] is the loop, [`recorder`] what it writes to, [`h2`] the layout of the histogram, [`sums`] exact moments of
//! 128 bits, [`ring`] and [`latch`] what carries records to another thread. The loops of other probes: [`handover`],
//! [`poll`], [`window`], [`queue`], [`strike`], [`answer`].
//!
//! # Units, errors, features
//!
//! Times are ns in `i64`, signed where early is possible. Nothing returns an error: everything saturates and counts, and
//! what a full ring dropped is [`Recorder::dropped`]. There are no features.
//!
//! # Compatibility
//!
//! Rust 1.90. The interface follows semantic versions: before 1.0 a minor version may change it. What is written to files is described by `tailbound-core`.
//!
//! Context: HOT.
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
