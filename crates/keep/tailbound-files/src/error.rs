// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a file cannot be read, written or signed, by who can mend it.

use std::path::{Path, PathBuf};

use tailbound_core::FailureKind;
use tailbound_core::unwritten::UnwrittenFile;
use tailbound_import::ImportError;

/// Why it cannot.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// It cannot be read, or is not what it should be.
    #[error("{}: {why}", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// No reader knows it.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// A folder has no run files.
    #[error("{}: no run files (*.tailbound.jsonl, also .gz or .zst) in this folder", .0.display())]
    NoRuns(PathBuf),
    /// Another program's run, or one of a machine.
    #[error("{} was not made in the lab", .0.display())]
    NotOfLab(PathBuf),
    /// A result file is not written.
    #[error(transparent)]
    Unwritten(#[from] UnwrittenFile),
    /// Nobody knows where a key would be.
    #[error("HOME is not set: name the key with --key")]
    NoHome,
    /// A key would be replaced.
    #[error("{} exists already: a key is never replaced; choose another --key", .0.display())]
    KeyExists(PathBuf),
    /// A key that is to have a password gets none.
    #[error("no password could be asked for ({0}): give --no-password, or use a terminal")]
    Password(minisign::PError),
    /// A key or a signature cannot be made.
    #[error("{0}")]
    Key(minisign::PError),
}

impl FilesError {
    /// Who can mend it.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::Unwritten(e) => e.kind(),
            Self::Key(_) => FailureKind::Cannot,
            _ => FailureKind::Usage,
        }
    }

    pub(crate) fn of(path: &Path, why: &dyn std::fmt::Display) -> Self {
        Self::File { path: path.to_owned(), why: why.to_string() }
    }
}
