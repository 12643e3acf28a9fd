// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why the kernel's tracing cannot be used, or a program not be watched.
//!
//! Context: SETUP.

use std::path::PathBuf;

use tailbound_core::FailureKind;
use tailbound_core::plan::Observe;
use tailbound_host::TracefsError;
use tailbound_sys::SysError;
use tailbound_sys::program::Missing;
use tailbound_trace::{FormatError, PageError};

/// Why the kernel's tracing cannot be used for this run.
#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    /// No such word.
    #[error("`{0}` is not one of auto, {words}", words = Observe::WORDS.join(", "))]
    Word(String),
    /// The words do not fit together.
    #[error("{0}")]
    Unfit(String),
    /// Tracefs refuses.
    #[error(transparent)]
    Tracefs(#[from] TracefsError),
    /// This kernel lacks it.
    #[error("this kernel has no {what}: it needs {option}{instead}")]
    Lacking {
        /// What.
        what: String,
        /// The option to build it with.
        option: &'static str,
        /// What to do without.
        instead: &'static str,
    },
    /// The trace has other numbers for the threads than this program.
    #[error(
        "this program runs in a PID namespace of its own, as in a container: the kernel's trace names threads by their numbers outside of it; run it there, or use --observe timerlat"
    )]
    Namespace,
    /// The trace has another clock than this program.
    #[error(
        "this program runs in a time namespace (as containers do that were restored by CRIU): its CLOCK_{clock} is {ahead} s ahead of the kernel's, whose time the trace has, so events and wake-ups cannot be laid beside each other; run it outside of that namespace, or without the trace"
    )]
    TimeNamespace {
        /// MONOTONIC or BOOTTIME.
        clock: &'static str,
        /// Seconds.
        ahead: i64,
    },
    /// The kernel's description of its trace is not understood.
    #[error("the kernel's trace cannot be read here: {0}")]
    Format(String),
}

impl ObserveError {
    /// Are the words wrong, and not the machine?
    #[must_use]
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Word(_) | Self::Unfit(_))
    }
}

impl From<FormatError> for ObserveError {
    fn from(e: FormatError) -> Self {
        Self::Format(e.to_string())
    }
}

impl From<PageError> for ObserveError {
    fn from(e: PageError) -> Self {
        Self::Format(e.to_string())
    }
}

/// Why a program cannot be watched, by who can mend it.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The kernel's tracing cannot be used.
    #[error(transparent)]
    Observe(#[from] ObserveError),
    /// Neither a process nor a program is named.
    #[error("no program to watch: write it behind `--`")]
    NoProgram,
    /// There is no such program.
    #[error("{0}; write its path if it lies in no folder of PATH")]
    NotFound(Missing),
    /// No thread to start it from.
    #[error("the thread that starts the program has failed")]
    Starter,
    /// The kernel does not start it.
    #[error("{}: {source}", program.display())]
    Start {
        /// Its file.
        program: PathBuf,
        /// Why.
        source: SysError,
    },
}

impl RecordError {
    /// Who can mend it.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::Observe(_) | Self::Starter => FailureKind::Cannot,
            Self::NoProgram | Self::NotFound(_) | Self::Start { .. } => FailureKind::Usage,
        }
    }
}
