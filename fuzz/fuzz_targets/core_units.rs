// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any text as a time: what is read must be written and read back the same.
//!
//! Finds panics, endless loops and unbounded memory; corpus in `corpus/core_units`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tailbound_core::units::{exact, parse_ns};

fuzz_target!(|text: &str| {
    if let Ok(ns) = parse_ns(text) {
        // A float has 53 bits: beyond them the text form is read back rounded.
        if ns.unsigned_abs() < 1 << 53 {
            assert_eq!(parse_ns(&exact(ns)), Ok(ns));
        }
    }
});
