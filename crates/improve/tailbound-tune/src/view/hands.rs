// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a person wants changed, and who does it.
//!
//! The view asks for a plan, shows it, and only then has it done: that the plan is what is done
//! is the business of whoever implements [`Hands`].

use std::fmt;

use tailbound_core::{CpuSet, Policy};
use tailbound_report::machine::ThreadId;

/// A change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Keep all else off these CPUs.
    Isolate { cpus: CpuSet },
    /// Let these threads run there only.
    MoveThreads { threads: Vec<ThreadId>, cpus: CpuSet },
    /// Have these interrupts handled there only.
    MoveInterrupts { numbers: Vec<u32>, cpus: CpuSet },
    /// Give these threads a policy and priority.
    SetPolicy { threads: Vec<ThreadId>, policy: Policy },
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Isolate { cpus } => write!(f, "isolate {}", cpus_of(cpus)),
            Self::MoveThreads { threads, cpus } => {
                write!(f, "move {} to {}", counted(threads.len(), "thread"), cpus_of(cpus))
            }
            Self::MoveInterrupts { numbers, cpus } => {
                write!(f, "move {} to {}", counted(numbers.len(), "interrupt"), cpus_of(cpus))
            }
            Self::SetPolicy { threads, policy } => {
                write!(f, "set {} to {policy}", counted(threads.len(), "thread"))
            }
        }
    }
}

/// `1 thread`, `2 threads`.
pub(super) fn counted(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

/// `CPU 3`, `CPUs 2-3`.
pub(super) fn cpus_of(cpus: &CpuSet) -> String {
    if cpus.len() == 1 { format!("CPU {cpus}") } else { format!("CPUs {cpus}") }
}

/// Why something is not done, in words for the person who wanted it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused(pub(crate) String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

/// Who changes the machine.
pub(crate) trait Hands {
    /// The steps that [`Hands::apply`] would take, one a line; none where nothing is to be changed. Changes nothing.
    fn plan(&self, wanted: &Wanted) -> Result<Vec<String>, Refused>;
    /// Does it; says what was done.
    fn apply(&mut self, wanted: &Wanted) -> Result<String, Refused>;
    /// Takes the last change back; says what was.
    fn undo(&mut self) -> Result<String, Refused>;
}
