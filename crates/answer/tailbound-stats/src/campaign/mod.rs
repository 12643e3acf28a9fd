// SPDX-License-Identifier: MIT OR Apache-2.0
//! A campaign judged: what a publication measured and claims, compared with what was measured here.
//!
//! Figures are per due activation. What could not be measured says why.
//! Not here: the file itself (`tailbound_core::campaign`), making the runs (`tailbound-series`), the page
//! (`tailbound-report`).
//!
//! ```text
//! given.rs    the file, and the runs of each system       judge.rs    figures and claims, judged
//! value.rs    one statistic of one run, with its limits   phrases.rs  what judgements say of them
//! ```

mod given;
mod judge;
mod phrases;
mod value;

pub use given::{CampaignEvidence, CampaignRun, CampaignSystem, State, share};
pub use judge::{Judged, Judgement, Row, Word, claims, rows};
pub use phrases::{number, part_of, plain, shown, word};
pub use value::{Value, repetitions, value};
