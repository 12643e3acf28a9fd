// SPDX-License-Identifier: MIT OR Apache-2.0
//! One workload that is tried, and what came of it.
//!
//! Units: ns. These are the lines of a corpus.

use std::fmt;
use tailbound_core::order;

use serde::{Deserialize, Serialize};
use tailbound_core::Spec;

use crate::hunt::code::Code;

/// A workload: what runs beside the measurement, and where the measurement's timer stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// What runs; never two of one name.
    pub loads: Vec<Spec>,
    /// Interval of the timer.
    pub interval_ns: u64,
    /// Where loads and activations begin among the periods of the kernel.
    pub seed: u32,
}

impl Candidate {
    /// Its loads as `--load` takes them.
    #[must_use]
    pub fn load(&self) -> String {
        let all: Vec<String> = self.loads.iter().map(ToString::to_string).collect();
        if all.is_empty() { "none".to_owned() } else { all.join(",") }
    }

    /// Names of its loads, in their own order.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.loads.iter().map(|l| l.name.as_str()).collect();
        order::by(&mut names, Ord::cmp);
        names
    }

    /// What it is where a seed means nothing.
    #[must_use]
    pub fn without_seed(&self) -> String {
        format!("{} -i {}ns", self.load(), self.interval_ns)
    }

    /// The order of loads and options is no difference that is worth a run.
    pub(crate) fn key(&self) -> String {
        let mut loads = self.loads.clone();
        for load in &mut loads {
            order::by(&mut load.options, Ord::cmp);
        }
        order::by(&mut loads, |a, b| a.name.cmp(&b.name));
        Self { loads, ..self.clone() }.to_string()
    }
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} --seed {}", self.without_seed(), self.seed)
    }
}

/// What one run showed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figures {
    /// The latest wake-up.
    pub latest_ns: i64,
    /// The longest section with interrupts or preemption disabled, where sections were watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub section_ns: Option<i64>,
    /// The longest time in which a thread was to be rescheduled, and was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_ns: Option<i64>,
    /// Which two functions sections lay between; of an [`Entry`] those that no earlier one had.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<String>,
    /// Code of the kernel that was executed, where that is known; of an [`Entry`] what no earlier one executed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// Of an [`Entry`]: earlier ones all of whose own code this one executed too. Each is told some times, until that is
    /// nothing rare any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub again: Vec<u64>,
    /// Why nothing is known of sections, where they should have been watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unwatched: Option<String>,
}

impl Figures {
    /// The longest section of any kind.
    pub(crate) fn longest_ns(&self) -> i64 {
        self.section_ns.unwrap_or(0).max(self.pending_ns.unwrap_or(0))
    }
}

/// What came of a candidate: figures, or why there are none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It ran.
    Ran(Figures),
    /// It could not be run.
    Failed(String),
}

impl Outcome {
    /// The figures, if it ran.
    #[must_use]
    pub const fn figures(&self) -> Option<&Figures> {
        match self {
            Self::Ran(figures) => Some(figures),
            Self::Failed(_) => None,
        }
    }
}

/// Where a candidate came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// A single built-in load, or none.
    Base,
    /// A single load with its options at their ends.
    Corner,
    /// Drawn from everything that there is.
    Drawn,
    /// A change of an earlier one, by its number.
    Changed(u64),
    /// Of two earlier ones.
    Crossed(u64, u64),
}

/// A line of the corpus.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its number, from 0.
    pub nr: u64,
    /// Where it came from.
    pub origin: Origin,
    /// What was run.
    pub candidate: Candidate,
    /// What came of it.
    pub outcome: Outcome,
}

impl Entry {
    /// The latest wake-up, if it ran.
    #[must_use]
    pub fn latest_ns(&self) -> Option<i64> {
        self.outcome.figures().map(|f| f.latest_ns)
    }
}
