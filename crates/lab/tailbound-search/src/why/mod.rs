// SPDX-License-Identifier: MIT OR Apache-2.0
//! From when on a late sample was inevitable, and what happened there.
//!
//! Units: ns of the guest's virtual time.
//!
//! ```text
//! base.rs     the run again, watched: the sample, and that the run is the same
//! control.rs  the run varied at an instant; by nothing it is the same
//! search.rs   instants and their variations, on all cores
//! debug.rs    the guest stopped at the instant, for gdb
//! ```

mod base;
mod control;
mod debug;
mod search;

pub use base::{Base, GivenRun, WhyQuestion};
pub use debug::at as debug_at;
pub use search::search;
