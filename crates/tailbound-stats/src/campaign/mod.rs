// SPDX-License-Identifier: MIT OR Apache-2.0
//! A campaign's runs beside its publication: what was measured, and what became of each run.
//!
//! Context: COLD. Not here: making the runs (`tailbound-series`), the page (`tailbound-report`).

mod given;

pub use given::{Given, Measured, Place, State, share};
