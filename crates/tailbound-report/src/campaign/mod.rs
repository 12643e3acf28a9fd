// SPDX-License-Identifier: MIT OR Apache-2.0
//! A campaign: what a publication measured and claims, compared with what was measured here.
//!
//! Context: COLD. Figures are per due activation. What could not be measured says why; what a
//! shorter run cannot show is said and not shown.
//! Not here: the file itself (`tailbound_core::campaign`), making the runs (`tailbound-series`).
//!
//! ```text
//! value.rs    one statistic of one run, with its limits   notes.rs   what differs, what is no longer claimed
//! judge.rs    figures and claims, judged                  tables.rs  the figures as tables
//!                                                         text.rs, html.rs, json.rs   the renderings
//! ```

mod html;
mod json;
mod judge;
mod notes;
mod tables;
mod text;
mod value;

pub use html::html;
pub use json::{SCHEMA, json};
pub use judge::{Judged, Judgement, Row, Word, claims, rows};
pub use text::text;
pub use value::{Value, value};
