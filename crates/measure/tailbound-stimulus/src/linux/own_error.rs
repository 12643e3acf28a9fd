// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sender's own error: the same loop, at the same policy, whose pulses come back to its own socket.
//!
//! Units: ns. What lies between the two stamps then is this machine's alone. The card, its interrupt and the wire are
//! not in it.

use std::sync::atomic::AtomicBool;

use tailbound_box::stimulus::StimulusPlan;
use tailbound_rt::answer::sender::SenderTally;
use tailbound_sys::answer::sender::SenderUdp;
use tailbound_sys::clock::CLOCK_MONOTONIC;

use super::{LinuxSender, name};
use crate::StimulusError;

/// Longest interval of these pulses, so that there are enough of them.
const PERIOD_MAX_NS: i64 = 1_000_000;
const DURATION_NS: i64 = 1_000_000_000;

/// What lies between the two stamps of a pulse that went nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OwnError {
    pub(super) pulses: u64,
    pub(super) least_ns: i64,
    pub(super) greatest_ns: i64,
}

/// Measures it; `None` where no pulse was stamped at both ends.
pub(super) fn measured(
    sender: &LinuxSender,
    plan: &StimulusPlan,
    stop: &AtomicBool,
) -> Result<Option<OwnError>, StimulusError> {
    let line = SenderUdp::open_to_itself(CLOCK_MONOTONIC)?;
    let plan = StimulusPlan { period_ns: plan.period_ns.min(PERIOD_MAX_NS), ..plan.clone() };
    let phase = |line, slots, duration_ns: i64| {
        let pulses = u64::try_from(duration_ns / plan.period_ns).unwrap_or(0).max(1);
        let plan = sender.plan(&plan, name(), pulses);
        sender.phase(line, slots, plan, &mut |_| {}, stop)
    };
    // The kernel begins to stamp a moment after it was asked to.
    let (_, line, slots) = phase(line, super::no_pulse(), DURATION_NS / 10)?;
    let (phase, ..) = phase(line, slots, DURATION_NS)?;
    let SenderTally { answered, unstamped_left, unstamped_answer, clock_set, .. } = phase.tally;
    let extremes = phase.shared.answered.wakeups();
    let is_sound = unstamped_left + unstamped_answer + clock_set == 0;
    let found = extremes.min_ns.zip(extremes.max_ns).filter(|_| is_sound);
    Ok(found.map(|(least_ns, greatest_ns)| OwnError { pulses: answered, least_ns, greatest_ns }))
}
