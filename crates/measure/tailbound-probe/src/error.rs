// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a probe could not start.
//!
//! Context: SETUP.

use tailbound_core::plan::Clock;
use tailbound_sys::error::SysError;

/// Why a probe could not start.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// A system call was refused.
    #[error("thread on CPU {cpu}: {source}")]
    Thread {
        /// Which CPU, or `any`.
        cpu: String,
        /// What was refused.
        source: SysError,
    },
    /// The plan's clock is not known to this kernel.
    #[error("clock `{clock}`: {source}")]
    Clock {
        /// The clock.
        clock: Clock,
        /// What was refused.
        source: SysError,
    },
    /// The words mean nothing, or contradict each other.
    #[error("{0}")]
    Usage(String),
    /// This machine or user cannot: what is missing, and the remedy.
    #[error("{0}")]
    Cannot(String),
    /// A system call that sets the probe up was refused.
    #[error(transparent)]
    System(#[from] SysError),
}
