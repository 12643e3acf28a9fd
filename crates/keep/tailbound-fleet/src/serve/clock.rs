// SPDX-License-Identifier: MIT OR Apache-2.0
//! What time it is.

use std::sync::Arc;

/// Seconds since 1970; tests have their own.
#[derive(Clone)]
pub struct Clock(pub Arc<dyn Fn() -> i64 + Send + Sync>);

impl std::fmt::Debug for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Clock").finish()
    }
}
