// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is wrong with a machine for real-time work: checks that read and never write.
//!
//! A check is a description with a function over a [`Machine`], which is read once
//! from a root that may be a captured tree. Not here: changing anything (`tailbound-tune`).
#![forbid(unsafe_code)]
#![deny(missing_docs)]
// Numbers of kernels and of captured machines: arithmetic saturates, or says why not.
#![cfg_attr(
    not(test),
    deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::unwrap_used)
)]

mod answer;
mod capture;
mod check;
mod checks;
mod machine;
mod need;
mod outcome;
pub mod pages;
mod preconditions;
mod recorded;
mod sample;

pub use answer::{Answers, CheckRecord, ShownChecks};
pub use capture::Capture;
pub use check::{Check, Group};
pub use checks::catalogue;
pub use machine::{CheckScope, Machine, Workload};
pub use need::Need;
pub use outcome::{CheckOutcome, Level};
pub use preconditions::{PREFIX, Precondition, precondition_facts, preconditions};
pub use recorded::{RecordingCounts, assumptions};
pub use sample::{Glance, Sample};
