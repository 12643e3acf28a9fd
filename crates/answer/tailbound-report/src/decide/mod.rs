// SPDX-License-Identifier: MIT OR Apache-2.0
//! Real time against real fast: what two systems cost and give, in tables, pictures and words.
//!
//! Not here: the arithmetic (`tailbound_stats::decide`).

pub mod benchmarks;
pub mod delay;
pub mod flow;
pub mod page;
pub mod rates;
pub mod sleepers;
pub mod tables;
pub mod text;

pub use page::{SCHEMA, figures, html, json};
pub use text::text;
