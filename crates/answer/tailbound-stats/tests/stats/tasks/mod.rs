// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bounds of response times: against a scheduler that plays task sets, and against the literature.
//!
//! Units: ns.

mod bounds;
mod examples;
mod scheduler;
mod sets;
