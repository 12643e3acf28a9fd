// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cycles of threads that were watched from outside, for people and scripts: how each is paced, its
//! figures, what its cycles were made of, and the longest of them moment by moment.
//!
//! Units: ns. Names of threads, interrupts and calls come from files: they are escaped
//! where they are written.
//! Not here: how cycles are found (`tailbound-trace`), the way to a late wake-up (`crate::blame`).

mod answer;
mod html;
mod json;
mod rows;
mod text;
mod words;

pub use answer::{CommandEnd, WatchAnswer, WatchQuestions};
pub use html::html;
pub(crate) use html::section;
pub use json::json;
pub(crate) use text::short;
pub use text::{headline, text};
