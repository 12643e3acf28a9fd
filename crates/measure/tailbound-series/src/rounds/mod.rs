// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rounds: runs of several variants in turn, in random order.
//!
//! Runs that are complete are kept, so the same series in the same folder resumes one that was
//! stopped, or makes it longer.
//!
//! ```text
//! series.rs  what is compared, in which order      description.rs  what a folder says of its series
//! make.rs    round by round, the runs that are not there yet
//! words.rs   variants as people write them, and how far it is
//! ```

mod description;
mod line;
mod make;
mod series;
mod words;

pub use description::{DescriptionError, NAME_MAX, ROUNDS_MAX, is_name, variants};
pub use line::SeriesLine;
pub use make::{Next, Progress, make};
pub use series::{Series, Variant};
pub use words::{VariantError, comparable, named_words};
