// SPDX-License-Identifier: MIT OR Apache-2.0
//! How late can it be beyond what was seen? A bound with its procedure, or the refusal and why.
//!
//! Context: COLD.

pub mod anderson;
pub mod extrapolate;
pub mod gate;
pub mod gpd;
pub mod limits;
pub mod study;
pub mod threshold;
