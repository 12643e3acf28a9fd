// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pure numbers: what a [`Distribution`](tailbound_core::Distribution) says of the wake-ups
//! it holds, and whether that meets a requirement.
//!
//! Units: ns, signed (negative = early); rates per second.
//! Rules of the room: no input or output, no clock, no randomness but from a named seed, so the
//! same run gives the same figures everywhere; what the data does not support is a value of its own
//! ([`Quantile::Needs`], [`Quantile::Unknown`], an absent moment), never a number.
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
