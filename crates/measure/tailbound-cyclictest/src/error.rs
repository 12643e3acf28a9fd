// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why there was no measurement.

use tailbound_core::cpus::ParseCpusError;
use tailbound_core::unwritten::UnwrittenFile;
use tailbound_host::CpusError;
use tailbound_host::machine_lock::NotFree;
use tailbound_run::RunError;
use tailbound_sys::SysError;

/// Found before anything is started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CyclictestError {
    /// Not an option of cyclictest, or of several.
    #[error(
        "{option} is not an option of cyclictest, or the beginning of several; all are in `tailbound cyclictest --help`"
    )]
    Unknown {
        /// As it was typed.
        option: String,
    },
    /// An option without its value.
    #[error("{option} needs a value")]
    ValueMissing {
        /// Which.
        option: String,
    },
    /// A value that nothing takes.
    #[error("{option} takes no value")]
    NoValue {
        /// Which.
        option: String,
    },
    /// A value that means nothing.
    #[error("{option}: `{value}` is not {wanted}")]
    Value {
        /// Which.
        option: String,
        /// What was typed.
        value: String,
        /// What it should have been.
        wanted: &'static str,
    },
    /// An option that is not honoured.
    #[error("{option} is not possible: {why}")]
    Refused {
        /// Which.
        option: String,
        /// Why, and what to use.
        why: String,
    },
    /// A list of CPUs that means nothing.
    #[error("{option}: {source}")]
    Cpus {
        /// Which.
        option: &'static str,
        /// What is wrong with it.
        source: ParseCpusError,
    },
    /// CPUs that are not there.
    #[error("{0}")]
    Machine(#[from] CpusError),
    /// More threads than CPUs.
    #[error(
        "-t {threads}: there is one thread per CPU at most, and {cpus} of them; choose fewer threads or more CPUs"
    )]
    Threads {
        /// How many.
        threads: usize,
        /// How many CPUs.
        cpus: usize,
    },
    /// The main thread cannot be moved.
    #[error("--mainaffinity: {0}")]
    MainAffinity(SysError),
    /// A fleet or an agent measures.
    #[error("{0}: two measurements at the same time disturb each other; wait until that is over")]
    Held(#[from] NotFree),
    /// Signals cannot be waited for.
    #[error("{0}")]
    Signals(#[from] SysError),
    /// The run cannot be made.
    #[error("{0}")]
    Run(#[from] RunError),
    /// A file that was asked for.
    #[error(transparent)]
    Unwritten(#[from] UnwrittenFile),
}
