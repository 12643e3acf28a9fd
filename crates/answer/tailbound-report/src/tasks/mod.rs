// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads as tasks, for people and scripts: the model, the bounds beside what was seen, what each bound
//! is made of, and what changes if something were otherwise.
//!
//! Units: ns in, text out.
//! Not here: the analysis (`tailbound_stats::tasks`).

mod json;
mod rows;
mod text;

pub use json::{SCHEMA, json};
pub use text::text;

use tailbound_core::tasks::{Model, TaskRecord};
use tailbound_stats::tasks::ResponseTimes;

/// All that is told.
#[derive(Clone, Debug)]
pub struct TaskReport<'a> {
    /// The file's name.
    pub name: String,
    /// The model as it is.
    pub model: &'a Model,
    /// Its bounds.
    pub answer: &'a ResponseTimes,
    /// What was seen, for a model of a run.
    pub records: &'a [TaskRecord],
    /// What would be otherwise, in words, and the bounds then.
    pub what_if: Option<(Vec<String>, &'a ResponseTimes)>,
    /// The bound on the scheduling latency that the model was given.
    pub latency: Option<LatencyBound>,
}

/// A bound on the scheduling latency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LatencyBound {
    /// It.
    pub ns: i64,
    /// Where it is from, in words.
    pub from: String,
}
