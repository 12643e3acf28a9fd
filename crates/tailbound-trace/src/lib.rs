// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pure parsers: from the kernel's trace to events, from events to columns.
//!
//! Context: COLD. Units: ns. Not here: reading and writing tracefs (`tailbound-host`).
//! Source: Documentation/trace/{timerlat-tracer,osnoise-tracer,hwlat_detector,events}.rst.
#![forbid(unsafe_code)]
#![deny(missing_docs)]
