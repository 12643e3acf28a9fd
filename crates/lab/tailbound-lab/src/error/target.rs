// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is wrong with the description of a target, or with a target before it boots.

use std::io;
use std::path::PathBuf;

use tailbound_core::FailureKind;
use tailbound_core::words::UnknownWord;

use crate::arch::Arch;
use crate::target::UnfitTester;

/// A target that cannot be booted.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// Its description is wrong.
    #[error("{}: {source}", .path.display())]
    Description {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: DescriptionError,
    },
    /// A program of it is for another architecture.
    #[error("{}: a program for {}, the target is {arch}", .path.display(), .found.map_or("another machine".to_owned(), |found| found.to_string()))]
    OtherArch {
        /// The program.
        path: PathBuf,
        /// Its architecture, where that is known.
        found: Option<Arch>,
        /// The target's.
        arch: Arch,
    },
    /// It has no such tester.
    #[error("{target} has no tester `{name}`{near}; it has {}", if .known.is_empty() { "none".to_owned() } else { .known.join(", ") })]
    NoTester {
        /// Its name.
        target: String,
        /// As it was asked for.
        name: String,
        /// A name like it, as the end of a sentence.
        near: String,
        /// All names.
        known: Vec<String>,
    },
    /// Its parts do not fit each other.
    #[error("{target} would not run, so it is not booted:\n  {}", .wrong.join("\n  "))]
    Unfit {
        /// Its name.
        target: String,
        /// What does not fit.
        wrong: Vec<String>,
    },
}

/// What is wrong with the description of a target.
#[derive(Debug, thiserror::Error)]
pub enum DescriptionError {
    /// It cannot be read.
    #[error("{0}")]
    Unreadable(io::Error),
    /// Not TOML, or not of a target: the line and the column are in it.
    #[error("{0}")]
    Toml(Box<toml::de::Error>),
    /// No such architecture.
    #[error("{0}")]
    Arch(UnknownWord),
    /// A module is not there.
    #[error("module {} is missing", .path.display())]
    ModuleMissing {
        /// The module.
        path: PathBuf,
    },
    /// A place in the guest leads out of it.
    #[error("guest = \"{path}\": an absolute path without `..` is wanted")]
    Place {
        /// As it was written.
        path: String,
    },
    /// A tester cannot run.
    #[error("{0}")]
    Tester(UnfitTester),
}

impl TargetError {
    /// Who can mend it.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::Description { .. }
            | Self::OtherArch { .. }
            | Self::NoTester { .. }
            | Self::Unfit { .. } => FailureKind::Usage,
        }
    }
}
