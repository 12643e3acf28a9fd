// SPDX-License-Identifier: MIT OR Apache-2.0
//! The model of the threads that a run watched, and deadlines that a person gives them.

use tailbound_core::Run;
use tailbound_core::tasks::Model;
use tailbound_core::units::{ParseTimeError, parse_ns};

use super::what_if::{WhatIfError, named};

/// The threads of `run` as tasks, with what they were held against when they were watched.
#[must_use]
pub fn of_run(run: &Run) -> Model {
    let mut model = Model::of(&run.tasks);
    for (task, record) in model.tasks.iter_mut().zip(&run.tasks) {
        let watched = run.cycles.iter().find(|c| c.thread == record.thread);
        task.deadline_ns = watched.and_then(|c| c.deadline_ns);
        task.own_execution_ns = watched.and_then(|c| c.execution.max_ns);
    }
    model
}

/// Why a text is no deadline of a thread.
#[derive(Debug, thiserror::Error)]
pub enum DeadlineError {
    /// It has another form.
    #[error("`{0}` is not NAME=TIME")]
    Form(String),
    /// Its time is none.
    #[error(transparent)]
    Time(#[from] ParseTimeError),
    /// Its time is over before it began.
    #[error("{0} is not above zero")]
    NotAboveZero(String),
    /// There is no such thread.
    #[error(transparent)]
    Thread(#[from] WhatIfError),
}

/// Takes `NAME=TIME` into the model as it is and as it would be; an added thread is only in the latter.
///
/// # Errors
/// [`DeadlineError`].
pub fn deadline(text: &str, model: &mut Model, then: &mut Model) -> Result<(), DeadlineError> {
    let (name, time) = text.rsplit_once('=').ok_or_else(|| DeadlineError::Form(text.to_owned()))?;
    let ns = parse_ns(time)?;
    if ns <= 0 {
        return Err(DeadlineError::NotAboveZero(time.to_owned()));
    }
    named(then, name)?.deadline_ns = Some(ns);
    if let Ok(task) = named(model, name) {
        task.deadline_ns = Some(ns);
    }
    Ok(())
}
