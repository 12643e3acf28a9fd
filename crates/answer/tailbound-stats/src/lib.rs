// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pure numbers: what a [`Distribution`](tailbound_core::Distribution) says of the wake-ups
//! it holds, and whether that meets a requirement.
//!
//! For whoever has latencies and wants to defend what they say of them. No input or output, no clock, no randomness but
//! from a named seed: the same run gives the same figures everywhere. What the data does not support is a value of its own
//! ([`Quantile::Needs`], [`Quantile::Unknown`], an absent moment), never a number.
//!
//! ```
//! use tailbound_core::{Distribution, Outcome};
//! use tailbound_stats::{Quantile, Summary, quantile, rates};
//!
//! let mut latencies = Distribution::default();
//! (0..5_000).for_each(|i| latencies.add(20_000 + i)); // ns
//! let s = Summary::of(&latencies);
//! assert_eq!((s.n, s.max_ns), (5_000, Some(24_999)));
//! assert!((s.mean_ns.unwrap() - 22_499.5).abs() < 1e-9);
//! assert!((quantile(&latencies, 0.99).ns().unwrap() - 24_950.0).abs() < 25.0);
//! // Five values lie beyond it: too few to state it.
//! assert!(matches!(quantile(&latencies, 0.999), Quantile::Needs { .. }));
//! // None of an hour was later than the deadline: at 95 % they are rarer than one in 20 minutes.
//! assert!(rates::rate_upper(0, 3_600.0, 0.95) * 20.0 * 60.0 < 1.01);
//! // And a script reads what came of a run.
//! assert_eq!(Outcome::Undecided.exit_status(), 5);
//! ```
//!
//! # What is where
//!
//! One run: [`Analysis`], [`Summary`], [`mod@quantile`], [`Moments`], [`Precision`], [`mod@verdict`]. Rare events: [`rates`],
//! [`exceed`], [`anytime`], [`bound`]. Several: [`mod@compare`], [`change`], [`decide`]. Before measuring: [`planning`],
//! [`stopping`]. Below: an example of each, which runs as a test.
//!
//! # Units, errors, features
//!
//! Times are ns, signed (negative = early); rates are per second; probabilities from 0 to 1. A refusal is an error with every
//! reason that applies. There are no features.
//!
//! # Compatibility
//!
//! Rust 1.90. The interface follows semantic versions: before 1.0 a minor version may change it. A figure that changes for the same data is named in the changelog, under *Numbers*.
//!
//! Sentences that carry a judgement (verdict, refusal of a bound, comparison) are made here, where it is made.
//! Not here: recording (`tailbound-rt`), tables, layout and pictures (`tailbound-report`).
//!
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod analysis;
pub mod anytime;
pub mod blocks;
pub mod bound;
pub mod campaign;
pub mod change;
pub mod chi;
pub mod coincidence;
pub mod compare;
pub mod decide;
pub mod exceed;
pub mod extremal;
pub mod hot;
pub mod int256;
pub mod judge;
pub mod loads;
mod median;
pub mod moments;
pub mod normal;
mod optimise;
pub mod p2;
pub mod period;
mod phrases;
pub mod planning;
pub mod precision;
pub mod quantile;
pub mod random;
pub mod rates;
pub mod stopping;
pub mod student;
pub mod summary;
pub mod sweep;
mod tally;
pub mod tasks;
pub mod theory;
pub mod verdict;
pub mod windows;

pub use analysis::Analysis;
pub use blocks::Blocks;
pub use compare::{Comparison, compare};
pub use judge::judge;
pub use moments::{Accumulator, Moments};
pub use p2::P2;
pub use precision::Precision;
pub use quantile::{Mode, Quantile, STANDARD, median, mode, quantile, survival};
pub use summary::Summary;
pub use verdict::verdict;
pub use windows::Windows;
