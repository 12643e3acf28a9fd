// SPDX-License-Identifier: MIT OR Apache-2.0
//! A campaign: what a publication measured and claims, compared with what was measured here.
//!
//! Context: COLD. Figures are per due activation. What could not be measured says why; what a
//! shorter run cannot show is said and not shown.
//! Not here: the file itself (`tailbound_core::campaign`), making the runs (`tailbound`).
//!
//! ```text
//! given.rs    the file, and the runs of each system      notes.rs   what differs, what is no longer claimed
//! value.rs    one statistic of one run, with its limits   tables.rs  the figures as tables
//! judge.rs    figures and claims, judged                  text.rs, html.rs, json.rs   the renderings
//! ```

mod given;
mod html;
mod json;
mod judge;
mod notes;
mod tables;
mod text;
mod value;

pub use given::{Given, Measured, Place, State, share};
pub use html::html;
pub use json::{SCHEMA, json};
pub use judge::{Judged, Judgement, Row, Word, claims, rows};
pub use text::text;
pub use value::{Value, value};
