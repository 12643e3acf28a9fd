// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a file could not be imported: what was wrong, where, and what to do.
//!
//! Units: lines count from 1, byte offsets from 0.
//! Not here: what a readable file lost, which is a finding and not an error (`missed`, `draft`).

use std::fmt;

use tailbound_core::printable;

use crate::format::Format;
use crate::unlike::Unlike;

/// Where in the file something is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line, from 1.
    Line(u64),
    /// A byte offset, from 0.
    Byte(u64),
    /// A path of keys in a JSON or XML document: `thread.0.histogram.12`.
    Path(String),
    /// The file as a whole.
    File,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(n) => write!(f, "line {n}"),
            Self::Byte(n) => write!(f, "byte {n}"),
            Self::Path(p) => write!(f, "at `{p}`"),
            Self::File => f.write_str("the file as a whole"),
        }
    }
}

/// Why a file could not be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// It cannot be read.
    #[error("{file}: it cannot be read: {why}")]
    Io {
        /// The file's name.
        file: String,
        /// Why.
        #[source]
        why: std::io::Error,
    },
    /// The content is of no format known here.
    #[error("{file}: {hint}{}", .hint.choice())]
    Unknown {
        /// The file's name.
        file: String,
        /// What it looks like instead.
        #[source]
        hint: Unlike,
    },
    /// There are several runs in it, and one was wanted.
    #[error(
        "{file} holds {} runs: {}; `tailbound import` makes a run file of each, or of one with --run N",
        runs.len(),
        runs.join("; ")
    )]
    Several {
        /// The file's name.
        file: String,
        /// Each in a few words.
        runs: Vec<String>,
    },
    /// The format is known, the content is not as it should be.
    #[error("{file} (read as {format}): {place}: {reason}")]
    Bad {
        /// The file's name.
        file: String,
        /// What it was read as.
        format: Format,
        /// Where.
        place: Place,
        /// What is wrong and what to do.
        reason: String,
    },
}

/// What a parser reports; the file's name and the format are added outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) place: Place,
    pub(crate) reason: String,
}

impl Fault {
    pub(crate) fn line(line: u64, reason: impl Into<String>) -> Self {
        Self { place: Place::Line(line), reason: reason.into() }
    }
    pub(crate) fn byte(byte: u64, reason: impl Into<String>) -> Self {
        Self { place: Place::Byte(byte), reason: reason.into() }
    }
    pub(crate) fn path(path: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { place: Place::Path(path.into()), reason: reason.into() }
    }
    pub(crate) fn file(reason: impl Into<String>) -> Self {
        Self { place: Place::File, reason: reason.into() }
    }
    /// With the file's name and format: what people are told.
    pub(crate) fn of(self, name: &str, format: Format) -> ImportError {
        ImportError::Bad {
            file: excerpt(name),
            format,
            place: self.place,
            reason: printable::reason(&self.reason),
        }
    }
}

/// At most 60 characters of foreign text, without control characters, for a message.
pub(crate) fn excerpt(text: &str) -> String {
    let mut out: String = printable::line(text).chars().take(60).collect();
    if text.chars().nth(60).is_some() {
        out.push('…');
    }
    out
}
