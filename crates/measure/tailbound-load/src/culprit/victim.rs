// SPDX-License-Identifier: MIT OR Apache-2.0
//! Troubles that a program's own real-time thread has with itself: it waits for a lock that a less urgent
//! thread holds, or for a page. The thread that is late belongs to the load: it is to be watched
//! (`tailbound watch --comm load/0`), a measured loop beside it hardly notices.
//!
//! Context: the threads are the load; SETUP elsewhere. Units: ns.
//! Per CPU: `load/0` is the urgent thread, which wakes at each interval; `load/1` the one in between, or the one that
//! brings pages; `load/2` the least urgent one, which has the lock. RLIMIT_RTTIME ends what does not sleep.
//! Source: futex(2), Sha, Rajkumar, Lehoczky: Priority Inheritance Protocols (1990).

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

use tailbound_sys::clock::{self, CLOCK_MONOTONIC};
use tailbound_sys::futex::{self, Locked, Scope};
use tailbound_sys::paging::Paged;
use tailbound_sys::sched::{self, gettid};
use tailbound_sys::{SysError, limits};

use super::real_time::{busy, fifo, may_be};
use super::{Options, monotonic_ns};
use crate::failure::Failure;
use crate::kind::Started;
use crate::spin::Threads;

const URGENT: u32 = 60;
const BETWEEN: u32 = 50;
/// Above what watches, or that would keep the owner off.
const OWNER: u32 = 10;
/// Threads of a CPU.
const EACH: usize = 3;
/// The owner has the lock that long before it is wanted, and keeps it that long afterwards.
const BEFORE_NS: i64 = 1_000_000;
const AFTER_NS: i64 = 100_000;
/// It waits no longer for the urgent thread, and nobody looks more rarely at what the others told.
const PATIENCE_NS: i64 = 10_000_000;
const LOOK_NS: i64 = 100_000_000;
/// Pages of a burst: each has to be waited for.
const PAGES: usize = 4;

/// The lock of an inversion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum LockKind {
    /// Its holder keeps its priority.
    #[default]
    Plain,
    /// Its holder inherits the priority of the most urgent waiter.
    Inheriting,
}

/// What the three threads of a CPU share. Numbers count the bursts.
#[derive(Default)]
struct Inversion {
    lock: AtomicU32,
    kind: LockKind,
    due_ns: AtomicI64,
    /// The owner may take the lock.
    turn: AtomicU32,
    held: AtomicU32,
    /// The urgent thread wants it.
    wanted: AtomicU32,
}

impl Inversion {
    fn take(&self) -> Result<(), Failure> {
        if self.kind == LockKind::Inheriting {
            return match futex::lock_pi(&self.lock, gettid(), Scope::Private) {
                Locked::Got | Locked::OwnerDied => Ok(()),
                Locked::Refused(errno) => {
                    Err(SysError::code("futex", "FUTEX_LOCK_PI", errno).into())
                }
            };
        }
        // 0 free, 1 held, 2 held and waited for.
        if self.lock.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
            while self.lock.swap(2, Ordering::Acquire) != 0 {
                futex::wait(&self.lock, 2, None, Scope::Private);
            }
        }
        Ok(())
    }

    fn release(&self) -> Result<(), Failure> {
        if self.kind == LockKind::Inheriting {
            let done = futex::unlock_pi(&self.lock, gettid(), Scope::Private);
            return done.map_err(|e| SysError::code("futex", "FUTEX_UNLOCK_PI", e).into());
        }
        if self.lock.swap(0, Ordering::Release) == 2 {
            futex::wake(&self.lock, 1, Scope::Private);
        }
        Ok(())
    }

    fn urgent(&self, options: Options, count: &dyn Fn(u64)) -> Result<(), Failure> {
        sched::set(0, &fifo(URGENT))?;
        let mut due_ns = monotonic_ns();
        for burst in 1u32.. {
            due_ns = due_ns.max(monotonic_ns()).saturating_add(options.interval_ns);
            self.due_ns.store(due_ns, Ordering::Release);
            self.turn.store(burst, Ordering::Release);
            futex::wake(&self.turn, 1, Scope::Private);
            clock::sleep_until(CLOCK_MONOTONIC, due_ns);
            let held = self.held.load(Ordering::Acquire) == burst;
            self.wanted.store(burst, Ordering::Release);
            futex::wake(&self.wanted, 1, Scope::Private);
            self.take()?;
            self.release()?;
            count(u64::from(held));
        }
        Ok(())
    }

    fn between(&self, options: Options) -> Result<(), Failure> {
        sched::set(0, &fifo(BETWEEN))?;
        let mut last = 0;
        loop {
            last = next(&self.wanted, last);
            busy(options.busy_ns, &|| ())?;
        }
    }

    fn owner(&self) -> Result<(), Failure> {
        sched::set(0, &fifo(OWNER))?;
        let mut last = 0;
        loop {
            last = next(&self.turn, last);
            let due_ns = self.due_ns.load(Ordering::Acquire);
            self.take()?;
            self.held.store(last, Ordering::Release);
            clock::sleep_until(CLOCK_MONOTONIC, due_ns.saturating_sub(BEFORE_NS));
            let end_ns = due_ns.saturating_add(PATIENCE_NS);
            while self.wanted.load(Ordering::Acquire) != last && monotonic_ns() < end_ns {
                spin_loop();
            }
            busy(AFTER_NS, &|| ())?;
            self.release()?;
        }
    }
}

/// Waits until `word` is another than `last`, and tells it.
fn next(word: &AtomicU32, last: u32) -> u32 {
    loop {
        let now = word.load(Ordering::Acquire);
        if now != last {
            return now;
        }
        let until = monotonic_ns().saturating_add(LOOK_NS);
        futex::wait(word, last, Some(until), Scope::Private);
    }
}

/// Three threads on each of `cpus` that make an inversion at each interval: by a lock with inheritance, or
/// without.
pub(super) fn inversion(options: Options, cpus: &[u32], kind: LockKind) -> Started {
    limits::guard_realtime(options.busy_ns)?;
    may_be(URGENT)?;
    let threads = Threads::new(EACH * cpus.len())?;
    for (n, cpu) in cpus.iter().enumerate() {
        let all = Arc::new(Inversion { kind, ..Inversion::default() });
        let (one, two, three) = (Arc::clone(&all), Arc::clone(&all), all);
        let slot = EACH * n;
        threads.spawn(slot + 2, Some(*cpu), move |_| three.owner())?;
        threads.spawn(slot + 1, Some(*cpu), move |_| two.between(options))?;
        threads.spawn(slot, Some(*cpu), move |count| one.urgent(options, count))?;
    }
    Ok(Box::new(threads))
}

/// On each of `cpus` a real-time thread that touches pages at each interval, and another thread that brings each
/// of them after a part of `busy`.
pub(super) fn page_faults(options: Options, cpus: &[u32]) -> Started {
    limits::guard_realtime(options.busy_ns)?;
    may_be(URGENT)?;
    let threads = Threads::new(EACH * cpus.len())?;
    for (n, cpu) in cpus.iter().enumerate() {
        let pages = Arc::new(Paged::new(PAGES)?);
        let slot = EACH * n;
        let brought = Arc::clone(&pages);
        threads.spawn(slot + 1, Some(*cpu), move |_| bring(options, &brought))?;
        threads.spawn(slot, Some(*cpu), move |count| touch(options, &pages, count))?;
    }
    Ok(Box::new(threads))
}

fn touch(options: Options, pages: &Paged, count: &dyn Fn(u64)) -> Result<(), Failure> {
    sched::set(0, &fifo(URGENT))?;
    let mut due_ns = monotonic_ns();
    loop {
        pages.forget()?;
        due_ns = due_ns.max(monotonic_ns()).saturating_add(options.interval_ns);
        clock::sleep_until(CLOCK_MONOTONIC, due_ns);
        (0..PAGES).for_each(|page| pages.touch(page));
        count(1);
    }
}

fn bring(options: Options, pages: &Paged) -> Result<(), Failure> {
    sched::set(0, &fifo(BETWEEN))?;
    let each_ns = options.busy_ns / i64::try_from(PAGES).unwrap_or(1);
    loop {
        if let Some(address) = pages.wait()? {
            clock::sleep_until(CLOCK_MONOTONIC, monotonic_ns().saturating_add(each_ns));
            pages.bring(address)?;
        }
    }
}
