// SPDX-License-Identifier: MIT OR Apache-2.0
//! Primitives of the pictures: scales and ticks, the plot with its axes, the style.
//!
//! Not here: what is drawn (`pictures`).

pub(crate) mod canvas;
pub(crate) mod legend;
pub mod plot;
pub mod scale;
pub mod style;

pub use plot::{Layout, Plot};
pub use scale::{Scale, Unit, number};
