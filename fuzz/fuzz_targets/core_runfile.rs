// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any bytes as a run file.
//!
//! Finds panics, endless loops and unbounded memory; corpus in `corpus/core_runfile`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(run) = tailbound_core::runfile::read_run(bytes) {
        for raw in run.raw.iter().take(4) {
            let _ = tailbound_core::runfile::unpack_raw(raw);
        }
    }
});
