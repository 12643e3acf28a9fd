// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a measurement is to end.

use std::sync::atomic::{AtomicBool, Ordering};

use tailbound_sys::{limits, signal};

/// By its caller, by an ending signal, or by the guard behind real-time threads.
pub(crate) fn is_stopped(stop: &AtomicBool) -> bool {
    stop.load(Ordering::Relaxed)
        || limits::STOP.load(Ordering::Relaxed)
        || signal::pending().is_some()
}
