// SPDX-License-Identifier: MIT OR Apache-2.0
//! How far the clocks of two CPUs can be apart, by a ping-pong over one cache line.
//!
//! Context: HOT (no system call but the clock where it is not in the vDSO). Units: ns.
//! One side reads its clock, asks, and reads it again when the answer is there; the other reads
//! its own between seeing the question and answering. The answerer's reading lies between the
//! asker's two, so each round gives limits of the offset; the narrowest of all rounds count.
//! Not here: who spins where (`tailbound-probe`).
//! Source: the limits of RFC 5905 (NTP), section 8, without its assumption of equal ways.

use core::hint::spin_loop;
use core::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// The line between the two. All zero: nothing asked.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub struct Table {
    asked: AtomicU64,
    answered: AtomicU64,
    answer_ns: AtomicI64,
    over: AtomicU64,
}

/// Limits of the answerer's clock minus the asker's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skew {
    /// At least this.
    pub low_ns: i64,
    /// At most this; below `low_ns` where the clocks are not steady against each other.
    pub high_ns: i64,
    /// Rounds that were played.
    pub rounds: u64,
}

impl Skew {
    /// The greatest offset that was not excluded, whichever way.
    #[must_use]
    pub fn bound_ns(&self) -> i64 {
        self.low_ns.saturating_abs().max(self.high_ns.saturating_abs())
    }
}

/// Asks up to `rounds` times, until `until_ns`; `None` where nobody answered.
pub fn ask(
    table: &Table,
    rounds: u64,
    until_ns: i64,
    now_ns: &mut dyn FnMut() -> i64,
) -> Option<Skew> {
    let mut skew = Skew { low_ns: i64::MIN, high_ns: i64::MAX, rounds: 0 };
    'rounds: for round in 1..=rounds {
        let before = now_ns();
        table.asked.store(round, Ordering::Release);
        let mut looks = 0u32;
        while table.answered.load(Ordering::Acquire) != round {
            spin_loop();
            looks = looks.wrapping_add(1);
            if looks.is_multiple_of(1024) && now_ns() > until_ns {
                break 'rounds;
            }
        }
        let answer = table.answer_ns.load(Ordering::Relaxed);
        let after = now_ns();
        skew.low_ns = skew.low_ns.max(answer.wrapping_sub(after));
        skew.high_ns = skew.high_ns.min(answer.wrapping_sub(before));
        skew.rounds = round;
        if after > until_ns {
            break;
        }
    }
    table.over.store(1, Ordering::Release);
    (skew.rounds > 0).then_some(skew)
}

/// Answers until the other side is done, or until `until_ns`.
pub fn answer(table: &Table, until_ns: i64, now_ns: &mut dyn FnMut() -> i64) {
    let mut seen = 0;
    let mut looks = 0u32;
    while table.over.load(Ordering::Acquire) == 0 {
        let asked = table.asked.load(Ordering::Acquire);
        if asked != seen {
            seen = asked;
            table.answer_ns.store(now_ns(), Ordering::Relaxed);
            table.answered.store(asked, Ordering::Release);
            continue;
        }
        spin_loop();
        looks = looks.wrapping_add(1);
        if looks.is_multiple_of(1024) && now_ns() > until_ns {
            return;
        }
    }
}
