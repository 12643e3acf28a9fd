// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether the kernel allows the policy of a plan.
//!
//! Context: SETUP. Source: sched_setattr(2).

use tailbound_core::policy::Policy;
use tailbound_sys::error::SysError;
use tailbound_sys::thread;

use crate::thread_group::thread_spec;

/// May this process create threads of `policy`? Tries it.
///
/// # Errors
/// What the kernel refused, and what it would need.
pub fn allowed(policy: Policy) -> Result<(), SysError> {
    thread::try_spec(thread_spec(policy, Vec::new()))
}
