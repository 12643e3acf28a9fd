// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probes: arm threads, run the loops, hand the records over.
//!
//! Context: SETUP (until the threads are released), HOT (inside the threads, in `tailbound-rt`).
//! Units: ns. The type state `ThreadGroup` → `Running` → `Vec<ThreadResult>` shows where HOT begins and ends.
//! One file per probe; all of them are in `catalogue`, and have their threads from `thread_group`.
//! Not here: what the kernel did beside them (`tailbound-record`), what a run is for (`tailbound-run`), statistics
//! (`tailbound-stats`).
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod allowed;
mod answer;
pub mod catalogue;
mod clocks;
mod cyclic;
mod error;
mod figures;
mod handover;
pub mod kind;
mod noise;
pub mod pages;
pub mod peer;
mod periodic;
mod place;
mod roles;
mod scheduling;
pub mod selfcost;
pub mod thread_group;

pub use allowed::allowed;
pub use catalogue::{CATALOGUE, prepare};
pub use cyclic::slots;
pub use error::ProbeError;
pub use kind::{PlanOption, Prepared, ProbeKind, ProbeOption, Setup};
pub use peer::Peer;
pub use roles::run_peer;
pub use thread_group::{
    Finished, ProbeOutput, RawSamples, RecordSlot, Recorders, RecordingThread, Running,
    ThreadContext, ThreadGroup, ThreadResult, thread_spec,
};
