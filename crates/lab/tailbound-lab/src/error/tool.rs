// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why another program that the lab needs did not do its work: apt, dpkg, git, make, patch.

use std::io;

use tailbound_core::FailureKind;
use tailbound_sys::error::SysError;
use tailbound_sys::program::Missing;

/// A helper that is not there, or failed.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// It is not installed.
    #[error("{0}")]
    Missing(Missing),
    /// Several things that this machine lacks.
    #[error("{}", lacking(.undone, .missing))]
    Lacking {
        /// What was not done.
        undone: &'static str,
        /// Each with its remedy.
        missing: Vec<String>,
    },
    /// It cannot be started.
    #[error("`{program}` could not be started: {source}")]
    Start {
        /// Its name.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// Its end cannot be waited for.
    #[error("a helper cannot be waited for: {0}")]
    Wait(io::Error),
    /// It failed.
    #[error("{program}: {complaint}")]
    Failed {
        /// Its name.
        program: String,
        /// The end of what it printed.
        complaint: String,
    },
    /// A system call that starts it, waits for it, or hears signals meanwhile.
    #[error("{0}")]
    Call(SysError),
}

/// One alone is a sentence, several are a list.
fn lacking(undone: &str, missing: &[String]) -> String {
    match missing {
        [one] => one.clone(),
        more => format!("{undone}; what this machine lacks:\n  {}", more.join("\n  ")),
    }
}

impl ToolError {
    /// Who can mend it.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::Missing(_)
            | Self::Lacking { .. }
            | Self::Start { .. }
            | Self::Wait(_)
            | Self::Failed { .. }
            | Self::Call(_) => FailureKind::Cannot,
        }
    }
}
