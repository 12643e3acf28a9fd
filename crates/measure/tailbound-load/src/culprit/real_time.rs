// SPDX-License-Identifier: MIT OR Apache-2.0
//! Troubles made by real-time threads: one of a higher priority; and one of the lowest, which
//! starves an ordinary thread until the scheduler lets that run before every real-time thread.
//!
//! Context: the threads are the load; SETUP elsewhere. Units: ns.
//! No thread here takes a CPU for ever: each burst ends by the clock; RLIMIT_RTTIME ends the
//! load half a second after a burst should have ended, and kills it soon after; a tenth of each
//! interval is slept; and all threads end with the worker, which ends with its parent.
//! Since Linux 6.12 the fair server gives ordinary threads 50 ms of a second in which real-time
//! ones had the CPU for 950 ms; before, RT throttling stops all real-time threads for the rest of it.
//! Source: sched(7), the kernel's scheduler/sched-rt-group.rst, kernel/sched/deadline.c (dl_server).

use std::cell::Cell;
use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tailbound_sys::ipc::SharedCounters;
use tailbound_sys::limits;
use tailbound_sys::sched::{self, Attributes};

use super::{Options, Pace, monotonic_ns};
use crate::failure::Failure;
use crate::kind::Started;
use crate::spin::Threads;

/// Of the thread that starves others: below every real-time thread that is measured.
const LOWEST: u32 = 1;

pub(super) fn fifo(priority: u32) -> Attributes {
    Attributes { policy: sched::SCHED_FIFO, priority, ..Attributes::default() }
}

/// The right to a priority is asked for here, where a refusal is the answer to the start; the supervisor
/// stays ordinary, or it would be a culprit itself.
pub(super) fn may_be(priority: u32) -> Result<(), Failure> {
    let own = sched::get(0)?;
    sched::set(0, &fifo(priority))?;
    sched::set(0, &own)?;
    Ok(())
}

/// A thread of that priority on each of `cpus`, busy at each interval.
pub(super) fn higher_priority(options: Options, cpus: &[u32]) -> Started {
    limits::guard_realtime(options.busy_ns)?;
    may_be(options.priority)?;
    let threads = Threads::new(cpus.len())?;
    for (slot, cpu) in cpus.iter().enumerate() {
        threads.spawn(slot, Some(*cpu), move |count| {
            sched::set(0, &fifo(options.priority))?;
            let mut pace = Pace::new(options);
            loop {
                busy(options.busy_ns, &|| ())?;
                count(1);
                pace.wait();
            }
        })?;
    }
    Ok(Box::new(threads))
}

/// On each of `cpus` a thread that is always ready, and one of the lowest real-time priority above it.
pub(super) fn fair_server(options: Options, cpus: &[u32]) -> Started {
    limits::guard_realtime(options.busy_ns)?;
    // Above the threads that starve the others: it must hear when it is to stop.
    sched::set_without_children(0, &fifo(LOWEST + 1))?;
    let threads = Threads::new(2 * cpus.len())?;
    // How often the real-time thread of each CPU has looked at the clock; 0 while it sleeps.
    let looks = Arc::new(SharedCounters::new(cpus.len())?);
    for (n, cpu) in cpus.iter().enumerate() {
        let seen = Arc::clone(&looks);
        threads.spawn(2 * n, Some(*cpu), move |count| be_let_in(seen.slot(n), count))?;
        let told = Arc::clone(&looks);
        threads.spawn(2 * n + 1, Some(*cpu), move |_| {
            sched::set(0, &fifo(LOWEST))?;
            starve(options, told.slot(n))
        })?;
    }
    Ok(Box::new(threads))
}

fn starve(options: Options, told: &AtomicU64) -> Result<(), Failure> {
    let mut pace = Pace::new(options);
    let looks = Cell::new(0);
    loop {
        // Never what it was: each turn of the other thread sees another number.
        let look = || {
            looks.set(looks.get() + 1);
            told.store(looks.get(), Ordering::Relaxed);
        };
        busy(options.busy_ns, &look)?;
        told.store(0, Ordering::Relaxed);
        pace.wait();
    }
}

/// Always ready to run; counts the turns it has while the other thread wants the CPU too. That
/// thread cannot run beside this one: what it tells stands still during a turn.
fn be_let_in(seen: &AtomicU64, count: &dyn Fn(u64)) -> Result<(), Failure> {
    let mut before = 0;
    loop {
        let now = seen.load(Ordering::Relaxed);
        if now != 0 && now != before {
            before = now;
            count(1);
        }
        spin_loop();
    }
}

/// Takes the CPU for that long, and tells at each look at the clock.
pub(super) fn busy(busy_ns: i64, look: &dyn Fn()) -> Result<(), Failure> {
    let end_ns = monotonic_ns().saturating_add(busy_ns);
    while monotonic_ns() < end_ns {
        look();
        if limits::STOP.load(Ordering::Relaxed) {
            return Err(Failure::Plain(
                "a real-time thread ran for longer than RLIMIT_RTTIME allows: its guard ended the load",
            ));
        }
        spin_loop();
    }
    Ok(())
}
