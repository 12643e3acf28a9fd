// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads as tasks of schedulability analysis: what their jobs were seen to do, and the model of it.
//!
//! Units: ns. A job is what a thread does from being released (woken for its next
//! cycle) to its end (it waits for the next release).
//! Documentation: docs/tasks.md.
//! Not here: how jobs are found in a trace (`tailbound-trace`), the arithmetic (`tailbound-stats`),
//! rendering (`tailbound-report`).

mod file;
mod job;
mod model;
mod record;

pub use file::{TaskFileError, parse};
pub use job::Job;
pub use model::{Arrivals, Model, Task};
pub use record::{Arrival, ArrivalModel, Observed, TaskRecord};
