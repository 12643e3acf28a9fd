// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why nothing was measured. What ends a measurement that had begun is no error: its record says how it ended.

use tailbound_core::FailureKind;
use tailbound_sys::error::SysError;

/// Why a source could not be used at all.
#[derive(Debug, thiserror::Error)]
pub enum StimulusError {
    /// The way to it cannot be opened.
    #[error("{place}: {reason}")]
    Unreachable {
        /// The port or the host.
        place: String,
        /// What is wrong and what to do.
        reason: String,
    },
    /// Who is there is not this source, or is one that this program does not know.
    #[error("{place}: {reason}")]
    Foreign {
        /// The port or the host.
        place: String,
        /// What is there and what to do.
        reason: String,
    },
    /// It cannot do what was asked.
    #[error("{0}")]
    Impossible(String),
    /// Somebody ended it before the first pulse.
    #[error("ended before the first pulse; nothing was measured")]
    Ended,
    /// A system call of this machine failed.
    #[error(transparent)]
    System(#[from] SysError),
}

impl StimulusError {
    /// Who can mend it.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::Impossible(_) => FailureKind::Usage,
            Self::Ended => FailureKind::CutOff,
            Self::Unreachable { .. } | Self::Foreign { .. } | Self::System(_) => {
                FailureKind::Cannot
            }
        }
    }
}
