// SPDX-License-Identifier: MIT OR Apache-2.0
//! Other tools' files as run records: pure parsers, and an honest account of what the
//! source lost.
//!
//! For whoever has results of cyclictest, rtla, rteval, jitterdebugger, hwlatdetect, oslat, latmus, stress-ng and their kin, and
//! wants them as one kind of data. The format is found by the content:
//!
//! ```
//! use tailbound_import::import;
//!
//! let histogram = b"# /dev/cpu_dma_latency set to 0us\n# Histogram\n000002 000700\n000003 000299\n000040 000001\n\
//!     # Min Latencies: 00002\n# Avg Latencies: 00002\n# Max Latencies: 00040\n# Histogram Overflows: 00000\n";
//! let run = import("histogram.txt", histogram)?;
//!
//! let source = run.header.source.as_ref().expect("an import names its source");
//! assert_eq!((source.tool.as_str(), source.format.as_str()), ("cyclictest", "histogram text"));
//! let latencies = &run.threads[0].wakeup;
//! assert_eq!((latencies.n, latencies.max_ns), (1000, Some(40_000)));
//! // What cyclictest did not write is said, not made up: here, missed activations among others.
//! assert!(!source.lost.is_empty());
//! // What could change a verdict is a finding, too.
//! assert!(run.findings.iter().any(|f| f.id == "source-no-missed"));
//! # Ok::<(), tailbound_import::ImportError>(())
//! ```
//!
//! [`runs_of`] gives all runs of a file; [`import`] and its kin refuse to choose. Formats that list every sample
//! ([`Format::streams`]) are read piece by piece by [`import_from`], in bounded memory.
//!
//! # Units, errors, features
//!
//! Times are ns; sources that count µs keep `resolution_ns` 1000 and values stand at the lower edge of their step.
//! [`ImportError`] has the place in the file; what is no known format is described ([`Unlike`]). There are no features.
//! Memory is bounded by the file, by [`JSON_MAX`] and by 1024 threads times contexts.
//!
//! # Compatibility
//!
//! Rust 1.90. The interface follows semantic versions: before 1.0 a minor version may change it. A file that is read stays so, with the same figures.
//!
//! # Findings
//!
//! Whatever a source leaves unsaid stands as a
//! sentence in `header.source.lost`, and where it could change a verdict also as a finding.
//! Of impact `doubt`: `source-lost-tail`, `source-no-histogram` (a notice where least and greatest decide), `source-no-missed`,
//! `source-no-samples`, `source-no-count`, `source-samples-lost`, `source-cut-off`, `source-inconsistent`,
//! `source-mixed`, `source-failed`, `source-unit`, `source-abridged`, `source-torn`, `source-clock-realtime`, `source-folded-early`,
//! `source-constant`, `source-unanswered`, `source-skipped`, `source-ambiguous`, `source-spurious`, `source-unknown-level`, `source-ended`, `source-edges-lost`, `source-gives-up`,
//! `source-waits`. Of impact `notice`: `source-not-realtime`, `source-dma-latency`, `source-distance`,
//! `source-other-quantity`, `source-carried`, `source-one-of-several`, `source-other-tools`, `source-coarse-timers`, `source-in-flight`, `source-resolution`, `source-short-level`, `source-all-late`, `source-in-cells`. A run has one finding of each name.
//!
//! Not here: statistics and verdicts (`tailbound-stats`), reading files (the caller).
//! What stands before all readers: text is freed of what mail and consoles did to it (`carried`), and a file of several runs is cut
//! apart (`runs`).
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod capture;
mod carried;
mod column;
mod command;
mod cyclictest;
mod deadline;
mod draft;
mod early;
mod error;
mod fields;
mod foreign;
mod format;
mod hwlatdetect;
mod jitterdebugger;
mod json;
mod latency_trace;
mod latmus;
mod missed;
mod near;
mod oslat;
mod pairs;
mod percentiles;
mod raw_column;
mod read;
mod rtai;
mod rteval;
mod rtla;
mod rtla_analysis;
mod rtla_top;
mod rttests;
mod runs;
mod samples;
mod screens;
pub mod stimulus;
mod stream;
mod stressng;
mod sysjitter;
mod text;
mod tools;
mod unlike;
mod xenomai;
mod xenomai_rows;

pub use capture::CaptureOptions;
pub use error::{ImportError, Place};
pub use foreign::Foreign;
pub use format::Format;
pub use json::JSON_MAX;
pub use read::{
    ImportSource, Options, import, import_as, import_from, import_of, import_with, runs_of,
    runs_with,
};
pub use tailbound_box::{EdgeRule, SampleRate, Wiring};
pub use unlike::{UnknownFormat, Unlike};
