// SPDX-License-Identifier: MIT OR Apache-2.0
//! Vocabulary and data of the whole workspace: units, CPU sets, policies, the plan of a
//! run, its records, findings and verdict, and the run file they are kept in.
//!
//! Units: ns everywhere, named so; text in and out by [`units`].
//! Not here: anything that touches the machine, and any statistics.
#![forbid(unsafe_code)]
#![deny(missing_docs)]
// Most numbers here come from files: arithmetic saturates, or says why not.
#![cfg_attr(
    not(test),
    deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::unwrap_used)
)]

pub mod binned;
pub mod blame;
pub mod calls;
pub mod campaign;
pub mod collect;
pub mod context;
pub mod cpus;
pub mod csv;
pub mod cycle;
pub mod distribution;
pub mod disturbance;
pub mod ended;
pub mod envelope;
pub mod exposition;
mod facts;
pub mod failure;
pub mod finding;
pub mod histogram;
pub mod instant;
pub mod lab;
pub mod limits;
pub mod line_limits;
mod newer;
pub mod number;
pub mod occurrence;
pub mod order;
pub mod paths;
pub mod plan;
pub mod policy;
pub mod pressure;
pub mod printable;
pub mod progress;
pub mod progress_writer;
pub mod protobuf;
pub mod published;
pub mod pulses;
pub mod purpose;
pub mod record;
pub mod recurring;
pub mod requirement;
pub mod rules;
pub mod run;
pub mod runfile;
pub mod sampled;
pub mod share;
pub mod spec;
pub mod stated;
pub mod stretches;
mod sums_as_text;
pub mod tasks;
pub mod terminal_size;
pub mod theory;
pub mod units;
pub mod unwritten;
pub mod utc;
pub mod verdict;
pub mod why;
pub mod words;

pub use context::Context;
pub use cpus::CpuSet;
pub use distribution::Distribution;
pub use ended::{EndReason, ThreadEnd};
pub use failure::FailureKind;
pub use finding::{Finding, Impact};
pub use histogram::Histogram;
pub use plan::Plan;
pub use policy::Policy;
pub use requirement::Requirement;
pub use run::Run;
pub use spec::{Spec, SpecError, split_loads};
pub use tailbound_rt::sums::Sums;
pub use terminal_size::TerminalSize;
pub use verdict::{Outcome, Verdict};
