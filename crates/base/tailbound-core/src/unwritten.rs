// SPDX-License-Identifier: MIT OR Apache-2.0
//! A result file that is not written: why, and what its user can do. The same words wherever it was to be written.
//!
//! Not here: how files are written (`tailbound_sys::new_file`), whose errors these are.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::FailureKind;

/// What its user can choose in the place of such a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Alternative {
    /// Its name, which was an argument.
    #[default]
    Name,
    /// One of several files.
    File,
    /// The value of `--out`.
    Out,
}

impl fmt::Display for Alternative {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Name => "name",
            Self::File => "file",
            Self::Out => "--out",
        })
    }
}

/// A result file that is not written.
#[derive(Debug, thiserror::Error)]
pub enum UnwrittenFile {
    /// It is there already.
    #[error("{} exists already: choose another {choose}, or give --force to overwrite it", .path.display())]
    Exists {
        /// Which.
        path: PathBuf,
        /// What else can be chosen.
        choose: Alternative,
    },
    /// A link, a folder, a device stands in its place: the words are to be mended, not the machine.
    #[error("{} is not written: {source}", .path.display())]
    InTheWay {
        /// Where.
        path: PathBuf,
        /// What it is.
        source: io::Error,
    },
    /// The machine cannot.
    #[error("{} cannot be written: {source}{}", .path.display(), remedy(*.choose))]
    Failed {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
        /// What else can be chosen.
        choose: Alternative,
    },
}

fn remedy(choose: Alternative) -> &'static str {
    match choose {
        Alternative::Out => "; choose another --out",
        Alternative::Name | Alternative::File => "",
    }
}

impl UnwrittenFile {
    /// The file at `path`, as the one function that writes files refused it.
    #[must_use]
    pub fn of(path: &Path, source: io::Error, choose: Alternative) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::AlreadyExists => Self::Exists { path, choose },
            io::ErrorKind::InvalidInput => Self::InTheWay { path, source },
            _ => Self::Failed { path, source, choose },
        }
    }

    /// Who can mend it.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::Exists { .. } | Self::InTheWay { .. } => FailureKind::Usage,
            Self::Failed { .. } => FailureKind::Cannot,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_name_is_its_users_to_mend_and_a_full_disk_the_machines() {
        let of = |kind, choose| {
            let e = UnwrittenFile::of(Path::new("a/b"), io::Error::new(kind, "gone"), choose);
            (e.kind(), e.to_string())
        };
        let (usage, cannot) = (FailureKind::Usage, FailureKind::Cannot);
        for (kind, choose, whose, words) in [
            (
                io::ErrorKind::AlreadyExists,
                Alternative::Name,
                usage,
                "a/b exists already: choose another name, or give --force to overwrite it",
            ),
            (
                io::ErrorKind::AlreadyExists,
                Alternative::Out,
                usage,
                "a/b exists already: choose another --out, or give --force to overwrite it",
            ),
            (io::ErrorKind::InvalidInput, Alternative::Out, usage, "a/b is not written: gone"),
            (io::ErrorKind::Other, Alternative::Name, cannot, "a/b cannot be written: gone"),
            (
                io::ErrorKind::Other,
                Alternative::Out,
                cannot,
                "a/b cannot be written: gone; choose another --out",
            ),
        ] {
            assert_eq!(of(kind, choose), (whose, words.to_owned()));
        }
    }
}
