// SPDX-License-Identifier: MIT OR Apache-2.0
//! How late can it be beyond what was seen? What holds for every distribution, then an
//! extrapolated bound with its whole procedure, or the refusal and why.
//!
//! Units: ns; seconds of the schedule.
//! [`bound`] is the way in; its parts are usable alone on plain numbers ([`extrapolate`]).
//!
//! ```
//! use tailbound_stats::bound::extrapolate::extrapolate;
//! use tailbound_stats::random::Random;
//!
//! // An hour of greatest values by the second; the level that is exceeded once in ten hours.
//! let mut random = Random::new(1);
//! let maxima: Vec<f64> = (0..3600).map(|_| 50_000.0 - 9_000.0 * random.uniform().ln()).collect();
//! let found = extrapolate(&maxima, 1.0 / 36_000.0, 0.0, 1).expect("sound data");
//! assert!(found.limits.bound() > found.limits.point);
//! ```
//! Source: docs/results/bound.md.

pub mod anderson;
pub mod extrapolate;
pub mod few;
mod free;
pub mod gate;
pub mod gpd;
pub mod input;
pub mod limits;
pub mod modes;
mod outcome;
pub mod procedure;
mod refuse;
pub mod statement;
pub mod study;
pub mod threshold;

pub use input::BlockMaxima;
pub use modes::TailMode;
pub use outcome::{outcome, worst};
pub use procedure::{bound, in_short, of_run};
pub use statement::{
    Bound, Cause, Extrapolation, FreeLine, Reason, ReturnLevel, Settings, Statement,
};
