// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probes: arm threads, run the loops, hand the records over.
//!
//! Context: SETUP (`arm`), HOT (inside the threads, in `tailbound-rt`).
//! Units: ns. The type state `Armed` → `Running` → `Vec<Finished>` shows where HOT begins
//! and ends. Not here: what a run is for (`tailbound-run`), statistics (`tailbound-stats`).
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod arm;
pub mod observe;
pub mod selfcost;

pub use arm::{Armed, Finished, Home, ProbeError, Running, Seat, allowed, arm, seats};
pub use observe::{ObserveError, Observed, Observer};
