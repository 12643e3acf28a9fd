// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is wrong with a file or folder that the lab reads or writes.

use std::io;
use std::path::PathBuf;

use tailbound_archive::ArchiveError;
use tailbound_core::FailureKind;
use tailbound_core::unwritten::UnwrittenFile;

/// A file or folder that the lab cannot read, believe or write.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read or written.
    #[error("{}: {source}", .path.display())]
    Unusable {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It was named, and cannot be read.
    #[error("{}: {source}", .path.display())]
    Given {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It has more bytes than anything of the lab's.
    #[error("{}: too large for the lab", .path.display())]
    TooLarge {
        /// Which.
        path: PathBuf,
    },
    /// It became another while it was used.
    #[error("{}: changed since it was looked at (SHA-256 {then}, now {now})", .path.display())]
    Changed {
        /// Which.
        path: PathBuf,
        /// Its SHA-256 when it was looked at.
        then: String,
        /// Its SHA-256 now.
        now: String,
    },
    /// A result is not written.
    #[error(transparent)]
    Unwritten(#[from] UnwrittenFile),
    /// A run that would be overwritten is not the one that would be made.
    #[error("{} holds a run made with different options or by another version: choose another --out, or give --force", .path.display())]
    OtherRun {
        /// Its file.
        path: PathBuf,
    },
    /// An archive or a packed file is refused or damaged.
    #[error("{name}: {source}")]
    Archive {
        /// What people call it.
        name: String,
        /// What is wrong with it.
        source: ArchiveError,
    },
    /// What is in an archive cannot be written.
    #[error("{name}: {source}")]
    Unpack {
        /// What people call it.
        name: String,
        /// What cannot, and why.
        source: ArchiveError,
    },
    /// A run cannot be put into words.
    #[error("{0}")]
    Run(io::Error),
    /// A record cannot be put into words.
    #[error("{0}")]
    Record(serde_json::Error),
    /// The options of a run cannot be put into words.
    #[error("{0}")]
    Options(toml::ser::Error),
}

impl FileError {
    /// Who can mend it.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::Unwritten(e) => e.kind(),
            Self::Given { .. } | Self::OtherRun { .. } | Self::Archive { .. } => FailureKind::Usage,
            Self::Unusable { .. }
            | Self::TooLarge { .. }
            | Self::Changed { .. }
            | Self::Unpack { .. }
            | Self::Run(_)
            | Self::Record(_)
            | Self::Options(_) => FailureKind::Cannot,
        }
    }
}
