// SPDX-License-Identifier: MIT OR Apache-2.0
//! The binary: see the library.

use std::process::ExitCode;

/// musl's own maps and unmaps a page for nearly every block.
#[cfg(target_env = "musl")]
#[global_allocator]
static HEAP: tailbound_sys::first_heap::FirstHeap = tailbound_sys::first_heap::FirstHeap::new();

fn main() -> ExitCode {
    tailbound::main()
}
