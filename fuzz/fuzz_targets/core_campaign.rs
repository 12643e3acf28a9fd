// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any text as a campaign file.
//!
//! Finds panics, endless loops and unbounded memory; corpus in `corpus/core_campaign`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = tailbound_core::plan::RunConfig::parse(text);
});
