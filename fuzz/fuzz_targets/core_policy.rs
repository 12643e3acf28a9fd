// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any text as a policy: what is read must be written and read back the same.
//!
//! Finds panics, endless loops and unbounded memory; corpus in `corpus/core_policy`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tailbound_core::Policy;

fuzz_target!(|text: &str| {
    if let Ok(policy) = text.parse::<Policy>() {
        let again = policy.to_string().parse::<Policy>();
        let long = matches!(policy, Policy::Deadline { period_ns, .. } if period_ns >= 1 << 53);
        assert!(long || again == Ok(policy));
    }
});
