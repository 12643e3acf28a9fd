// SPDX-License-Identifier: MIT OR Apache-2.0
//! Searches in the lab: for the worst workload of a kernel, and for what made it later.
//!
//! Units: ns.
//! Not here: booting and building (`tailbound-lab`), options and what is printed (`tailbound`), words (`tailbound-report`).
//!
//! ```text
//! hunt/         which workload to try next, and what is left of the worst; pure
//! hunt_runs/    the same with real runs: in guests of the lab, or on this machine
//! bisect/       which change to ask about next, and the journal of what was asked; pure
//! bisect_runs/  the same asked in the lab
//! changes_runs  which of many changes of a system help, asked in the lab
//! campaign_runs the runs of a campaign in the lab's kernels
//! why/          from when on a late sample was inevitable: runs varied from an instant on
//! ```
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod bisect;
pub mod bisect_runs;
pub mod campaign_runs;
pub mod changes_runs;
pub mod error;
pub mod hunt;
pub mod hunt_runs;
pub mod why;

pub use error::SearchError;
