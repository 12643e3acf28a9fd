// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why the lab could not do what was asked, by who can mend it.

use std::fmt::Display;
use std::path::Path;

use tailbound_archive::ArchiveError;
use tailbound_core::FailureKind;

/// A lab run, fetch or build that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The words or files are wrong: exit status 2.
    #[error("{0}")]
    Usage(String),
    /// This machine cannot, or the guest did not: exit status 3.
    #[error("{0}")]
    Cannot(String),
    /// A signal ended the work.
    #[error("interrupted")]
    Interrupted,
}

impl LabError {
    /// The words or files are wrong.
    pub fn usage(text: impl Display) -> Self {
        Self::Usage(text.to_string())
    }
    /// This machine cannot.
    pub fn cannot(text: impl Display) -> Self {
        Self::Cannot(text.to_string())
    }
    /// A file could not be read or written.
    pub fn file(path: &Path, e: &std::io::Error) -> Self {
        Self::Cannot(format!("{}: {e}", path.display()))
    }
    /// An archive that was not unpacked; `what` is its name.
    pub(crate) fn archive(what: impl Display, e: ArchiveError) -> Self {
        match e {
            ArchiveError::Interrupted => Self::Interrupted,
            ArchiveError::Write { .. } => Self::cannot(format!("{what}: {e}")),
            e => Self::usage(format!("{what}: {e}")),
        }
    }
    /// Who can mend it.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::Usage(_) => FailureKind::Usage,
            Self::Cannot(_) => FailureKind::Cannot,
            Self::Interrupted => FailureKind::CutOff,
        }
    }
}
