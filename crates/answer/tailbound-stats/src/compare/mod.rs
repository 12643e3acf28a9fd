// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two or more systems side by side: the plain table, and the statistics of their difference.
//!
//! Units: ns, ratios without.
//!
//! ```text
//! units   block (a round, run or stretch), stretches (of a single run)
//! figures matrix (units × buckets) → resample (bootstrap, exchange of labels)
//! answer  interval → margin (a word) → difference → sentence
//! beside  table (plain figures), shift and bands (pictures)
//! ```
//! Method and measured error rates: `docs/compare.md`.
//! Not here: rendering, and what else differs between two machines (`tailbound-report`).

pub mod bands;
pub mod block;
pub mod design;
pub mod difference;
mod distance;
pub mod exceedance;
pub mod interval;
pub mod margin;
mod matrix;
pub mod refusal;
mod resample;
pub mod sentence;
pub mod settings;
pub mod shift;
pub mod slices;
pub mod stretches;
pub mod systems;
pub mod table;

pub use block::Block;
pub use design::Design;
pub use difference::{Difference, Feature, difference};
pub use margin::{Margin, Word};
pub use settings::{MarginError, Settings};
pub use systems::{System, Systems, distinct};
pub use table::{Cell, ComparedContext, ComparedRun, Comparison, Row, compare};
