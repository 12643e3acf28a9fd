// SPDX-License-Identifier: MIT OR Apache-2.0
//! Troubles in which the kernel itself holds the CPU: a soft interrupt, disabled interrupts, a spin for a
//! lock that another CPU holds.
//!
//! Context: the threads are the load; SETUP elsewhere. Units: ns.
//! How much makes a burst of the length asked for is measured at the start. With PREEMPT_RT soft
//! interrupts run in threads and these locks sleep: then none of them keeps a real-time thread from the CPU.
//! Source: kernel/softirq.c, Documentation/locking/locktypes.rst.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tailbound_sys::broadcast::Broadcast;
use tailbound_sys::futex::{self, Scope};
use tailbound_sys::long_wake::LongWake;

use super::{Options, Pace, least_ns, monotonic_ns, times};
use crate::failure::{Explain as _, Failure};
use crate::kind::Started;
use crate::spin::Threads;

/// Sockets, and those who wait, by which the length is found; and the most.
const TRIAL_SOCKETS: usize = 32;
const SOCKETS_MAX: usize = 4000;
const TRIAL_WAITERS: usize = 2000;
const WAITERS_MAX: usize = 400_000;
/// No thread waits longer for another before it looks again.
const WAIT_NS: i64 = 100_000_000;
const FEWER: &str = "ask for a shorter busy=, or raise `ulimit -n`";

/// A thread on each of `cpus` that has a soft interrupt of that length at each interval.
pub(super) fn softirq(options: Options, cpus: &[u32]) -> Started {
    let needs = "kind=softirq needs a loopback network";
    let trial = Broadcast::new(TRIAL_SOCKETS).remedy(needs)?;
    let trial_ns = least_ns(|| Ok(trial.send()?))?;
    let sockets = times(options.busy_ns, TRIAL_SOCKETS, trial_ns).min(SOCKETS_MAX);
    drop(trial);
    allow(sockets * cpus.len())?;
    let threads = Threads::new(cpus.len())?;
    for (slot, cpu) in cpus.iter().enumerate() {
        let all = Broadcast::new(sockets).remedy(FEWER)?;
        threads.spawn(slot, Some(*cpu), move |count| {
            let mut pace = Pace::new(options);
            loop {
                all.send()?;
                count(1);
                pace.wait();
            }
        })?;
    }
    Ok(Box::new(threads))
}

/// A thread on each of `cpus` that makes a system call with interrupts disabled for that long.
pub(super) fn interrupts_off(options: Options, cpus: &[u32]) -> Started {
    let threads = Threads::new(cpus.len())?;
    for (slot, cpu) in cpus.iter().enumerate() {
        let wake = long_wake(options)?;
        threads.spawn(slot, Some(*cpu), move |count| {
            let mut pace = Pace::new(options);
            loop {
                wake.call()?;
                count(1);
                pace.wait();
            }
        })?;
    }
    Ok(Box::new(threads))
}

/// On the first of `cpus` a thread that holds a lock of the kernel for that long, on each of the others one
/// that spins for it meanwhile.
pub(super) fn lock_spin(options: Options, cpus: &[u32]) -> Started {
    let Some((holder, others)) = cpus.split_first().filter(|(_, others)| !others.is_empty()) else {
        return Err(Failure::TooFewCpus {
            option: "kind=lock-spin",
            why: "a lock that nobody else holds is not waited for",
        });
    };
    let threads = Threads::new(cpus.len())?;
    let wake = Arc::new(long_wake(options)?);
    let turn = Arc::new(AtomicU32::new(0));
    for (n, cpu) in others.iter().enumerate() {
        let (wake, turn) = (Arc::clone(&wake), Arc::clone(&turn));
        threads.spawn(n + 1, Some(*cpu), move |count| {
            let mut last = turn.load(Ordering::Acquire);
            loop {
                let until = monotonic_ns().saturating_add(WAIT_NS);
                let _ended = futex::wait(&turn, last, Some(until), Scope::Private);
                let now = turn.load(Ordering::Acquire);
                if now != last {
                    last = now;
                    // A moment with the lock: only the spin takes time. With several of these
                    // another may be in the midst of the same, which is as good.
                    let _another = wake.visit();
                    count(1);
                }
            }
        })?;
    }
    let waiters = u32::try_from(others.len()).unwrap_or(1);
    threads.spawn(0, Some(*holder), move |_| {
        let mut pace = Pace::new(options);
        loop {
            turn.fetch_add(1, Ordering::Release);
            // They are on their way when this one has the lock.
            futex::wake(&turn, waiters, Scope::Private);
            wake.call()?;
            pace.wait();
        }
    })?;
    Ok(Box::new(threads))
}

/// A call that takes about `busy_ns`.
fn long_wake(options: Options) -> Result<LongWake, Failure> {
    let trial = LongWake::new(TRIAL_WAITERS)?;
    let trial_ns = least_ns(|| Ok(trial.call()?))?;
    let waiters = times(options.busy_ns, TRIAL_WAITERS, trial_ns).min(WAITERS_MAX);
    drop(trial);
    allow(waiters / 100 + 200)?;
    LongWake::new(waiters).remedy("ask for a shorter busy=")
}

fn allow(descriptors: usize) -> Result<(), Failure> {
    let needed = descriptors as u64 + 64;
    tailbound_sys::process::allow_open_files(needed).map_err(|source| Failure::Descriptors {
        needed,
        source,
        instead: "a shorter busy=",
    })
}
