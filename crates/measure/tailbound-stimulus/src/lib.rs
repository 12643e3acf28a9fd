// SPDX-License-Identifier: MIT OR Apache-2.0
//! Outside sources of pulses, over their ports and networks.
//!
//! [`Via`] is which source, [`measure`] measures with it. Every source gives the same record
//! (`tailbound_box::stimulus::StimulusRecord`).
//! Units: ns.
//! Not here: protocols and records (`tailbound-box`), from a record to a run (`tailbound-import`).
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod error;
pub mod flash;
mod latmon;
mod linux;
mod measure;
mod pico;
mod via;

pub use error::StimulusError;
pub use latmon::{LatmonHost, LatmonServer, PulseSource, ServedConnection, ServedEnd};
pub use linux::LinuxSender;
pub use measure::{measure, run};
pub use pico::{IsStopped, check};
pub use via::{UnknownVia, Via};
