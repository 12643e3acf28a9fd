// SPDX-License-Identifier: MIT OR Apache-2.0
//! Real time or real fast? The arithmetic of the choice between two systems: what each costs
//! in throughput, what each gives in latency, and the length of work at which they are equal.
//!
//! Context: COLD. Units: ns and seconds, named so. Pure.
//! Not here: pictures, tables and words for people (`tailbound-report`).
//! Source: McKenney, "'Real Time' vs. 'Real Fast': How to Choose?", Linux Symposium 2008.

pub mod sample;
