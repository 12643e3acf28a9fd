// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which of a thread's futex waits were for a lock: it waited with the value that means "locked, with
//! waiters", and later it unlocked it itself.
//!
//! Context: COLD. Units: ns. A condition variable or a semaphore is woken by others, and its
//! value is a count; so no wait for one is called a lock.
//! Source: glibc nptl/lowlevellock.c and Rust's std::sync (2), musl pthread_mutex_timedlock.c (bit 31).

use super::Violation;

/// "Locked, with waiters" of glibc and of Rust's standard library.
const CONTENDED: u32 = 2;
/// Of musl, with the owner's number below it.
const WAITERS: u32 = 1 << 31;
/// Waits whose end was not seen yet.
const WAITS_MAX: usize = 64;

/// Waits of one thread that may have been for a lock.
#[derive(Clone, Debug, Default)]
pub(super) struct Locks {
    waits: Vec<(u64, Violation)>,
}

/// Can a lock have this value while a thread waits for it?
pub(super) fn is_contended(value: u32) -> bool {
    value == CONTENDED || value & WAITERS != 0
}

impl Locks {
    /// It slept at `address`; `violation` is what to say if that was a lock.
    pub(super) fn waited(&mut self, address: u64, violation: Violation) {
        if self.waits.len() >= WAITS_MAX {
            self.waits.remove(0);
        }
        self.waits.push((address, violation));
    }

    /// It wakes who waits at `address`: it unlocks it.
    pub(super) fn wakes(&mut self, address: u64, out: &mut Vec<Violation>) {
        if self.waits.iter().any(|(a, _)| *a == address) {
            let (these, rest) =
                std::mem::take(&mut self.waits).into_iter().partition(|(a, _)| *a == address);
            self.waits = rest;
            let these: Vec<(u64, Violation)> = these;
            out.extend(these.into_iter().map(|(_, v)| v));
        }
    }
}
