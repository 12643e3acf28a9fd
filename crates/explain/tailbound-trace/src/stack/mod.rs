// SPDX-License-Identifier: MIT OR Apache-2.0
//! User stacks from registers and a copy of the stack's top: unwound, and named.
//!
//! Each frame is found by the tables that compilers write for exceptions
//! (.eh_frame); where a program has none, by the frame pointer. Which it was is told.
//! Not here: where registers, stack, maps and files come from (`tailbound-record`).
//! Source: DWARF 5 §6.4, System V ABI; proc_pid_maps(5).

mod demangle;
mod maps;
mod module;
mod unwind;

pub use maps::{Map, Maps};
pub use module::Module;
pub use unwind::{Machine, Snapshot, Unwinder};
