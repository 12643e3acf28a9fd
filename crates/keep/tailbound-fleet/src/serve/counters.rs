// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the server counts of itself.

use std::sync::atomic::{AtomicU64, Ordering};

/// Since the server began.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// Runs that were new.
    pub(super) added: AtomicU64,
    /// Runs that were there already.
    pub(super) again: AtomicU64,
    /// Uploads that were not taken: no run file, too large, broken off.
    pub(super) refused: AtomicU64,
    /// Requests that were not allowed.
    pub(super) forbidden: AtomicU64,
}

/// One more.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
