// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why an archive was not read to its end, with the member where it happened.
//!
//! Units: bytes, seconds.

use std::io;

use crate::shown_name::shown;

/// Characters of what a reader says.
const TEXT_MAX: usize = 200;

/// An archive that is refused, damaged, or could not be unpacked.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// It cannot be read as an archive.
    #[error("{0}")]
    Damaged(String),
    /// A name that is absolute or has `..` in it.
    #[error("it holds {}, which leads out of it", shown(.0))]
    Outside(String),
    /// A name that lies below a link or a file of the archive.
    #[error("it holds {}, which lies below something that is no folder", shown(.0))]
    NotBelowFolder(String),
    /// A name that no file system can hold, or that is no text.
    #[error("it holds a name of {bytes} bytes; {most} are the most: {}", shown(.name))]
    Name {
        /// As far as it can be shown.
        name: String,
        /// Its length.
        bytes: u64,
        /// The longest that is read.
        most: u64,
    },
    /// A member of a kind that is not unpacked.
    #[error("it holds {kind}: {}", shown(.name))]
    Kind {
        /// What it is.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// One name twice.
    #[error("it holds {} twice", shown(.0))]
    Twice(String),
    /// Folders within folders.
    #[error("it holds {}, which lies {depth} folders deep; {most} are the most", shown(.name))]
    Deep {
        /// The member.
        name: String,
        /// Parts of its name.
        depth: usize,
        /// The most.
        most: usize,
    },
    /// Too many members.
    #[error("it holds more than {most} files and folders")]
    Entries {
        /// The most.
        most: u64,
    },
    /// One member too large.
    #[error("{} in it has {bytes} bytes; {} are the most for one file", shown(.name), mib(*.most))]
    Large {
        /// The member.
        name: String,
        /// Its length, as the archive says.
        bytes: u64,
        /// The most.
        most: u64,
    },
    /// All members together too large.
    #[error("unpacked it has more than {}", mib(*.most))]
    Bytes {
        /// The most.
        most: u64,
    },
    /// Reading took too long.
    #[error("it was not unpacked within {seconds} s")]
    Time {
        /// The longest.
        seconds: u64,
    },
    /// A packer that is not known here.
    #[error("it is packed by {0}, which is not read here: unpack it and pack it with xz")]
    Packer(&'static str),
    /// A signal asked this program to end.
    #[error("interrupted")]
    Interrupted,
    /// Something could not be written.
    #[error("{}: {why}", shown(.name))]
    Write {
        /// The member.
        name: String,
        /// Why.
        why: io::Error,
    },
}

impl ArchiveError {
    /// From the reader of the archive.
    pub(crate) fn damaged(e: &io::Error) -> Self {
        // The reader says what it was doing; the cause lies behind that.
        let mut last: &dyn std::error::Error = e;
        while let Some(source) = last.source() {
            last = source;
        }
        let text = last.to_string();
        // It may quote the archive: one plain line of bounded length.
        let plain: String = text.chars().flat_map(char::escape_debug).take(TEXT_MAX).collect();
        Self::Damaged(if plain.is_empty() { "it is damaged".to_owned() } else { plain })
    }
}

/// A limit as people write it.
fn mib(bytes: u64) -> String {
    if bytes < 1 << 20 { format!("{bytes} bytes") } else { format!("{} MiB", bytes >> 20) }
}
