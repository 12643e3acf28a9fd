// SPDX-License-Identifier: MIT OR Apache-2.0
//! What one sample of a CPU tells.

use serde::Serialize;

/// What a CPU's time went to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Spent {
    /// Nothing.
    Idle,
    /// A program.
    User,
    /// The kernel, for a thread.
    Kernel,
    /// A soft interrupt.
    Softirq,
    /// An interrupt.
    Interrupt,
    /// A guest or a hypervisor.
    Other,
}

impl Spent {
    /// For people.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::User => "user",
            Self::Kernel => "kernel",
            Self::Softirq => "softirq",
            Self::Interrupt => "interrupt",
            Self::Other => "other",
        }
    }
}

/// SampleOwner sample it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SampleOwner {
    /// Of the threads that were asked about; where none were named, of any.
    Asked,
    /// Of others.
    Others,
}
