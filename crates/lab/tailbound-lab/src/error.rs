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
    /// A signal ended it, and what was made before is there.
    #[error("interrupted; what was done is kept")]
    Ended,
    /// Ours to mend.
    #[error("this is a bug of tailbound: please report the message above with the command line")]
    Bug,
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
    /// A result file that was not written.
    pub(crate) fn unwritten(path: &Path, e: &std::io::Error) -> Self {
        let shown = path.display();
        match e.kind() {
            std::io::ErrorKind::AlreadyExists => Self::usage(format!(
                "{shown} exists already: choose another name, or give --force to overwrite it"
            )),
            // A link, a folder, a device: the words are to be mended, not the machine.
            std::io::ErrorKind::InvalidInput => Self::usage(format!("{shown} is not written: {e}")),
            _ => Self::cannot(format!("{shown} cannot be written: {e}")),
        }
    }
    /// A signal ended it.
    #[must_use]
    pub fn is_cut_off(&self) -> bool {
        self.kind() == FailureKind::CutOff
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
            Self::Interrupted | Self::Ended => FailureKind::CutOff,
            Self::Bug => FailureKind::Bug,
        }
    }
}
