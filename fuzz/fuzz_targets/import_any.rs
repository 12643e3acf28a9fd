// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any bytes through format detection and whichever parser it finds.
//!
//! Finds panics, endless loops and unbounded memory; corpus in `corpus/import_any`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = tailbound_import::import("fuzz", bytes);
});
