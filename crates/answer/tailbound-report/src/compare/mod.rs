// SPDX-License-Identifier: MIT OR Apache-2.0
//! Systems compared: the answer as sentence, tables and JSON, and in what else they differ.
//!
//! Not here: the statistics (`tailbound_stats::compare`), pictures
//! (`pictures::compared`), the page (`html`).

pub mod answer;
pub mod differing;
pub mod plain;

pub use answer::{Answer, Proof};
pub use differing::{Differences, differences};
pub use plain::{comparison, table};
