// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a run could not be made, by who can mend it.
//!
//! Context: COLD. Every one of these is found before anything is started, or leaves what
//! was measured so far in the run file.

/// A run that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The words are wrong: exit status 2.
    #[error("{0}")]
    Usage(String),
    /// This machine or this user cannot: exit status 3.
    #[error("{0}")]
    Cannot(String),
}

impl RunError {
    /// The exit status for scripts.
    #[must_use]
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Cannot(_) => 3,
        }
    }
}
