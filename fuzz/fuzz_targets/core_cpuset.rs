// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any text as a CPU list: what is read must be written and read back the same.
//!
//! Finds panics, endless loops and unbounded memory; corpus in `corpus/core_cpuset`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tailbound_core::CpuSet;

fuzz_target!(|text: &str| {
    if let Ok(set) = text.parse::<CpuSet>() {
        assert_eq!(set.to_string().parse::<CpuSet>(), Ok(set));
    }
});
