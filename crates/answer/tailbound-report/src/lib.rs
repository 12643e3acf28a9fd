// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pure rendering of runs: text for terminals and pipes, JSON for scripts, SVG pictures,
//! and one HTML file that works offline.
//!
//! Units: ns in, `83.4 µs` out for people and ns for scripts.
//! Not here: any input or output, any measuring, any statistics (`tailbound-stats`).
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod bins;
pub mod bisect;
pub mod blame;
pub mod bound;
pub mod brief;
pub mod campaign;
pub mod cases;
pub mod changes;
pub mod compare;
pub mod cycles;
pub mod decide;
pub mod digest;
pub mod escape;
pub mod experiment;
pub mod export;
pub mod figures;
pub mod history;
pub mod hot;
pub mod html;
pub mod integrity;
pub mod json;
pub mod label;
pub mod limits;
pub mod live;
pub mod machine;
pub mod matrix;
pub mod named;
pub mod next_step;
pub mod paths;
pub mod phases;
pub mod pictures;
pub mod planning;
pub mod precision;
pub mod reasons;
pub mod rules;
pub mod site;
mod split;
pub mod svg;
pub mod sweep;
pub mod table;
pub mod tasks;
pub mod text;
pub mod theory;
mod unitless;
pub mod why;
pub mod worst;

pub use brief::brief;
pub use html::html;
pub use json::json;
pub use text::ink::{Color, own_colors};
pub use text::{Style, text};
