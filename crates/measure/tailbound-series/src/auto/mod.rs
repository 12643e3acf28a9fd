// SPDX-License-Identifier: MIT OR Apache-2.0
//! The experiment that finds which of many changes make a machine less late: each alone, the better
//! half again, those that are left together and each left out, and what is kept once more.
//!
//! Every stage is rounds in random order with the untouched system among them, and
//! every judgement is that of `compare`. Nothing is concluded from the runs that chose: what is
//! kept is measured afresh.
//!
//! ```text
//! design.rs  how many runs of which length     steps.rs  stage by stage, and who goes on
//! cost.rs    what the loads lost               found.rs  what came of it
//! answer.rs  in sentences and for scripts
//! ```
//! Not here: how a set of changes is measured ([`Bench`]: this machine, the lab).
//! Source: Karnin, Koren, Somekh, "Almost Optimal Exploration in Multi-Armed Bandits", 2013
//! (successive halving).

mod answer;
mod cost;
mod design;
mod found;
mod steps;
#[cfg(test)]
mod tests;

pub use answer::Trial;
pub use cost::{Cost, costs};
pub use design::{Design, DesignError};
pub use found::{Answered, CandidateRecord, ExperimentResult, Fate, Stage};
pub use steps::{UNTOUCHED, search};

use tailbound_core::Run;

/// Some changes that are measured together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Set {
    /// Its name in files and tables.
    pub name: String,
    /// The candidates in it, by their place; none: the untouched system.
    pub members: Vec<usize>,
}

/// What a stage measured.
#[derive(Clone, Debug, Default)]
pub struct StageRuns {
    /// All complete runs, with their place in the series.
    pub runs: Vec<Run>,
    /// A signal ended it.
    pub interrupted: bool,
}

/// Measures sets of changes in turn.
pub trait Bench {
    /// Why it could not.
    type Error;

    /// Makes `rounds` rounds of `sets` in random order, under the name `stage`.
    ///
    /// # Errors
    /// When a run cannot be made.
    fn measure(&mut self, stage: &str, sets: &[Set], rounds: u32)
    -> Result<StageRuns, Self::Error>;
}
