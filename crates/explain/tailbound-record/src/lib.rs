// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records what the kernel did: beside a measurement, or while a foreign program or the whole machine is watched.
//!
//! Context: SETUP (until the trace runs), COLD. Units: ns. Each recorder has a trace instance, programs in the kernel
//! or sampling events of its own, and leaves none behind.
//! Not here: what is measured (`tailbound-probe`), what the records mean (`tailbound-trace`), tracefs itself
//! (`tailbound-host`), system calls (`tailbound-sys`).
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod blame;
mod bpf;
mod call_trace;
mod error;
pub mod follow_session;
pub mod hot;
pub mod interruption_session;
pub mod looks;
mod measured_thread;
pub mod observe;
mod own_trace;
pub mod progress_line;
pub mod recording;
pub mod rules;
pub mod section_trace;
pub mod sink;
mod trace_clock;
mod trace_ring;
pub mod watch;
pub mod watch_session;
pub mod watched;

pub use blame::{Blamed, Blamer, KeptTrace};
pub use error::{ObserveError, RecordError};
pub use measured_thread::MeasuredThread;
pub use observe::{Gap, Observed, Observer};
pub use trace_clock::trace_clock_id;
