// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs in the kernel (BPF), as instructions.
//!
//! Not here: maps, loading and letting them run (`tailbound_sys::bpf`), what the programs do (`tailbound-record`,
//! `tailbound-monitor`).

pub mod assembler;
pub mod classes;
