// SPDX-License-Identifier: MIT OR Apache-2.0
//! Many runs as one: which runs to make and in which order, where their files lie, and which of them are
//! there already.
//!
//! Units: ns. What the command line calls, and later the agent of a farm.
//! A series measures, prints and asks nothing itself: a [`Caller`] makes runs and reads files, a
//! progress trait of each kind of series hears how far it is.
//! Not here: options of the command line and consent (`tailbound`), one run (`tailbound-run`), kernels
//! (`tailbound-lab`), pages (`tailbound-report`).
//!
//! ```text
//! rounds/    variants in turn, in random order      campaign/  a publication's measurements, by system
//! sweep.rs   one interval after the other           sleepers.rs  one number of tasks after the other
//! auto/      which of many changes help
//! child.rs   one run in a process of its own
//! ```
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod auto;
pub mod caller;
pub mod campaign;
pub mod child;
pub mod error;
pub mod rounds;
pub mod sleepers;
pub mod sweep;
#[cfg(test)]
mod testing;

pub use caller::{Caller, ChildEnd};
pub use child::Children;
pub use error::SeriesError;
