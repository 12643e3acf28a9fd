// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is drawn and exchanged in a comparison: rounds, runs or stretches, and how few of them are too few.

use serde::Serialize;

/// What the units are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Design {
    /// Rounds: both systems in each, in random order. Drift cancels.
    Rounds,
    /// Several runs of each system. Drift between them is part of the difference.
    Runs,
    /// Stretches of one run of each system. Drift between them is part of the difference.
    Stretches,
}

impl Design {
    /// Fewest units of each system from which intervals are given: below, no exchange of labels
    /// of six rounds could be rare enough to be 5 %, and stretches are not quite independent.
    #[must_use]
    pub fn units_min(self) -> usize {
        match self {
            Self::Rounds => 6,
            Self::Runs | Self::Stretches => 8,
        }
    }
    /// What one unit is called.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Self::Rounds => "round",
            Self::Runs => "run",
            Self::Stretches => "stretch",
        }
    }
    /// Does drift of the machine cancel?
    #[must_use]
    pub fn is_paired(self) -> bool {
        self == Self::Rounds
    }
}
