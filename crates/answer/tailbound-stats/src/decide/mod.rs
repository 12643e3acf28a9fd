// SPDX-License-Identifier: MIT OR Apache-2.0
//! Real time or real fast? The arithmetic of the choice between two systems: what each costs
//! in throughput, what each gives in latency, and the length of work at which they are equal;
//! which file belongs to which of them, and what their runs tell of the machine.
//!
//! Units: ns of latency, seconds of work, named so. Pure, without randomness.
//! Not here: pictures, tables and words for people (`tailbound-report`).
//! Source: McKenney, "'Real Time' vs. 'Real Fast': How to Choose?", Linux Symposium 2008.

pub mod advantage;
pub mod breakeven;
pub mod choice;
pub mod flow;
pub mod given;
pub mod latency;
pub mod measured;
pub mod published;
pub mod rates;
pub mod sample;
pub mod side;
pub mod sides;
pub mod sleepers;

pub use advantage::Advantage;
pub use breakeven::{Crossing, Line};
pub use choice::{Choice, METHOD, choose};
pub use flow::{Advice, AnswerEvidence, Answers, FlowAnswer};
pub use given::GivenAnswers;
pub use latency::{Deadline, Figure, Latency};
pub use published::{PublishedFault, of_published};
pub use sample::Sample;
pub use side::{BenchmarkCost, Side, of_runs};
pub use sides::{Files, Named, Sides, SidesError};
