// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a file that is of no known format looks like instead, and what to do with it.

use tailbound_core::words::did_you_mean;

use crate::error::excerpt;
use crate::foreign::Foreign;
use crate::format::Format;

/// Why a content is of no format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unlike {
    /// Nothing in it.
    #[error("the file is empty")]
    Empty,
    /// Text, but not in UTF-8.
    #[error(
        "{0} text; measurements are read as UTF-8: convert it, for example with `iconv -f {0} -t UTF-8`"
    )]
    Encoding(&'static str),
    /// Bytes of something.
    #[error(
        "a binary file, but not the 28-byte records of jitterdebugger's samples.raw; plain binary numbers are imported with --format raw-u32 or raw-u64, and --interval for their times"
    )]
    Binary,
    /// XML of something else.
    #[error("XML, but without the element `rteval`")]
    Xml,
    /// JSON of a tool whose files hold no latencies.
    #[error("JSON of `{}`, which holds no wake-up latencies that could be imported", excerpt(.0))]
    JsonOf(String),
    /// JSON of something else.
    #[error("JSON, but of no tool known here")]
    Json,
    /// Another output of a known tool: which, and what to import instead.
    #[error("{0}")]
    Other(&'static str),
    /// A file that holds no run: what it is, and what to do.
    #[error("{0}")]
    Foreign(Foreign),
    /// Text of something else.
    #[error("of no format known here")]
    Text,
}

impl Unlike {
    /// The formats to choose from, where nothing better is known.
    pub(crate) fn choice(&self) -> String {
        match self {
            Self::Empty | Self::Encoding(_) | Self::Other(_) | Self::Foreign(_) => String::new(),
            Self::Binary | Self::Xml | Self::JsonOf(_) | Self::Json | Self::Text => {
                format!("; readable are {}", Format::list())
            }
        }
    }
}

/// A word that names no format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{word}` is not a format{}; readable are {}", near(.word), Format::list())]
pub struct UnknownFormat {
    /// As given.
    pub word: String,
}

fn near(word: &str) -> String {
    did_you_mean(word, Format::ALL.iter().map(|f| f.name()))
}
