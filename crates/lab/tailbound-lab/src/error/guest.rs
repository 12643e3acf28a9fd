// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a guest could not be made up, or brought no result.
//!
//! Units: MiB.

use std::io;
use std::path::PathBuf;

use tailbound_core::FailureKind;
use tailbound_import::{ImportError, UnknownFormat};

use crate::arch::Arch;
use crate::boot::Ended;

/// A guest without its files, or without a result.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    // What it is made up of.
    /// This program does not know its own file.
    #[error("{0}")]
    OwnProgram(io::Error),
    /// There is no program for its architecture.
    #[error(
        "no tailbound for {arch}: put `{name}` (made by `make arm`) beside this program, or give --guest FILE or {variable}"
    )]
    NoProgram {
        /// The guest's architecture.
        arch: Arch,
        /// What the program is called.
        name: &'static str,
        /// The variable that may name it.
        variable: String,
    },
    /// The program is for another architecture, or is none.
    #[error("{}: is {}; the guest is {arch}", .path.display(), .found.map_or("no program of a known architecture".to_owned(), |found| format!("for {found}")))]
    OtherProgram {
        /// Its file.
        path: PathBuf,
        /// Its architecture, where that is known.
        found: Option<Arch>,
        /// The guest's.
        arch: Arch,
    },
    /// A program's loader is missing.
    #[error("{}: its loader {loader} is not on this system", .path.display())]
    NoLoader {
        /// The program.
        path: PathBuf,
        /// Its loader.
        loader: String,
    },
    /// A library is missing.
    #[error("{} needs {library}, which is in none of {}", .path.display(), list(.folders))]
    NoLibrary {
        /// What needs it.
        path: PathBuf,
        /// The library.
        library: String,
        /// Where it was looked for.
        folders: Vec<PathBuf>,
    },
    /// A file would be hidden by what is mounted above it.
    #[error(
        "{path} cannot be added to the guest: something else is mounted on {folder} there; put the file elsewhere, such as /usr/local/bin"
    )]
    Hidden {
        /// The file.
        path: String,
        /// What hides it.
        folder: &'static str,
    },
    /// A file is too large for an initramfs.
    #[error("{path}: larger than 4 GiB")]
    TooLarge {
        /// The file.
        path: String,
    },

    // What it did.
    /// It brought no result.
    #[error("{kernel}: {why}")]
    NoResult {
        /// Its kernel's name.
        kernel: String,
        /// What is known of it.
        why: String,
    },
    /// What its tester measured cannot be read.
    #[error("{source}\n{otherwise}")]
    TesterResult {
        /// What is wrong with it.
        source: TesterError,
        /// What else is known of the guest.
        otherwise: Box<GuestError>,
    },
    /// It sent too much.
    #[error("the guest sent more than {most_mib} MiB as its {line}: it was ended")]
    TooMuch {
        /// The most that is taken.
        most_mib: u64,
        /// What it sent.
        line: &'static str,
    },
    /// It did not send a file.
    #[error("the guest sent no {name}")]
    NotSent {
        /// The file.
        name: &'static str,
    },
    /// QEMU ended while a varied run was going on.
    #[error("QEMU ended: {said}")]
    QemuEnded {
        /// What it printed.
        said: String,
    },
    /// A varied run ended too soon.
    #[error("a varied run did not come to its sample: {ended:?}")]
    NoSample {
        /// How it ended.
        ended: Ended,
    },
    /// No cell was made of what was asked for.
    #[error("no cell")]
    NoCell,
    /// No guest ran.
    #[error("nothing was made")]
    NotRun,
}

/// What is wrong with the output of a tester.
#[derive(Debug, thiserror::Error)]
pub enum TesterError {
    /// Its format is not known.
    #[error(transparent)]
    Format(#[from] UnknownFormat),
    /// It is not of its format.
    #[error(transparent)]
    Output(#[from] Box<ImportError>),
}

fn list(folders: &[PathBuf]) -> String {
    folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(", ")
}

impl GuestError {
    /// Did a guest begin, and did nothing but its own doing end it?
    pub(super) fn is_of_kernel(&self) -> bool {
        match self {
            Self::NoResult { .. }
            | Self::TesterResult { .. }
            | Self::TooMuch { .. }
            | Self::NotSent { .. }
            | Self::QemuEnded { .. }
            | Self::NoSample { .. } => true,
            Self::OwnProgram(_)
            | Self::NoProgram { .. }
            | Self::OtherProgram { .. }
            | Self::NoLoader { .. }
            | Self::NoLibrary { .. }
            | Self::Hidden { .. }
            | Self::TooLarge { .. }
            | Self::NoCell
            | Self::NotRun => false,
        }
    }

    /// Who can mend it.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::OtherProgram { .. } | Self::Hidden { .. } | Self::TooLarge { .. } => {
                FailureKind::Usage
            }
            Self::OwnProgram(_)
            | Self::NoProgram { .. }
            | Self::NoLoader { .. }
            | Self::NoLibrary { .. }
            | Self::NoResult { .. }
            | Self::TesterResult { .. }
            | Self::TooMuch { .. }
            | Self::NotSent { .. }
            | Self::QemuEnded { .. }
            | Self::NoSample { .. }
            | Self::NoCell
            | Self::NotRun => FailureKind::Cannot,
        }
    }
}
