// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a run is not made again.

use std::path::PathBuf;

use tailbound_core::FailureKind;

/// A run that cannot be repeated here.
#[derive(Debug, thiserror::Error)]
pub enum RepeatError {
    /// A later version made it.
    #[error("the run's lab record holds {}, which this version does not know: repeat it with the tailbound that made it", .unknown.join(", "))]
    LaterVersion {
        /// What is not known.
        unknown: Vec<String>,
    },
    /// It was made in real time.
    #[error(
        "this run cannot be repeated: it was made under KVM, in the time of a shared host; `lab run --kvm` makes another"
    )]
    Kvm,
    /// Its record names no way to execute a guest.
    #[error("this run cannot be repeated: its accelerator is neither tcg nor kvm")]
    Accelerator,
    /// Its record names too many files.
    #[error("this run cannot be repeated: it names more than {most} files")]
    TooManyFiles {
        /// The most.
        most: usize,
    },
    /// Its record names a file where no program stands.
    #[error("this run cannot be repeated: `{path}` is no place of a program")]
    Place {
        /// The file.
        path: String,
    },
    /// Its record holds no length of a slice.
    #[error("this run cannot be repeated: {slice_ns} ns is no length of a slice")]
    Slice {
        /// What it holds.
        slice_ns: u64,
    },
    /// A program is another than it was.
    #[error("{} is not the file it was (SHA-256 {then}, now {now})", .path.display())]
    OtherFile {
        /// The program.
        path: PathBuf,
        /// Its SHA-256 then.
        then: String,
        /// Its SHA-256 now.
        now: String,
    },
    /// A program is not there.
    #[error(
        "{path}, which was in that guest, is not here; give --target for a run that was made on one"
    )]
    FileMissing {
        /// Where it stood.
        path: String,
    },
    /// The kernel is not there any more.
    #[error("the kernel of this run ({package}, SHA-256 {sha256}) is not to be had: {}", .tried.join("; "))]
    KernelMissing {
        /// Its package, or its name.
        package: String,
        /// Its SHA-256.
        sha256: String,
        /// What was tried, and why it did not do.
        tried: Vec<String>,
    },
}

impl RepeatError {
    /// Who can mend it.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::Kvm
            | Self::Accelerator
            | Self::TooManyFiles { .. }
            | Self::Place { .. }
            | Self::Slice { .. } => FailureKind::Usage,
            Self::LaterVersion { .. }
            | Self::OtherFile { .. }
            | Self::FileMissing { .. }
            | Self::KernelMissing { .. } => FailureKind::Cannot,
        }
    }
}
