// SPDX-License-Identifier: MIT OR Apache-2.0
//! Search for the workload under which a kernel is latest: which to try next, and what is left of the worst.
//!
//! Units: ns. Pure: no clock, no file, no process. The same seed and the same answers give the
//! same candidates, so that a hunt that was interrupted goes on where it was, and anybody can repeat it.
//! Not here: how a candidate is run ([`Evaluator`]), where its result is kept (`hunt_runs`).
//!
//! ```text
//! space.rs     what can be varied           candidate.rs one workload, and its result
//! search.rs    which to try next            vary.rs      drawn, mutated, crossed
//! code.rs      a set of kernel code         reached.rs   who was the first to reach what
//! sequence.rs  sequences of system calls    compose.rs   which call comes next
//! call.rs      one call of them             random.rs    the generator
//! shrink.rs    what is left of the worst
//! ```

mod c_program;
mod call;
mod candidate;
mod code;
mod compose;
mod random;
mod reached;
mod search;
mod sequence;
mod shrink;
mod space;
mod vary;

pub use c_program::c_program;
pub use candidate::{Candidate, Entry, Figures, Origin, Outcome};
pub use code::Code;
pub use random::Random;
pub use search::{End, Evaluator, Foreign, GENERATION, Guidance, Proposal, Search, hunt};
pub use shrink::{Shrunk, Step, shrink};
pub use space::{Kind, LEFT_OUT, Parameter, Space, Values, lab, machine};

#[cfg(test)]
mod led_tests;
#[cfg(test)]
mod tests;
