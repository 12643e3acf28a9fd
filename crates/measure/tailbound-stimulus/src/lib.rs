// SPDX-License-Identifier: MIT OR Apache-2.0
//! Outside sources of pulses, over their ports and networks.
//!
//! [`Via`] is which source, [`measure`] measures with it. Every source gives the same record
//! (`tailbound_box::stimulus::StimulusRecord`).
//! Units: ns.
//! Not here: protocols and records (`tailbound-box`), from a record to a run (`tailbound-import`).
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod answerer;
mod check;
mod copy_pace;
mod error;
pub mod flash;
mod join;
mod latmon;
mod linux;
mod measure;
mod pico;
mod progress_line;
mod run_facts;
mod stopped;
mod via;

pub use answerer::{AnswerPlace, Answerer, UnknownPlace};
pub use check::{check, check_json, check_text};
pub use error::StimulusError;
pub use join::join;
pub use latmon::{
    LatmonHost, LatmonServer, PulseSource, ServedConnection, ServedEnd, serve_latmon,
};
pub use linux::LinuxSender;
pub use measure::{measure, run};
pub use run_facts::run_facts;
pub use tailbound_box::pico::Streaming;
pub use tailbound_box::stimulus::StimulusPlan;
pub use via::{UnknownVia, Via};
