// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a search has no answer, by who can mend it.

use std::fmt::Display;

use tailbound_core::FailureKind;
use tailbound_lab::LabError;
use tailbound_run::RunError;
use tailbound_series::SeriesError;
use tailbound_tune::TuneError;

/// A search that has no answer.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The words or files are wrong.
    #[error("{0}")]
    Usage(String),
    /// Not on this machine.
    #[error("{0}")]
    Cannot(String),
    /// A signal ended it: what is known, and how it goes on.
    #[error("{0}")]
    Interrupted(String),
    /// Ours to mend.
    #[error("this is a bug of tailbound: {0}")]
    Bug(String),
    /// The lab's reason.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// A measurement cannot be made on this machine.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The last measurement cannot be made.
    #[error(transparent)]
    Series(#[from] SeriesError),
    /// A profile is none.
    #[error(transparent)]
    Tune(#[from] TuneError),
}

impl SearchError {
    /// The words or files are wrong.
    pub fn usage(text: impl Display) -> Self {
        Self::Usage(text.to_string())
    }
    /// This machine cannot.
    pub fn cannot(text: impl Display) -> Self {
        Self::Cannot(text.to_string())
    }
    /// Who can mend it.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::Usage(_) => FailureKind::Usage,
            Self::Cannot(_) => FailureKind::Cannot,
            Self::Interrupted(_) => FailureKind::CutOff,
            Self::Bug(_) => FailureKind::Bug,
            Self::Lab(e) => e.kind(),
            Self::Run(e) => e.kind(),
            Self::Series(e) => e.kind(),
            Self::Tune(e) => e.kind(),
        }
    }
    /// A signal ended it.
    #[must_use]
    pub fn is_cut_off(&self) -> bool {
        self.kind() == FailureKind::CutOff
    }
}
