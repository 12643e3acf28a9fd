// SPDX-License-Identifier: MIT OR Apache-2.0
//! `bound --theory FILE`: the theoretical bound from an answer of `lab paths --theory --json` or of `bound --theory here --json`.

use std::path::Path;

use serde::Deserialize;
use tailbound_core::Run;
use tailbound_core::limits;
use tailbound_core::record::Fact;
use tailbound_core::theory::TheoryRecord;
use tailbound_stats::theory::{self, TheoreticalBound};
use tailbound_sys::given;

use super::bound_here::Here;
use crate::say::Failure;

/// The word for this machine instead of a file.
pub(super) const HERE: &str = "here";

/// What is read of the file; everything else in it is passed over.
#[derive(Debug, Deserialize)]
struct File {
    kernel: Option<String>,
    theory: Option<Member>,
    /// It was recorded on a machine.
    #[serde(default)]
    machine: bool,
}

/// As `lab paths` writes it, or as `bound` does.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Member {
    Record(TheoryRecord),
    Both { record: TheoryRecord },
}

/// What the bound is computed from, and it.
#[derive(Debug)]
pub(super) struct Theory {
    pub(super) record: TheoryRecord,
    pub(super) answer: TheoreticalBound,
    pub(super) kernel: Option<String>,
    /// It was recorded on a machine, and is not of the lab.
    pub(super) machine: bool,
    /// Recorded just now.
    pub(super) here: Option<Here>,
}

/// Reads `file`.
///
/// # Errors
/// It is none, or contradicts itself.
pub(super) fn read(file: &Path) -> Result<Theory, Failure> {
    let name = file.display();
    let bytes = given::read(file, limits::RESULT_BYTES_MAX)
        .map_err(|e| Failure::cannot(format!("{name}: {e}")))?;
    let read: File = serde_json::from_slice(&bytes).map_err(|e| {
        Failure::cannot(format!("{name}: no answer of `tailbound lab paths --theory --json` or `tailbound bound --theory here --json`: {e}"))
    })?;
    let record = read.theory.ok_or_else(|| {
        Failure::cannot(format!(
            "{name}: it has no member `theory`: make it with tailbound lab paths --theory --json"
        ))
    })?;
    let record = match record {
        Member::Record(record) | Member::Both { record } => record,
    };
    let answer = theory::answer(&record);
    answer.holds(&record).map_err(|why| Failure::cannot(format!("{name}: {why}")))?;
    Ok(Theory { record, answer, kernel: read.kernel, machine: read.machine, here: None })
}

impl Theory {
    /// Is it of the kernel of this run?
    ///
    /// # Errors
    /// The run says that it is of another.
    pub(super) fn belongs(&self, run: &Run, name: &str) -> Result<(), Failure> {
        if self.machine {
            return self.belongs_here(run, name);
        }
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

    /// The same of a machine's.
    fn belongs_here(&self, run: &Run, name: &str) -> Result<(), Failure> {
        if run.header.lab.is_some() {
            return Err(Failure::usage(format!(
                "--theory: {name} was made in the lab, and the bound on a machine"
            )));
        }
        let release = run.header.machine.get("kernel.release").and_then(Fact::as_str);
        match (&self.kernel, release) {
            (Some(kernel), Some(release)) if kernel != release => Err(Failure::usage(format!(
                "--theory: {name} is of {release}, and the bound of {kernel}"
            ))),
            _ => Ok(()),
        }
    }
}
