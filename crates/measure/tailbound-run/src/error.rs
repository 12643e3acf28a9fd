// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a run could not be made, by who can mend it.
//!
//! Every one of these is found before anything is started, or leaves what
//! was measured so far in the run file.

use tailbound_core::FailureKind;

/// A run that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The words are wrong.
    #[error("{0}")]
    Usage(String),
    /// This machine or this user cannot.
    #[error("{0}")]
    Cannot(String),
}

impl RunError {
    /// Who can mend it.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::Usage(_) => FailureKind::Usage,
            Self::Cannot(_) => FailureKind::Cannot,
        }
    }
}
