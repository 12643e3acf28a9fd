// SPDX-License-Identifier: MIT OR Apache-2.0
//! What came of an experiment: every stage, and the fate of every candidate with its evidence.

use serde::Serialize;
use tailbound_core::number::Real as _;
use tailbound_stats::compare::refusal::Refusal;
use tailbound_stats::compare::{Difference, Word};

use super::Set;
use super::cost::Cost;

/// A set against the reference of its stage.
#[derive(Clone, Debug)]
pub struct Answered {
    /// The set.
    pub set: Set,
    /// Its difference from the reference, or why there is no statement.
    pub difference: Result<Difference, Refusal>,
    /// What the loads lost by it.
    pub costs: Vec<Cost>,
}

impl Answered {
    /// What can be said of it.
    #[must_use]
    pub fn word(&self) -> Option<Word> {
        self.difference.as_ref().ok().map(|d| d.word)
    }

    /// How much earlier its late activations are: the mean of the logarithms of the ratios of p99
    /// and above and of the block maximum; less is better.
    #[must_use]
    pub fn score(&self) -> f64 {
        let Ok(difference) = &self.difference else { return 0.0 };
        let late = difference.features.iter().filter(|f| f.probability.is_none_or(|p| p >= 0.99));
        let logs: Vec<f64> =
            late.filter_map(|f| f.ratio.as_ref()).map(|r| r.estimate.ln()).collect();
        if logs.is_empty() {
            return 0.0;
        }
        logs.iter().sum::<f64>() / logs.len().real()
    }
}

/// One stage.
#[derive(Clone, Debug)]
pub struct Stage {
    /// Its name: `1-alone`, `2-again`, `3-together`, `4-kept`.
    pub name: String,
    /// Its rounds.
    pub rounds: u32,
    /// What all sets are compared with.
    pub reference: String,
    /// The candidates in that.
    pub all: Vec<usize>,
    /// All sets but that one.
    pub answers: Vec<Answered>,
}

/// What became of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// The experiment was ended before it was decided.
    Open,
    /// Later by more than the margin.
    Worse,
    /// It makes no difference that matters.
    NoDifference,
    /// It improves, and others do more than it.
    OthersHelpMore,
    /// Its runs could not say whether it helps.
    Undecided,
    /// Without it the others are as good.
    NoHelp,
    /// It helps, and is kept.
    Kept,
    /// It seemed to help, and what was kept with it did not when it was measured again.
    NotConfirmed,
}

impl Fate {
    /// For people.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Open => "not decided",
            Self::Worse => "not kept: it makes late activations later",
            Self::NoDifference => "not kept: no difference that matters",
            Self::OthersHelpMore => "not kept: others help more",
            Self::Undecided => "undecided, not kept: these runs do not show whether it helps",
            Self::NoHelp => "not kept: without it the others are as good",
            Self::Kept => "kept",
            Self::NotConfirmed => "not kept: not confirmed by the last stage",
        }
    }
}

/// A candidate and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CandidateRecord {
    /// Its place among the candidates.
    pub candidate: usize,
    /// What became of it.
    pub fate: Fate,
}

/// All of it.
#[derive(Clone, Debug, Default)]
pub struct ExperimentResult {
    /// The stages, in their order.
    pub stages: Vec<Stage>,
    /// Every candidate.
    pub tried: Vec<CandidateRecord>,
    /// A signal ended it: nothing is kept.
    pub interrupted: bool,
}

impl ExperimentResult {
    /// The candidates that are kept.
    #[must_use]
    pub fn kept(&self) -> Vec<usize> {
        self.tried.iter().filter(|t| t.fate == Fate::Kept).map(|t| t.candidate).collect()
    }

    /// The last answer about `candidate` alone against the untouched system, with its stage.
    #[must_use]
    pub fn alone(&self, candidate: usize) -> Option<(&Stage, &Answered)> {
        let single = |a: &&Answered| a.set.members == [candidate];
        let untouched = self.stages.iter().rev().filter(|s| s.reference == super::UNTOUCHED);
        untouched.into_iter().find_map(|s| Some((s, s.answers.iter().find(single)?)))
    }

    /// What all others are without `candidate`, against all of them.
    #[must_use]
    pub fn without(&self, candidate: usize) -> Option<&Answered> {
        let with = |a: &Answered| a.set.members.contains(&candidate);
        let out = |a: &&Answered| !a.set.members.is_empty() && !with(a);
        // The last stage that asked. It was among those that were left if a set holds it.
        let stages = self.stages.iter().rev().filter(|s| s.reference != super::UNTOUCHED);
        stages
            .into_iter()
            .find_map(|s| s.all.contains(&candidate).then(|| s.answers.iter().find(out)).flatten())
    }

    /// What was kept against the untouched system, measured after everything was decided.
    #[must_use]
    pub fn confirmed(&self) -> Option<&Answered> {
        self.stages.last().filter(|s| s.name.ends_with("kept"))?.answers.first()
    }
}
