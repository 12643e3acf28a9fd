// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a step of a change was not done.

use tailbound_host::root::Missing;

/// Why a step was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// What was meant is not there any more, or is another thing of the same number.
    #[error("{0}")]
    Gone(String),
    /// The kernel or the machine refused.
    #[error("{0}")]
    Denied(String),
    /// It was written, and something else is in force.
    #[error("{wanted} was written, and the kernel now says {now}")]
    Otherwise {
        /// Canonical.
        wanted: String,
        /// Canonical.
        now: String,
    },
}

impl From<Missing> for Refused {
    fn from(missing: Missing) -> Self {
        match missing {
            Missing::NotApplicable(why) => Self::Gone(why),
            Missing::Unknown(why) => Self::Denied(why),
        }
    }
}
