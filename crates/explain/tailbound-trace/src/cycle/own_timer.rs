// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether the timer that expired is the one that woke the thread.
//!
//! Units: ns.

use crate::blame::{At, WakeUp};

/// An interrupt that wakes a thread whose timer expired does so at once.
const FIRE_TO_WAKING_NS: u64 = 1_000_000;
/// Timers are not set further ahead than this: what is, is of another clock.
const AHEAD_NS: u64 = 86_400_000_000_000;

/// `w` without a timer that is not what woke it.
pub(super) fn trusted(w: &WakeUp, from: u64) -> WakeUp {
    let mut out = w.clone();
    let at_once = |fire: At, waking: At| {
        waking.t_ns.checked_sub(fire.t_ns).is_some_and(|ns| ns <= FIRE_TO_WAKING_NS)
    };
    let fits = match (w.fire, w.waking) {
        (Some(fire), Some(waking)) => at_once(fire, waking.at) && fire.t_ns >= from,
        _ => false,
    };
    let plausible = w.due_ns.is_some_and(|due| {
        w.fire.is_some_and(|f| due <= f.t_ns) && due.saturating_add(AHEAD_NS) > from
    });
    if !fits {
        (out.due_ns, out.fire, out.allowed) = (None, None, None);
    } else if !plausible {
        (out.due_ns, out.allowed) = (None, None);
    }
    out
}
