// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probes: arm threads, run the loops, hand the records over.
//!
//! Context: SETUP (`arm`), HOT (inside the threads, in `tailbound-rt`).
//! Units: ns. The type state `Cast` → `Running` → `Vec<Home>` shows where HOT begins and ends.
//! One file a probe; all of them are in `catalogue`, and have their threads from `cast`. Not here: what a run is for (`tailbound-run`), statistics (`tailbound-stats`).
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod arm;
pub mod cast;
pub mod catalogue;
mod clocks;
mod handover;
pub mod kind;
mod noise;
pub mod observe;
pub mod peer;
mod periodic;
mod scheduling;
pub mod selfcost;
mod watchdog;

pub use arm::{ProbeError, allowed, arm, seats};
pub use cast::{Cast, Extra, Finished, Home, Recorders, Running, Seat, Stage, birth};
pub use catalogue::{CATALOGUE, begin, check};
pub use kind::{ProbeKind, ProbeOption, Setup};
pub use observe::{ObserveError, Observed, Observer};
pub use peer::Peer;
