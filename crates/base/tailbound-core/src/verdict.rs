// SPDX-License-Identifier: MIT OR Apache-2.0
//! The answer of a run, and the exit status that scripts read.
//!
//! Exit statuses: 0 met or nothing required, 1 not met, 2 usage, 3 this
//! machine cannot, 4 a bug of ours, 5 undecided.

use serde::{Deserialize, Serialize};

use crate::words::open_words;

open_words! {
    /// The answer in one word.
    Outcome {
        /// No requirement was given.
        Measured = "measured",
        /// The requirement was met in this run.
        Met = "met",
        /// The requirement was not met in this run.
        NotMet = "not-met",
        /// The figures do not describe this machine, or it could not be measured.
        Unfit = "unfit",
        /// Too short, cut off, or doubtful: neither met nor not met.
        Undecided = "undecided",
    }
}

impl Outcome {
    /// The exit status for scripts.
    #[must_use]
    pub fn exit_status(self) -> u8 {
        match self {
            Self::Measured | Self::Met => 0,
            Self::NotMet => 1,
            Self::Unfit => 3,
            // What a later version answered says nothing here.
            Self::Undecided | Self::Unknown(_) => 5,
        }
    }

    /// The word people see.
    #[must_use]
    pub fn word(&self) -> &str {
        match self {
            Self::NotMet => "not met",
            other => other.as_str(),
        }
    }
}

/// The answer of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// In one word.
    pub outcome: Outcome,
    /// In one plain sentence.
    pub sentence: String,
    /// What the run demonstrates and at what confidence, one sentence each.
    #[serde(default)]
    pub statements: Vec<String>,
    /// Due activations (woken and missed).
    pub due: u64,
    /// Due activations beyond the deadline.
    pub beyond: u64,
    /// Due activations of which a coarse source does not tell.
    #[serde(default)]
    pub beyond_unknown: u64,
}
