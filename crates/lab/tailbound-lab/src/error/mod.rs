// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why the lab could not do what was asked, by what failed; each failure knows who can mend it.

mod board;
mod build;
mod file;
mod guest;
mod kernel;
mod option;
mod qemu;
mod repeat;
mod snapshot;
mod store;
mod target;
#[cfg(test)]
mod tests;
mod tool;
mod watch;

use std::fmt::Display;
use std::io;
use std::path::Path;

use tailbound_archive::ArchiveError;
use tailbound_core::FailureKind;
use tailbound_core::unwritten::{Alternative, UnwrittenFile};

pub use self::board::BoardError;
pub use self::build::{BuildError, SourceError};
pub use self::file::FileError;
pub use self::guest::{GuestError, TesterError};
pub use self::kernel::KernelError;
pub use self::option::OptionError;
pub use self::qemu::QemuError;
pub use self::repeat::RepeatError;
pub use self::snapshot::SnapshotError;
pub use self::store::StoreError;
pub use self::target::{DescriptionError, TargetError};
pub use self::tool::ToolError;
pub use self::watch::WatchError;

/// A lab run, fetch or build that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The program that uses the lab failed, in its own words.
    #[error("{text}")]
    Caller {
        /// Who can mend it.
        kind: FailureKind,
        /// What it says.
        text: String,
    },
    /// A file or folder.
    #[error(transparent)]
    File(#[from] FileError),
    /// The lab's folder.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Another program.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// A kernel.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The build of a kernel.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// QEMU.
    #[error(transparent)]
    Qemu(#[from] QemuError),
    /// A snapshot.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// A guest.
    #[error(transparent)]
    Guest(#[from] GuestError),
    /// What is watched from within QEMU.
    #[error(transparent)]
    Watch(#[from] WatchError),
    /// A board with a kernel of its own.
    #[error(transparent)]
    Board(#[from] BoardError),
    /// What was asked for.
    #[error(transparent)]
    Option(#[from] OptionError),
    /// A target.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// A run that was to be repeated.
    #[error(transparent)]
    Repeat(#[from] RepeatError),
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
    /// A file or folder could not be read or written.
    #[must_use]
    pub fn file(path: &Path, source: io::Error) -> Self {
        FileError::Unusable { path: path.to_owned(), source }.into()
    }

    /// A result file that was not written.
    pub(crate) fn unwritten(path: &Path, source: io::Error) -> Self {
        FileError::from(UnwrittenFile::of(path, source, Alternative::Name)).into()
    }

    /// An archive that was not unpacked.
    pub(crate) fn archive(name: impl Display, source: ArchiveError) -> Self {
        let name = name.to_string();
        match source {
            ArchiveError::Interrupted => Self::Interrupted,
            source @ ArchiveError::Write { .. } => FileError::Unpack { name, source }.into(),
            source => FileError::Archive { name, source }.into(),
        }
    }

    /// A signal ended it.
    #[must_use]
    pub fn is_cut_off(&self) -> bool {
        self.kind() == FailureKind::CutOff
    }

    /// Is it the doing of the kernel that was to be built or booted, and so the same on another host? A full disk and a
    /// QEMU that does not answer are the host's.
    #[must_use]
    pub fn is_of_kernel(&self) -> bool {
        match self {
            Self::Build(e) => e.is_of_kernel(),
            Self::Qemu(e) => e.is_of_kernel(),
            Self::Snapshot(e) => e.is_of_kernel(),
            Self::Guest(e) => e.is_of_kernel(),
            Self::Watch(_) => true,
            Self::Caller { .. }
            | Self::File(_)
            | Self::Store(_)
            | Self::Tool(_)
            | Self::Kernel(_)
            | Self::Board(_)
            | Self::Option(_)
            | Self::Target(_)
            | Self::Repeat(_)
            | Self::Interrupted
            | Self::Ended
            | Self::Bug => false,
        }
    }

    /// Who can mend it.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::Caller { kind, .. } => *kind,
            Self::File(e) => e.kind(),
            Self::Store(e) => e.kind(),
            Self::Tool(e) => e.kind(),
            Self::Kernel(e) => e.kind(),
            Self::Build(e) => e.kind(),
            Self::Qemu(e) => e.kind(),
            Self::Snapshot(e) => e.kind(),
            Self::Guest(e) => e.kind(),
            Self::Watch(e) => e.kind(),
            Self::Board(e) => e.kind(),
            Self::Option(e) => e.kind(),
            Self::Target(e) => e.kind(),
            Self::Repeat(e) => e.kind(),
            Self::Interrupted | Self::Ended => FailureKind::CutOff,
            Self::Bug => FailureKind::Bug,
        }
    }
}
