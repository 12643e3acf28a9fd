// SPDX-License-Identifier: MIT OR Apache-2.0
//! Many runs as a table of kernels and loads: six statistics of each, and their curves
//! over one another, one colour a kernel and a pair of pictures per load.
//!
//! Figures are per due activation. A cell without a run says why; nothing is left blank.
//! Not here: making the runs (`tailbound-lab`), one run's own report ([`crate::html()`]).
//! Source: C. Williams, "An overview of realtime Linux" (2008): the six statistics.
//!
//! ```text
//! grid.rs     cells in their places, looks     notes.rs   what a reader must mind
//! sections.rs the longest sections            ending.rs  one page, and one exit status
//! tables.rs   the figures as tables            text.rs, html.rs, json.rs, picture.rs   the renderings
//! ```

mod ending;
mod grid;
mod html;
mod json;
mod notes;
mod picture;
mod sections;
mod tables;
mod text;

pub use ending::{answer_json, answer_text, exit_status, files_text, page};
pub use grid::{Cell, CellFailure, Labels};
pub use html::html;
pub use json::{SCHEMA, json};
pub use picture::svg;
pub use text::text;
