// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules for real-time programs, held against ordinary events of the kernel: which thread broke
//! which, when, at what cost.
//!
//! Units: ns on the trace's clock. Events go in, in the order of time; violations
//! come out. What the events do not tell is not judged.
//! Not here: user stacks (`tailbound-record`), words for people (`tailbound-report`).
//! Source: tools/verification/models/rtapp/{sleep,pagefault}.ltl and the monitors of these names
//! (Linux 6.17 to 7.2) for the first three rules; docs/rules.md for all.

mod call;
mod calls;
mod cycle;
mod engine;
mod judge;
mod locks;
mod tally;
mod task;
#[cfg(test)]
mod tests;

pub use calls::CallTable;
pub use engine::{KERNEL_ACCESS, Rules};
pub use tally::{Key, Tally};

use tailbound_core::rules::{Cost, Rule};

/// One time that a rule was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which rule.
    pub rule: Rule,
    /// The thread.
    pub tid: i32,
    /// When.
    pub t_ns: u64,
    /// When the system call or fault began in which it happened: the user stack of that time shows where.
    pub at_ns: u64,
    /// The system call or fault, as one word or two.
    pub site: String,
    /// The address of a page fault; of everything else 0.
    pub address: u64,
    /// What it cost the thread.
    pub cost: Cost,
    /// What happened, in a sentence.
    pub text: String,
}
