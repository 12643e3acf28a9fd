// SPDX-License-Identifier: MIT OR Apache-2.0
//! A theoretical bound from an answer of `lab paths --theory --json` or of `bound --theory here --json`.
//!
//! Everything else in such an answer is passed over. Not here: reading files.

use serde::Deserialize;
use tailbound_core::Run;
use tailbound_core::record::Fact;
use tailbound_core::theory::TheoryRecord;

use super::{BrokenBound, Model, TheoreticalBound, answer};

/// What is read of the file.
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

/// A bound, what it is computed from, and of which system it is.
#[derive(Clone, Debug)]
pub struct StatedBound {
    /// What it is computed from.
    pub record: TheoryRecord,
    /// It.
    pub answer: TheoreticalBound,
    /// Of which kernel, where that is known.
    pub kernel: Option<String>,
    /// It was recorded on a machine, and is not of the lab.
    pub machine: bool,
}

/// Why a text holds no bound.
#[derive(Debug, thiserror::Error)]
pub enum StatedBoundError {
    /// It is something else.
    #[error(
        "no answer of `tailbound lab paths --theory --json` or `tailbound bound --theory here --json`: {0}"
    )]
    Foreign(#[from] serde_json::Error),
    /// It is such an answer, and has no bound.
    #[error("it has no member `theory`: make it with tailbound lab paths --theory --json")]
    Absent,
    /// It contradicts itself.
    #[error(transparent)]
    Contradiction(#[from] BrokenBound),
}

/// Why a bound is of no use for a run or a kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OtherSystem {
    /// The bound is of the lab, the run is not.
    #[error(
        "{0} was not made in the lab, where an instruction is the unit of time: a bound of the lab says nothing of its times"
    )]
    RunOfMachine(String),
    /// The run is of the lab, the bound is not.
    #[error("{0} was made in the lab, and the bound on a machine")]
    RunOfLab(String),
    /// They are of two kernels.
    #[error("{name} is of {is}, and the bound of {bound}")]
    Kernel {
        /// The run.
        name: String,
        /// Its kernel.
        is: String,
        /// That of the bound.
        bound: String,
    },
    /// A bound of the lab, where one of a machine is needed.
    #[error(
        "{0} was made in the lab, where an instruction is the unit of time: it says nothing of a machine's. Make one here with tailbound bound --theory here --json, or give a time"
    )]
    OfLab(String),
    /// It is of another kernel than that which runs.
    #[error("{file} is of the kernel {is}, and this one is {runs}")]
    Here {
        /// The bound's file.
        file: String,
        /// Its kernel.
        is: String,
        /// That which runs.
        runs: String,
    },
    /// It was refused.
    #[error("{file} has no bound: {}", .why.join("; "))]
    Refused {
        /// The bound's file.
        file: String,
        /// Why.
        why: Vec<String>,
    },
    /// No model that holds for every wake-up has an answer.
    #[error("{0} has no bound with interrupts as seen")]
    NoModel(String),
}

impl StatedBound {
    /// From the bytes of such an answer.
    ///
    /// # Errors
    /// [`StatedBoundError`].
    pub fn parse(bytes: &[u8]) -> Result<Self, StatedBoundError> {
        let read: File = serde_json::from_slice(bytes)?;
        let record = match read.theory.ok_or(StatedBoundError::Absent)? {
            Member::Record(record) | Member::Both { record } => record,
        };
        let answer = answer(&record);
        answer.holds(&record)?;
        Ok(Self { record, answer, kernel: read.kernel, machine: read.machine })
    }

    /// Is it of the kernel of the run that people call `name`?
    ///
    /// # Errors
    /// The run says that it is of another.
    pub fn belongs(&self, run: &Run, name: &str) -> Result<(), OtherSystem> {
        let is = match (&run.header.lab, self.machine) {
            (Some(_), true) => return Err(OtherSystem::RunOfLab(name.to_owned())),
            (None, false) => return Err(OtherSystem::RunOfMachine(name.to_owned())),
            (Some(lab), false) => Some(lab.kernel.name.as_str()),
            (None, true) => run.header.machine.get("kernel.release").and_then(Fact::as_str),
        };
        match (&self.kernel, is) {
            (Some(bound), Some(is)) if bound != is => Err(OtherSystem::Kernel {
                name: name.to_owned(),
                is: is.to_owned(),
                bound: bound.clone(),
            }),
            _ => Ok(()),
        }
    }

    /// How long a wake-up can take on a machine whose kernel is `release`, where that is known; `file` is what
    /// the bound is from.
    ///
    /// # Errors
    /// It is of another system, or has no bound.
    pub fn latency_ns(&self, file: &str, release: Option<&str>) -> Result<i64, OtherSystem> {
        let named = || file.to_owned();
        if !self.machine {
            return Err(OtherSystem::OfLab(named()));
        }
        if let (Some(of), Some(release)) = (&self.kernel, release)
            && of != release
        {
            let (is, runs) = (of.clone(), release.to_owned());
            return Err(OtherSystem::Here { file: named(), is, runs });
        }
        if !self.answer.refused.is_empty() {
            let why = self.answer.refused.clone();
            return Err(OtherSystem::Refused { file: named(), why });
        }
        // The greatest of the models that hold for every wake-up, as far as they have an answer.
        let bound = |model| self.answer.of(model).and_then(|by| by.latency_ns);
        let all = [Model::Window, Model::WindowCounts, Model::Sporadic];
        all.into_iter().filter_map(bound).max().ok_or_else(|| OtherSystem::NoModel(named()))
    }
}
