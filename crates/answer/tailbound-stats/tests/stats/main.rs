// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tests of the statistics that go through the public interface: against certified
//! values, against the slow obvious way, and of what people are told.
//!
//! Units: ns. One binary, so that linking stays cheap.

mod analysis;
mod bound_vectors;
mod bounds;
mod certified;
mod comparison;
mod differences;
mod pure;
mod quantiles;
mod rounds;
mod slices;
mod tasks;
mod theory;
mod verdicts;
mod windows;
