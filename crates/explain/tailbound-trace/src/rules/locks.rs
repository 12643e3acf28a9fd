// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which of a thread's futex waits were for a lock: it waited with the value that means "locked, with
//! waiters", and later it unlocked it itself.
//!
//! Units: ns. A condition variable or a semaphore is woken by others, and its
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
    waits: Vec<LockWait>,
}

/// One wait.
#[derive(Clone, Debug)]
struct LockWait {
    address: u64,
    /// What to say if that was a lock.
    lock: Violation,
    /// What to say if it was not.
    other: Option<Violation>,
}

/// Can a lock have this value while a thread waits for it?
pub(super) fn is_contended(value: u32) -> bool {
    value == CONTENDED || value & WAITERS != 0
}

impl Locks {
    /// It slept at `address`: what to say if that was a lock, and what if it was not. One wait breaks one rule.
    pub(super) fn waited(
        &mut self,
        address: u64,
        lock: Violation,
        other: Option<Violation>,
        out: &mut Vec<Violation>,
    ) {
        if self.waits.len() >= WAITS_MAX {
            out.extend(self.waits.remove(0).other);
        }
        self.waits.push(LockWait { address, lock, other });
    }

    /// No lock was unlocked any more: what else the waits were.
    pub(super) fn rest(&mut self, out: &mut Vec<Violation>) {
        out.extend(self.waits.drain(..).filter_map(|w| w.other));
    }

    /// It wakes who waits at `address`: it unlocks it.
    pub(super) fn wakes(&mut self, address: u64, out: &mut Vec<Violation>) {
        let all = std::mem::take(&mut self.waits).into_iter();
        let (these, rest): (Vec<_>, Vec<_>) = all.partition(|w| w.address == address);
        self.waits = rest;
        out.extend(these.into_iter().map(|w| w.lock));
    }
}
