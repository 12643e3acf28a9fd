// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be wrong with one line of a run file.
//!
//! The messages quote files of strangers, so they are cut and cleaned as they are shown.

use crate::limits::{LINE_BYTES_MAX, LimitError};
use crate::printable;

/// Longest line, in MiB.
const LINE_MIB_MAX: usize = LINE_BYTES_MAX >> 20;

/// What is wrong with a line.
#[derive(Debug, thiserror::Error)]
pub enum LineFault {
    /// Not a text of this format at all.
    #[error("{}", printable::reason(&format!("not JSON: {}", .0)))]
    Json(serde_json::Error),
    /// An object of no type.
    #[error("no `type` in this line")]
    NoType,
    /// A known type with other fields, or values of another kind.
    #[error("{}", printable::reason(&format!("bad `{}` line: {}", .kind, .why)))]
    Shape {
        /// The type.
        kind: String,
        /// Which field, and what it should be.
        why: serde_json::Error,
    },
    /// More than a run file may hold.
    #[error("{}", printable::reason(&.0.to_string()))]
    Limit(#[from] LimitError),
    /// No newline for too long.
    #[error("longer than {LINE_MIB_MAX} MiB")]
    TooLong,
    /// A file that begins in the middle, or of something else.
    #[error("the first line is not a header")]
    NoHeader,
    /// Text of another encoding.
    #[error(
        "this is {0} text; run files are UTF-8: convert it, for example with `iconv -f {0} -t UTF-8`"
    )]
    Encoding(&'static str),
}

/// What can be wrong with packed samples.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RawFault {
    /// More than a line may hold.
    #[error("raw samples: more than {0} in a line")]
    TooMany(u64),
    /// Not base64.
    #[error("raw samples: {0}")]
    Base64(base64::DecodeError),
    /// Not a zlib stream, or one that does not end where it should.
    #[error("raw samples: {0}")]
    Zlib(String),
    /// A number of more than 64 bits.
    #[error("raw samples: a number is longer than 64 bits")]
    Number,
    /// Another number of samples than the line says, or the last is cut off.
    #[error("raw samples: {expected} expected, {found} found")]
    Count {
        /// As the line says.
        expected: u64,
        /// As there are.
        found: usize,
    },
}
