// SPDX-License-Identifier: MIT OR Apache-2.0
//! Futexes: a word in memory on which the kernel lets threads wait, and locks on it whose
//! owner inherits the priority of those who wait.
//!
//! Context: HOT (no allocation; one system call each, none where the word alone decides).
//! Units: ns on CLOCK_MONOTONIC for the end of a wait. The raw calls, because what is measured
//! is the kernel's part: a C library adds its own (and musl has no locks with inheritance).
//! Source: futex(2), PI-futex.rst and pi-futex.txt of the kernel.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::raw_time::RawTime;

/// Who may wait on a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Threads of one process: the kernel need not look up the page.
    Private,
    /// Processes that share the memory.
    Shared,
}

/// Set in a lock's word while threads wait for it.
pub const WAITERS: u32 = 0x8000_0000;
/// Set in a lock's word whose owner ended without releasing it.
pub const OWNER_DIED: u32 = 0x4000_0000;
/// The owner's thread id in a lock's word.
pub const OWNER_MASK: u32 = 0x3fff_ffff;

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// Somebody woke it (or the kernel did for no reason: look at the word).
    Woken,
    /// The word was not, or no longer, what was expected.
    Changed,
    /// The time had come.
    TimedOut,
    /// A signal came first.
    Interrupted,
    /// The kernel refused, with this errno.
    Failed(i32),
}

/// What came of asking for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locked {
    /// It is the caller's.
    Got,
    /// It is the caller's; the owner before ended without releasing it.
    OwnerDied,
    /// The kernel refused, with this errno: EDEADLK where the caller owns it or would wait for
    /// itself, EAGAIN or EBUSY where it is another's and waiting was not asked for.
    Refused(i32),
}

fn operation(op: i32, scope: Scope) -> i32 {
    match scope {
        Scope::Private => op | libc::FUTEX_PRIVATE_FLAG,
        Scope::Shared => op,
    }
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

fn waited(result: libc::c_long) -> Waited {
    if result == 0 {
        return Waited::Woken;
    }
    match errno() {
        libc::EAGAIN => Waited::Changed,
        libc::ETIMEDOUT => Waited::TimedOut,
        libc::EINTR => Waited::Interrupted,
        errno => Waited::Failed(errno),
    }
}

/// Of 32-bit machines: futex(2) with a time of 64 bits.
const FUTEX_TIME64: libc::c_long = 422;

/// The kernel reads the words itself: all the compiler sees is their address.
fn call(
    word: &AtomicU32,
    op: i32,
    value: u32,
    until_or_count: *const libc::c_void,
    other: Option<&AtomicU32>,
    last: u32,
) -> libc::c_long {
    numbered(libc::SYS_futex, word, op, value, until_or_count, other, last)
}

fn numbered(
    number: libc::c_long,
    word: &AtomicU32,
    op: i32,
    value: u32,
    until_or_count: *const libc::c_void,
    other: Option<&AtomicU32>,
    last: u32,
) -> libc::c_long {
    let other = other.map_or(std::ptr::null_mut(), AtomicU32::as_ptr);
    // SAFETY: futex(2) on live words; the fourth argument is a live time of the call's kind, null, or (for
    // the requeueing calls) a number that the kernel does not follow.
    unsafe { libc::syscall(number, word.as_ptr(), op, value, until_or_count, other, last) }
}

/// A call that waits, until `until_ns` if given.
fn wait_by(
    word: &AtomicU32,
    op: i32,
    expected: u32,
    until_ns: Option<i64>,
    other: Option<&AtomicU32>,
    last: u32,
) -> Waited {
    let until = until_ns.map(RawTime::of);
    let number = until.as_ref().map_or(libc::SYS_futex, |t| t.call(libc::SYS_futex, FUTEX_TIME64));
    let at = until.as_ref().map_or(std::ptr::null(), RawTime::as_ptr);
    waited(numbered(number, word, op, expected, at, other, last))
}

/// Waits while `word` holds `expected`: until woken, or until `until_ns` if given.
#[inline]
pub fn wait(word: &AtomicU32, expected: u32, until_ns: Option<i64>, scope: Scope) -> Waited {
    // The variant with a bit set takes absolute times.
    let op = operation(libc::FUTEX_WAIT_BITSET, scope);
    wait_by(word, op, expected, until_ns, None, u32::MAX)
}

/// Wakes at most `n` of those who wait on `word`, the highest priority first; how many it were.
#[inline]
pub fn wake(word: &AtomicU32, n: u32, scope: Scope) -> u32 {
    let n = n.min(i32::MAX.unsigned_abs());
    let woken = call(word, operation(libc::FUTEX_WAKE, scope), n, std::ptr::null(), None, 0);
    u32::try_from(woken).unwrap_or(0)
}

/// Wakes at most `n` of those who wait on `from`, and lets at most `move_n` of the others wait
/// on `to` from now on; how many were woken and moved, unless `from` does not hold `expected`.
///
/// # Errors
/// The errno: EAGAIN where the word has changed.
pub fn requeue(
    from: &AtomicU32,
    expected: u32,
    n: u32,
    to: &AtomicU32,
    move_n: u32,
    scope: Scope,
) -> Result<u32, i32> {
    requeue_by(libc::FUTEX_CMP_REQUEUE, from, expected, n, to, move_n, scope)
}

/// Lets those who wait on `from` by [`wait_requeue_pi`] wait for the lock `lock`, all of them
/// (at most `move_n`), and the first of them have it if it is free: what a broadcast on a
/// condition variable does. How many were moved or got it.
///
/// # Errors
/// The errno: EAGAIN where the word has changed, ENOSYS on machines without such locks.
pub fn requeue_pi(
    from: &AtomicU32,
    expected: u32,
    lock: &AtomicU32,
    move_n: u32,
    scope: Scope,
) -> Result<u32, i32> {
    requeue_by(libc::FUTEX_CMP_REQUEUE_PI, from, expected, 1, lock, move_n, scope)
}

fn requeue_by(
    op: i32,
    from: &AtomicU32,
    expected: u32,
    n: u32,
    to: &AtomicU32,
    move_n: u32,
    scope: Scope,
) -> Result<u32, i32> {
    let count = std::ptr::without_provenance(move_n.min(i32::MAX.unsigned_abs()) as usize);
    let moved = call(from, operation(op, scope), n, count, Some(to), expected);
    u32::try_from(moved).map_err(|_| errno())
}

/// Waits while `word` holds `expected`, until another thread's [`requeue_pi`] moves it to
/// `lock` and that lock is the caller's: then the answer is [`Waited::Woken`]. In every other
/// case the caller does not have the lock.
#[inline]
pub fn wait_requeue_pi(
    word: &AtomicU32,
    expected: u32,
    until_ns: Option<i64>,
    lock: &AtomicU32,
    scope: Scope,
) -> Waited {
    let op = operation(libc::FUTEX_WAIT_REQUEUE_PI, scope);
    wait_by(word, op, expected, until_ns, Some(lock), 0)
}

/// Takes the lock `word` for the calling thread `tid`, waiting for it if need be; the owner
/// inherits the caller's priority meanwhile. A word of 0 is a free lock.
#[inline]
pub fn lock_pi(word: &AtomicU32, tid: i32, scope: Scope) -> Locked {
    take(word, tid, libc::FUTEX_LOCK_PI, scope)
}

/// Takes the lock `word` for the calling thread `tid` if nobody has it.
#[inline]
pub fn try_lock_pi(word: &AtomicU32, tid: i32, scope: Scope) -> Locked {
    take(word, tid, libc::FUTEX_TRYLOCK_PI, scope)
}

#[inline]
fn take(word: &AtomicU32, tid: i32, op: i32, scope: Scope) -> Locked {
    let free = word.compare_exchange(0, tid.cast_unsigned(), Ordering::Acquire, Ordering::Relaxed);
    if free.is_ok() {
        return Locked::Got;
    }
    loop {
        if call(word, operation(op, scope), 0, std::ptr::null(), None, 0) == 0 {
            break;
        }
        match errno() {
            // A signal, or the owner was just about to end.
            libc::EINTR => {}
            libc::EAGAIN if op == libc::FUTEX_LOCK_PI => {}
            errno => return Locked::Refused(errno),
        }
    }
    std::sync::atomic::fence(Ordering::Acquire);
    if word.load(Ordering::Relaxed) & OWNER_DIED == 0 {
        return Locked::Got;
    }
    // What the lock protects is made good by whoever is told.
    word.fetch_and(!OWNER_DIED, Ordering::Relaxed);
    Locked::OwnerDied
}

/// Releases the lock `word` of the calling thread `tid`: to the waiter of the highest priority,
/// where there is one.
///
/// # Errors
/// The errno: EPERM where it is not the caller's.
#[inline]
pub fn unlock_pi(word: &AtomicU32, tid: i32, scope: Scope) -> Result<(), i32> {
    let own = tid.cast_unsigned();
    if word.compare_exchange(own, 0, Ordering::Release, Ordering::Relaxed).is_ok() {
        return Ok(());
    }
    std::sync::atomic::fence(Ordering::Release);
    match call(word, operation(libc::FUTEX_UNLOCK_PI, scope), 0, std::ptr::null(), None, 0) {
        0 => Ok(()),
        _ => Err(errno()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::gettid;
    use std::sync::Arc;
    use std::thread;

    /// Waits until `there` holds; the other thread is on its way.
    fn until(there: impl Fn() -> bool) {
        while !there() {
            thread::yield_now();
        }
    }

    #[test]
    fn a_wait_ends_by_change_time_or_wake() {
        let word = Arc::new(AtomicU32::new(1));
        assert_eq!(wait(&word, 0, None, Scope::Private), Waited::Changed);
        assert_eq!(wait(&word, 1, Some(1), Scope::Private), Waited::TimedOut);
        let other = Arc::clone(&word);
        let waiter = thread::spawn(move || wait(&other, 1, None, Scope::Private));
        until(|| wake(&word, 1, Scope::Private) == 1);
        assert_eq!(waiter.join().expect("it waits"), Waited::Woken);
    }

    #[test]
    fn a_lock_goes_from_hand_to_hand_and_only_by_its_owner() {
        for scope in [Scope::Private, Scope::Shared] {
            let word = Arc::new(AtomicU32::new(0));
            let own = gettid();
            assert_eq!(lock_pi(&word, own, scope), Locked::Got);
            assert_eq!(lock_pi(&word, own, scope), Locked::Refused(libc::EDEADLK));
            let other = Arc::clone(&word);
            let waiter = thread::spawn(move || {
                let own = gettid();
                let busy = try_lock_pi(&other, own, scope);
                let foreign = unlock_pi(&other, own, scope);
                let got = lock_pi(&other, own, scope);
                let owner = other.load(Ordering::Relaxed) & OWNER_MASK;
                (busy, foreign, got, owner == own.cast_unsigned(), unlock_pi(&other, own, scope))
            });
            until(|| word.load(Ordering::Relaxed) & WAITERS != 0);
            assert_eq!(unlock_pi(&word, own, scope), Ok(()));
            let (busy, foreign, got, owned, released) = waiter.join().expect("it gets the lock");
            assert!(matches!(busy, Locked::Refused(_)), "{busy:?}");
            assert_eq!((foreign, got, released), (Err(libc::EPERM), Locked::Got, Ok(())));
            assert!(owned);
            until(|| word.load(Ordering::Relaxed) == 0);
        }
    }

    #[test]
    fn a_broadcast_hands_the_lock_to_each_waiter_in_turn() {
        let shared = Arc::new((AtomicU32::new(7), AtomicU32::new(0), AtomicU32::new(0)));
        let own = gettid();
        let waiters: Vec<_> = (0..3)
            .map(|_| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    let (word, lock, count) = &*shared;
                    let waited = wait_requeue_pi(word, 7, None, lock, Scope::Private);
                    count.fetch_add(1, Ordering::Relaxed);
                    (waited, unlock_pi(lock, gettid(), Scope::Private))
                })
            })
            .collect();
        let (word, lock, count) = &*shared;
        let mut moved = 0;
        while moved < 3 {
            assert_eq!(lock_pi(lock, own, Scope::Private), Locked::Got);
            moved += requeue_pi(word, 7, lock, 8, Scope::Private).expect("such locks");
            assert_eq!(unlock_pi(lock, own, Scope::Private), Ok(()));
        }
        for waiter in waiters {
            assert_eq!(waiter.join().expect("it waits"), (Waited::Woken, Ok(())));
        }
        assert_eq!(count.load(Ordering::Relaxed), 3);
        assert_eq!(requeue(word, 6, 1, lock, 1, Scope::Private), Err(libc::EAGAIN));
        assert_eq!(requeue(word, 7, 1, lock, 1, Scope::Private), Ok(0));
    }

    #[test]
    fn a_lock_whose_owner_ended_is_told_of() {
        let word = Arc::new(AtomicU32::new(0));
        let other = Arc::clone(&word);
        let owner = thread::spawn(move || {
            let got = lock_pi(&other, gettid(), Scope::Private);
            // The kernel knows of a waiter, so it must clean up at the owner's end.
            until(|| other.load(Ordering::Relaxed) & WAITERS != 0);
            got
        });
        until(|| word.load(Ordering::Relaxed) != 0);
        let own = gettid();
        assert_eq!(lock_pi(&word, own, Scope::Private), Locked::OwnerDied);
        assert_eq!(owner.join().expect("it ended"), Locked::Got);
        assert_eq!(unlock_pi(&word, own, Scope::Private), Ok(()));
    }
}
