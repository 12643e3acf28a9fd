// SPDX-License-Identifier: MIT OR Apache-2.0
//! Test cases and how they came out, in the formats that CI servers and test frameworks read.
//!
//! Not here: what the cases are (`export` of a run; fleets and regressions in `tailbound-fleet`).

mod junit;
mod ktap;

pub use junit::{Suite, junit};
pub use ktap::ktap;

/// How a case came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// Shown to be so.
    Pass,
    /// Shown not to be so: why.
    Fail(String),
    /// Nothing was required, or it alone decides nothing: why.
    Skip(String),
    /// It could not be decided: why.
    Undecided(String),
}

/// One case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// What it is about.
    pub name: String,
    /// How it came out.
    pub status: Status,
}
