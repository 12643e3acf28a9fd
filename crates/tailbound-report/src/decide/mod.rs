// SPDX-License-Identifier: MIT OR Apache-2.0
//! Real time against real fast: what two systems cost and give, in tables, pictures and words.
//!
//! Context: COLD. Not here: the arithmetic (`tailbound_stats::decide`).

pub mod works;
