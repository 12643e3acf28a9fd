// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a run and its threads came to their end, and whether that end is as planned.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::words::open_words;

open_words! {
    /// Why a run ended: `reason` of its last line.
    EndReason {
        /// The whole plan was measured.
        Complete = "complete",
        /// The stopping rule of the plan ended it.
        Rule = "rule",
        /// A person or a signal ended it.
        Interrupted = "interrupted",
        /// Something went wrong.
        Failed = "failed",
        /// Its source was cut off.
        CutOff = "cut-off",
    }
}

impl EndReason {
    /// Whether the run ended as its plan wanted: at its full length or by its own stopping
    /// rule. Whoever asks whether a run counts, is kept or need not be made again asks this.
    #[must_use]
    pub fn is_as_planned(self) -> bool {
        matches!(self, Self::Complete | Self::Rule)
    }
}

impl From<&str> for EndReason {
    fn from(word: &str) -> Self {
        Self::of(word)
    }
}

/// Why the loop of one thread ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum ThreadEnd {
    /// The record does not say.
    #[default]
    Unsaid,
    /// The whole schedule is over.
    Complete,
    /// It was asked to stop.
    Stopped,
    /// It goes on: the record was written on the way.
    Running,
    /// An error, or a word that this version does not know: the text.
    Other(String),
}

impl ThreadEnd {
    /// The text as it stands in the file.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Unsaid => "",
            Self::Complete => "complete",
            Self::Stopped => "stopped",
            Self::Running => "running",
            Self::Other(text) => text,
        }
    }

    /// Whether nothing says that the thread ended before its time.
    #[must_use]
    pub fn is_as_planned(&self) -> bool {
        matches!(self, Self::Unsaid | Self::Complete)
    }
}

impl From<&str> for ThreadEnd {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<String> for ThreadEnd {
    fn from(text: String) -> Self {
        match text.as_str() {
            "" => Self::Unsaid,
            "complete" => Self::Complete,
            "stopped" => Self::Stopped,
            "running" => Self::Running,
            _ => Self::Other(text),
        }
    }
}

impl From<ThreadEnd> for String {
    fn from(end: ThreadEnd) -> Self {
        match end {
            ThreadEnd::Other(text) => text,
            end => end.as_str().to_owned(),
        }
    }
}

impl fmt::Display for ThreadEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl PartialEq<&str> for ThreadEnd {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}
