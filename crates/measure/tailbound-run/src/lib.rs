// SPDX-License-Identifier: MIT OR Apache-2.0
//! One run from inventory to verdict: what the command line, the lab's guest and a farm's
//! agent all call.
//!
//! Context: SETUP and COLD; the measured threads are `tailbound-probe`'s. Units: ns.
//! Not here: parsing the command line (`tailbound`), plots (`tailbound-report`).
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod actions;
mod benchmarks;
pub mod defaults;
mod disk;
pub mod error;
mod journal;
mod no_load;
mod observed;
pub mod option_error;
mod option_text;
mod options;
pub mod output;
mod prepare;
mod punctual;
pub mod resolve;
pub mod room;
pub mod run;
pub mod session;
#[cfg(test)]
mod simulated;
mod sleeps;
mod supervise;
mod thread_record;
mod trace_file;
mod tuned;
mod until;
pub mod until_error;
mod urgent;
pub mod view;
pub mod watch;
pub mod watched;
pub mod watched_tasks;
mod world;

pub use actions::{
    ActionError, Actions, Threshold, ThresholdOptions, guard_main as action_guard_main,
};
pub use benchmarks::measure_benchmarks;
pub use error::RunError;
pub use options::check_options;
pub use output::Output;
pub use prepare::{Setting, are_threads};
pub use resolve::{Request, Resolved, resolve};
pub use run::run;
pub use session::Session;
pub use view::{SamplesTo, ThreadSamples, View};
