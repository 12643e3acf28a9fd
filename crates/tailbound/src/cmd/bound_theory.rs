// SPDX-License-Identifier: MIT OR Apache-2.0
//! `bound --theory`: the theoretical bound from a file of `lab paths --theory --json`, or why this machine has none.
//!
//! Context: COLD.

use std::path::Path;

use serde::Deserialize;
use tailbound_core::Run;
use tailbound_core::limits;
use tailbound_core::theory::TheoryRecord;
use tailbound_host::{Root, preemptirq};
use tailbound_stats::theory::{self, Answer};
use tailbound_sys::given;

use crate::say::Failure;

/// The word for this machine instead of a file.
const HERE: &str = "here";

/// What is read of the file; everything else in it is passed over.
#[derive(Debug, Deserialize)]
struct File {
    kernel: Option<String>,
    theory: Option<TheoryRecord>,
}

/// What the bound is computed from, and it.
#[derive(Debug)]
pub(super) struct Theory {
    pub(super) record: TheoryRecord,
    pub(super) answer: Answer,
    kernel: Option<String>,
}

/// Reads `file`.
///
/// # Errors
/// It is none; or the machine's own kernel was asked for, which has no answer.
pub(super) fn read(file: &Path) -> Result<Theory, Failure> {
    if file == Path::new(HERE) {
        return Err(Failure::cannot(format!(
            "bound --theory here: {}",
            preemptirq::refusal(&Root::real())
        )));
    }
    let name = file.display();
    let bytes = given::read(file, limits::RESULT_BYTES_MAX)
        .map_err(|e| Failure::cannot(format!("{name}: {e}")))?;
    let read: File = serde_json::from_slice(&bytes).map_err(|e| {
        Failure::cannot(format!("{name}: no answer of `tailbound lab paths --theory --json`: {e}"))
    })?;
    let record = read.theory.ok_or_else(|| {
        Failure::cannot(format!(
            "{name}: it has no member `theory`: make it with tailbound lab paths --theory --json"
        ))
    })?;
    let answer = theory::answer(&record);
    answer.holds(&record).map_err(|why| Failure::cannot(format!("{name}: {why}")))?;
    Ok(Theory { record, answer, kernel: read.kernel })
}

impl Theory {
    /// Is it of the kernel of this run?
    ///
    /// # Errors
    /// The run says that it is of another.
    pub(super) fn belongs(&self, run: &Run, name: &str) -> Result<(), Failure> {
        let Some(lab) = &run.header.lab else {
            return Err(Failure::usage(format!(
                "--theory: {name} was not made in the lab, where an instruction is the unit of time: a bound of the lab says nothing of its times"
            )));
        };
        match &self.kernel {
            Some(kernel) if *kernel != lab.kernel.name => Err(Failure::usage(format!(
                "--theory: {name} is of {}, and the bound of {kernel}",
                lab.kernel.name
            ))),
            _ => Ok(()),
        }
    }
}
