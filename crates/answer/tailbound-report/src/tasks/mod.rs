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
use tailbound_stats::tasks::{ResponseTimes, analyse};

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

/// What `say` says of watched threads as tasks, each wait of theirs as long as the bound.
pub fn with_latency<T>(
    name: &str,
    records: &[TaskRecord],
    deadline_ns: Option<i64>,
    latency: &LatencyBound,
    say: impl FnOnce(&TaskReport<'_>) -> T,
) -> T {
    let mut model = Model::of(records).with_latency_bound(latency.ns);
    model.tasks.iter_mut().for_each(|t| t.deadline_ns = deadline_ns);
    let answer = analyse(&model);
    let latency = Some(latency.clone());
    let name = name.to_owned();
    say(&TaskReport { name, model: &model, answer: &answer, records, what_if: None, latency })
}
