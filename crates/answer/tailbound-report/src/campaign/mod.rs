// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page of a campaign: published figures beside ours, its claims as they were judged.
//!
//! What a shorter run cannot show is said and not shown.
//! Not here: figures and judgements (`tailbound_stats::campaign`), making the runs (`tailbound-series`).
//!
//! ```text
//! tables.rs  the figures as tables      notes.rs  what differs, what is no longer claimed
//! text.rs, html.rs, json.rs   the renderings
//! contents.rs  which campaigns there are, and what one measures
//! ```

mod contents;
mod html;
mod json;
mod notes;
mod tables;
mod text;

pub use contents::{contents_json, contents_text, list_json, list_text};
pub use html::html;
pub use json::{SCHEMA, json};
pub use text::text;
