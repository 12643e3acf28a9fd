// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a fact about the machine could not be read.

use tailbound_core::record::Fact;

/// Why something could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// It exists, or may exist, and could not be read.
    #[error("unknown: {0}")]
    Unknown(String),
    /// This machine has no such thing.
    #[error("not applicable: {0}")]
    NotApplicable(String),
}

impl Missing {
    /// The reason without the word before it.
    #[must_use]
    pub fn reason(&self) -> &str {
        match self {
            Self::Unknown(why) | Self::NotApplicable(why) => why,
        }
    }

    /// The same reason, as something that is not known.
    #[must_use]
    pub fn as_unknown(self) -> Self {
        match self {
            Self::Unknown(why) | Self::NotApplicable(why) => Self::Unknown(why),
        }
    }
}

impl From<Missing> for Fact {
    fn from(missing: Missing) -> Self {
        match missing {
            Missing::Unknown(why) => Self::Unknown(why),
            Missing::NotApplicable(why) => Self::NotApplicable(why),
        }
    }
}

/// Something read, or why not.
pub type Found<T> = Result<T, Missing>;

/// What is not there holds nothing; what cannot be read stays unknown.
///
/// # Errors
/// [`Missing::Unknown`].
pub fn empty_if_absent<T: Default>(found: Found<T>) -> Found<T> {
    match found {
        Err(Missing::NotApplicable(_)) => Ok(T::default()),
        other => other,
    }
}
