// SPDX-License-Identifier: MIT OR Apache-2.0
//! Vocabulary and data of latency measurements: units, CPU sets, policies, the plan of a
//! run, its records, findings and verdict, and the run file they are kept in.
//!
//! For whoever reads what Tailbound wrote, or writes what it reads. A run file is JSON Lines; one that was cut off
//! anywhere is a valid, shorter run.
//!
//! ```
//! use tailbound_core::runfile::{read_run, write_run};
//! use tailbound_core::units::{format_ns_i64, parse_ns};
//! use tailbound_core::{Context, Distribution};
//!
//! let file = concat!(
//!     r#"{"type":"header","schema":"tailbound-run/1","tool":"mine 1.0","id":"a","started":"2026-11-28T12:00:00Z","#,
//!     r#""command":["mine"],"plan":{"probe":"cyclic","interval_ns":1000000,"activations":3,"warm_up_ns":0,"#,
//!     r#""cpus":"1","policy":"fifo:80","clock":"monotonic","means":"nanosleep","loads":[],"#,
//!     r#""requirement":{"deadline_ns":100000,"class":"hard","confidence":0.95}},"machine":{}}"#,
//!     "\n",
//!     r#"{"type":"exceedance","thread":0,"activation":2,"error_ns":250000,"t_ns":2250000,"missed":0}"#,
//!     "\n",
//! );
//! let mut run = read_run(file.as_bytes())?;
//! assert_eq!(run.header.plan.policy.to_string(), "fifo:80");
//! assert_eq!(run.exceedances[0].error_ns, parse_ns("250us")?);
//! assert_eq!(format_ns_i64(run.exceedances[0].error_ns), "250 µs");
//! // Nothing ended it, so it is no whole run.
//! assert!(!run.ended_as_planned());
//!
//! // Latencies of one's own: exact extremes and sums, a histogram of 0.1 %.
//! let mut late = Distribution::default();
//! [2_000, 3_000, -100].into_iter().for_each(|ns| late.add(ns));
//! assert_eq!((late.n, late.min_ns, late.max_ns), (3, Some(-100), Some(3_000)));
//! let written = write_run(&run, Vec::new())?;
//! assert_eq!(read_run(written.as_slice())?.header, run.header);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is where
//!
//! [`runfile`] reads and writes, [`record`] has a type for each line, [`Run`] is all of them; [`plan`] what was to be
//! done, [`Requirement`] what for; [`Finding`] and [`Verdict`] what came of it; [`units`] times as text.
//!
//! # Units, errors, features
//!
//! Times are ns in `i64`, named so; a bare number is no time. What cannot be read is an error with its line and byte;
//! values beyond the documented ranges are refused at the border ([`limits`]). There are no features.
//!
//! # Compatibility
//!
//! Rust 1.90. The interface follows semantic versions: before 1.0 a minor version may change it. The format has a number of its own, `tailbound-run/1`: files of earlier and of later versions are read.
//!
//! Not here: anything that touches the machine, and any statistics (`tailbound-stats`).
#![forbid(unsafe_code)]
#![deny(missing_docs)]
// Most numbers here come from files: arithmetic saturates, or says why not.
#![cfg_attr(
    not(test),
    deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::unwrap_used)
)]

pub mod binned;
pub mod blame;
pub mod board;
pub mod calls;
pub mod campaign;
pub mod collect;
pub mod context;
pub mod cpus;
pub mod crc32;
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
pub mod finding_kinds;
pub mod frames;
pub mod gzip;
pub mod histogram;
pub mod id_page;
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
