// SPDX-License-Identifier: MIT OR Apache-2.0
//! A wait of a watched thread, and what it did from there to the next one.
//!
//! Units: ns on the trace's clock. Whether a wait is within a cycle or between two is
//! not known when it ends, so both readings are kept: as a part of a cycle, and as its begin.

use tailbound_core::blame::BlameRecord;

use super::calls::{Call, Calls, Kind};
use super::part::Parts;

/// A place of waiting: the call, and what of its arguments tells it from others; see [`Sites`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Site {
    pub(super) call: i64,
    pub(super) key: [u64; 3],
    pub(super) level: u8,
}

/// One wait under three names, from coarse to fine. The finest has the length of a relative sleep, in
/// eighths of its doublings: a loop that sleeps at two places in one helper function is told apart by it.
pub(super) type Sites = [Site; 3];

/// A number that no system call has: what a thread waited in is not known.
pub(super) const NO_CALL: i64 = -1;

/// One wait.
#[derive(Clone, Debug)]
pub(super) struct Wait {
    pub(super) sites: Sites,
    /// The call it was in.
    pub(super) call: Option<Call>,
    /// When it went to sleep first, or entered the call.
    pub(super) from: u64,
    /// Its timer's due time, else when it was woken.
    pub(super) release: u64,
    /// A timer gave `release`.
    pub(super) timed: bool,
    /// When it had the CPU again, or left the call.
    pub(super) to: u64,
    /// It slept; else what it waited for had come already.
    pub(super) slept: bool,
    /// From `from` to `to`, for a wait within a cycle.
    pub(super) within: Parts,
    /// From `release` to `to`, for one that begins a cycle.
    pub(super) way: Parts,
    /// The same taken apart with pictures, where it was among the latest.
    pub(super) late: Option<Box<BlameRecord>>,
    /// Something of it was not seen.
    pub(super) lost: bool,
    /// What a timer was set to within the call, on its own clock.
    pub(super) set_to: Option<i64>,
    /// A signal ended it, not what it was for.
    pub(super) interrupted: bool,
}

/// What a thread did from one wait to the next.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    /// The wait it begins with; none at first.
    pub(super) wait: Option<Wait>,
    /// From the end of that to `end`.
    pub(super) run: Parts,
    /// Where the next wait begins.
    pub(super) end: u64,
    pub(super) faults: u32,
    pub(super) cpu: u32,
    /// Something of `run` was not seen.
    pub(super) lost: bool,
}

/// The place of a wait in `call`; `planned` is how long a timer was to let it sleep.
pub(super) fn sites(calls: &Calls, call: Option<&Call>, planned: Option<u64>) -> Sites {
    let Some(call) = call else {
        let none = |level| Site { call: NO_CALL, key: [u64::from(planned.is_some()), 0, 0], level };
        return [none(0), none(1), none(2)];
    };
    let ([a, b], fine) = calls.keys(call);
    let absolute = calls.kind(call.id) == Kind::ClockNanosleep && b & 1 != 0;
    let length = planned.filter(|_| !absolute).map_or(0, eighth);
    let mixed = fine[0] ^ fine[1].rotate_left(17) ^ fine[2].rotate_left(34);
    [
        Site { call: call.id, key: [a, b, 0], level: 0 },
        Site { call: call.id, key: fine, level: 1 },
        Site { call: call.id, key: [mixed, length, 1], level: 2 },
    ]
}

/// The logarithm of a length, in eighths of a doubling.
fn eighth(ns: u64) -> u64 {
    let bits = u64::from(ns.max(1).ilog2());
    // Below eight there are no eighths.
    let rest = bits.checked_sub(3).map_or(0, |lower| (ns >> lower) & 7);
    bits.saturating_mul(8).saturating_add(rest).saturating_add(1)
}
