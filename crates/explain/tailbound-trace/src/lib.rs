// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pure parsers: from the kernel's trace to events, from events to columns; and the instructions of programs that
//! record in the kernel.
//!
//! Units: ns. What a record holds is read from the kernel's own `format`
//! files, never by column: the layouts have changed and will change.
//! Not here: reading and writing tracefs (`tailbound-host`), when to (`tailbound-record`).
//! Source: Documentation/trace/{timerlat-tracer,osnoise-tracer,hwlat_detector,events,ring-buffer-design}.rst.
#![forbid(unsafe_code)]
#![deny(missing_docs)]
// Every number here comes from a kernel or from a stranger's file: arithmetic saturates or says why not.
#![cfg_attr(
    not(test),
    deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::unwrap_used)
)]

pub mod blame;
pub mod bpf;
pub mod btf;
pub mod counts;
pub mod cycle;
pub mod dat;
pub mod decode;
pub mod event;
pub mod format;
pub mod merge;
pub mod page;
pub mod perf;
pub mod rules;
pub mod samples;
pub mod split;
pub mod stack;
pub mod symbols;
pub mod text;

pub use counts::Counts;
pub use decode::{Decoder, Record, Sample, TimerlatContext};
pub use event::EventDecoder;
pub use format::{EventFormat, FormatError};
pub use merge::Merge;
pub use page::{PageError, PageLayout};
pub use split::{Schedule, Split};
