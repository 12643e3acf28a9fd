// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a thread of a probe is created.
//!
//! Context: SETUP.

use tailbound_core::policy::Policy;
use tailbound_host::attributes;
use tailbound_sys::thread::ThreadSpec;

const STACK_BYTES: usize = 256 << 10;

/// How a thread of `policy` on `cpus` (empty: wherever its creator may run) is created.
#[must_use]
pub fn thread_spec(policy: Policy, cpus: Vec<u32>) -> ThreadSpec {
    let group = tailbound_host::cgroups::to_join(&cpus);
    ThreadSpec { attributes: attributes(policy), cpus, group, stack_bytes: STACK_BYTES }
}
