// SPDX-License-Identifier: MIT OR Apache-2.0
//! A machine at work, for years: how long its real-time threads wait for a CPU, counted in the kernel, window by
//! window.
//!
//! What runs in the kernel at each event is in `programs`. Units: ns of CLOCK_MONOTONIC.
//! One window is one line of a file, and the sum of all is what Prometheus reads. Nothing is kept of a window that was
//! written, so that memory does not grow with time.
//! Not here: how a cause is found (`tailbound-trace`), words on the command line (`tailbound`).
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod apart;
mod boost;
mod clocks;
mod cost;
mod counter;
mod counting;
mod description;
mod exposition;
mod housekeeping;
mod http;
mod layout;
mod lines;
mod monitor;
mod notify;
mod outbox;
mod probe;
mod programs;
mod recent;
mod recorder;
mod runfile;
mod starving;
mod summary;
mod traced;
mod upload;
mod window;

pub use boost::Booster;
pub use cost::Cost;
pub use counter::CounterError;
pub use counting::{By, CountingError};
pub use description::TypesError;
pub use housekeeping::NoProbeCpu;
pub use monitor::{Monitor, MonitorError, MonitorOptions, Reasons};
pub use outbox::{Outbox, OutboxState};
pub use probe::ProbeError;
pub use recorder::{Record, RecorderError};
pub use starving::{Starver, Starving};
pub use summary::Summary;
pub use upload::Upload;
pub use window::{Before, Culprit, Dump, Gaps, Late, Named, Policy, ThreadWindow, Window};
