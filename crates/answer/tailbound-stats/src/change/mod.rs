// SPDX-License-Identifier: MIT OR Apache-2.0
//! When something changed: over a series of runs, and within one.
//!
//! Units: natural logarithms of ns, so that 0.05 is 5 % whatever the size.
//! Over runs ([`series`]): E-divisive on several figures of each run at once. It looks for the
//! place that splits a stretch of runs into two that differ most in energy distance, keeps it
//! if a permutation of the runs seldom splits as well *and* a figure moved by more than the
//! margin, and goes on with both halves. Within a run ([`mod@phases`]): a two-sided CUSUM.
//! Not here: comparing two systems ([`mod@crate::compare`]).
//! Source: Matteson and James 2014 (E-divisive); Page 1954 (CUSUM).

pub mod facts;
pub mod features;
mod lasting;
pub mod phases;
pub mod series;
pub mod study;

pub use facts::{FactChange, REACH, RunFacts, changed, near};
pub use features::{FIGURES, Features};
pub use phases::{Phase, phases};
pub use series::{Change, History, Settings, history};
