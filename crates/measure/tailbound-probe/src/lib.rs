// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probes: arm threads, run the loops, hand the records over.
//!
//! Context: SETUP (until the threads are released), HOT (inside the threads, in `tailbound-rt`).
//! Units: ns. The type state `ThreadGroup` → `Running` → `Vec<ThreadResult>` shows where HOT begins and ends.
//! One file per probe; all of them are in `catalogue`, and have their threads from `thread_group`.
//! Not here: what a run is for (`tailbound-run`), statistics (`tailbound-stats`).
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod attributes;
pub mod blame;
mod bpf;
mod call_trace;
pub mod catalogue;
mod clocks;
mod cyclic;
mod error;
mod figures;
mod handover;
pub mod hot;
pub mod kind;
mod noise;
pub mod observe;
mod own_trace;
pub mod peer;
mod periodic;
mod place;
pub mod recording;
pub mod rules;
mod scheduling;
pub mod section_trace;
pub mod selfcost;
pub mod smi;
pub mod thread_group;
mod trace_ring;
pub mod watch;
mod watchdog;
pub mod watched;

pub use attributes::{allowed, clock_id};
pub use blame::{Blamed, Blamer};
pub use catalogue::{CATALOGUE, prepare};
pub use cyclic::slots;
pub use error::ProbeError;
pub use kind::{PlanOption, Prepared, ProbeKind, ProbeOption, Setup};
pub use observe::{ObserveError, Observed, Observer};
pub use peer::Peer;
pub use thread_group::{
    Finished, ProbeOutput, RecordSlot, Recorders, RecordingThread, Running, ThreadContext,
    ThreadGroup, ThreadResult, thread_spec,
};
