// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two systems of a decision: which file belongs to which, and what their runs tell of the machine.
//!
//! Not here: the decision itself (`tailbound_stats::decide`).

pub mod measured;
mod sides;

pub use sides::{Files, Named, Sides, SidesError};
