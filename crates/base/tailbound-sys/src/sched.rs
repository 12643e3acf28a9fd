// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scheduling policy, priority and affinity of threads.
//!
//! Context: SETUP. Units: ns for SCHED_DEADLINE. Source: sched(7), sched_setattr(2),
//! sched_setaffinity(2).

use std::collections::BTreeSet;

use crate::error::{SysError, check};

pub use libc::{SCHED_BATCH, SCHED_DEADLINE, SCHED_FIFO, SCHED_IDLE, SCHED_OTHER, SCHED_RR};

const MAX_CPUS: usize = 8192;
const MASK_WORDS: usize = MAX_CPUS / u64::BITS as usize;

/// A policy with its parameters, as the kernel knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// SCHED_OTHER, SCHED_FIFO, …
    pub policy: i32,
    /// Nice value, for SCHED_OTHER and SCHED_BATCH.
    pub nice: i32,
    /// 1 to 99, for SCHED_FIFO and SCHED_RR.
    pub priority: u32,
    /// SCHED_DEADLINE budget.
    pub runtime_ns: u64,
    /// SCHED_DEADLINE relative deadline.
    pub deadline_ns: u64,
    /// SCHED_DEADLINE period.
    pub period_ns: u64,
}

/// struct sched_attr, first published size (48 bytes).
#[repr(C)]
#[derive(Default)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

const SCHED_ATTR_SIZE: u32 = 48;
const NEEDS: &str =
    "root, CAP_SYS_NICE or RLIMIT_RTPRIO (and a real-time budget where the cgroup has none)";
/// SCHED_FLAG_RESET_ON_FORK.
const RESET_ON_FORK: u64 = 1;

/// Sets the policy of thread `tid` (0: the calling thread).
///
/// # Errors
/// EPERM without CAP_SYS_NICE, RLIMIT_RTPRIO or a real-time cgroup budget; EINVAL for
/// impossible parameters; EBUSY when SCHED_DEADLINE admission refuses.
pub fn set(tid: i32, a: &Attributes) -> Result<(), SysError> {
    set_with_flags(tid, a, 0)
}

/// As [`set`]; threads and processes that `tid` starts do not inherit it: they are ordinary
/// (`SCHED_FLAG_RESET_ON_FORK`).
///
/// # Errors
/// Those of [`set`].
pub fn set_without_children(tid: i32, a: &Attributes) -> Result<(), SysError> {
    set_with_flags(tid, a, RESET_ON_FORK)
}

/// Whether a thread could try a policy by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PolicyTrial {
    /// It had it, and has the one of before again.
    Had,
    /// It might not get rid of it, or not get back what it has.
    NotHere,
}

/// Gives the calling thread the policy of `a` for a moment; nice value and slice stay as they are.
///
/// # Errors
/// Those of [`set`].
pub(crate) fn try_policy(a: &Attributes) -> Result<PolicyTrial, SysError> {
    let own = read(0)?;
    let before = attributes(&own);
    // Whoever is under SCHED_IDLE may not be allowed to leave it; time of SCHED_DEADLINE is not given back at once.
    if [SCHED_IDLE, SCHED_DEADLINE].contains(&a.policy) || before.policy == SCHED_DEADLINE {
        return Ok(PolicyTrial::NotHere);
    }
    let reset = if own.flags & RESET_ON_FORK == 0 { 0 } else { libc::SCHED_RESET_ON_FORK };
    set_policy(a, reset)?;
    set_policy(&before, reset).map(|()| PolicyTrial::Had)
}

/// The calling thread's policy and priority alone.
fn set_policy(a: &Attributes, reset: i32) -> Result<(), SysError> {
    let priority = i32::try_from(a.priority).unwrap_or(0);
    // Not sched_setscheduler(3), which musl refuses.
    // SAFETY: sched_setscheduler(2) reads one live int, which is all of a sched_param.
    let result = unsafe {
        libc::syscall(libc::SYS_sched_setscheduler, 0, a.policy | reset, &raw const priority)
    };
    let set = check(result, "sched_setscheduler", &describe(a)).map(drop);
    set.map_err(|e| e.needs(NEEDS))
}

/// As [`set`], with SCHED_FLAG_* of sched_setattr(2).
pub(crate) fn set_with_flags(tid: i32, a: &Attributes, flags: u64) -> Result<(), SysError> {
    let attr = SchedAttr {
        size: SCHED_ATTR_SIZE,
        policy: a.policy.cast_unsigned(),
        flags,
        nice: a.nice,
        priority: a.priority,
        runtime: a.runtime_ns,
        deadline: a.deadline_ns,
        period: a.period_ns,
    };
    // SAFETY: sched_setattr(2) reads `size` bytes from a live struct.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, tid, &raw const attr, 0u32) };
    let what = describe(a);
    let set = check(result, "sched_setattr", &what).map(drop);
    set.map_err(|e| match e.errno {
        libc::EBUSY => SysError::code(
            "sched_setattr",
            format!("{what}: other deadline tasks have what the kernel admits of the CPUs, or ended just now"),
            libc::EBUSY,
        ),
        _ => e.needs(NEEDS),
    })
}

/// Reads the policy of thread `tid` (0: the calling thread).
///
/// # Errors
/// ESRCH when there is no such thread.
pub fn get(tid: i32) -> Result<Attributes, SysError> {
    read(tid).map(|attr| attributes(&attr))
}

fn attributes(attr: &SchedAttr) -> Attributes {
    Attributes {
        policy: attr.policy.cast_signed(),
        nice: attr.nice,
        priority: attr.priority,
        runtime_ns: attr.runtime,
        deadline_ns: attr.deadline,
        period_ns: attr.period,
    }
}

/// Are the threads and processes that `tid` (0: the calling thread) starts ordinary ones?
///
/// # Errors
/// ESRCH when there is no such thread.
pub fn resets_on_fork(tid: i32) -> Result<bool, SysError> {
    Ok(read(tid)?.flags & RESET_ON_FORK != 0)
}

fn read(tid: i32) -> Result<SchedAttr, SysError> {
    let mut attr = SchedAttr::default();
    // SAFETY: sched_getattr(2) writes at most `size` bytes into a live struct.
    let result = unsafe {
        libc::syscall(libc::SYS_sched_getattr, tid, &raw mut attr, SCHED_ATTR_SIZE, 0u32)
    };
    check(result, "sched_getattr", &tid.to_string())?;
    Ok(attr)
}

fn describe(a: &Attributes) -> String {
    match a.policy {
        SCHED_FIFO => format!("SCHED_FIFO {}", a.priority),
        SCHED_RR => format!("SCHED_RR {}", a.priority),
        SCHED_DEADLINE => format!("SCHED_DEADLINE {}/{} ns", a.runtime_ns, a.period_ns),
        SCHED_BATCH => "SCHED_BATCH".to_owned(),
        SCHED_IDLE => "SCHED_IDLE".to_owned(),
        _ => format!("SCHED_OTHER nice {}", a.nice),
    }
}

/// Has the calling thread run on none of `cpus`; whether it could. `online` are those that it may use where the
/// kernel does not say.
#[must_use]
pub fn leave(cpus: &BTreeSet<u32>, online: impl FnOnce() -> Vec<u32>) -> bool {
    let allowed = affinity(0).unwrap_or_else(|_| online());
    let others: Vec<u32> = allowed.into_iter().filter(|c| !cpus.contains(c)).collect();
    !others.is_empty() && set_affinity(0, &others).is_ok()
}

/// Allows thread `tid` (0: the calling thread) to run on `cpus` only.
///
/// # Errors
/// EINVAL when none of them is online and allowed by the cpuset; EPERM for a deadline thread.
pub fn set_affinity(tid: i32, cpus: &[u32]) -> Result<(), SysError> {
    let mut mask = [0u64; MASK_WORDS];
    for &cpu in cpus {
        if let Some(word) = mask.get_mut(cpu as usize / 64) {
            *word |= 1 << (cpu % 64);
        }
    }
    // SAFETY: sched_setaffinity(2) reads the given number of bytes from a live array.
    let result = unsafe {
        libc::syscall(libc::SYS_sched_setaffinity, tid, size_of_val(&mask), mask.as_ptr())
    };
    check(result, "sched_setaffinity", &format!("{cpus:?}")).map(drop)
}

/// The CPUs thread `tid` (0: the calling thread) may run on.
///
/// # Errors
/// ESRCH when there is no such thread.
pub fn affinity(tid: i32) -> Result<Vec<u32>, SysError> {
    let mut mask = [0u64; MASK_WORDS];
    // SAFETY: sched_getaffinity(2) writes at most the given number of bytes into a live array.
    let result = unsafe {
        libc::syscall(libc::SYS_sched_getaffinity, tid, size_of_val(&mask), mask.as_mut_ptr())
    };
    check(result, "sched_getaffinity", &tid.to_string())?;
    let set = |i: usize| mask.get(i / 64).is_some_and(|w| w >> (i % 64) & 1 == 1);
    Ok((0..MAX_CPUS).filter(|i| set(*i)).filter_map(|i| u32::try_from(i).ok()).collect())
}

/// The calling thread's SCHED_FIFO priority, for a second kernel that is to have the same.
pub(crate) fn own_fifo_priority(who: &'static str) -> Result<i32, SysError> {
    let own = get(0)?;
    match i32::try_from(own.priority) {
        Ok(priority) if own.policy == SCHED_FIFO && priority > 0 => Ok(priority),
        _ => {
            let what = format!("a thread under SCHED_FIFO is needed, not {}", describe(&own));
            Err(SysError::code(who, what, libc::EINVAL))
        }
    }
}

/// The CPU that the calling thread runs on at the moment.
#[must_use]
pub fn current_cpu() -> Option<u32> {
    // SAFETY: takes no arguments and touches no memory of ours.
    let cpu = unsafe { libc::sched_getcpu() };
    u32::try_from(cpu).ok()
}

/// The calling thread's id.
#[must_use]
pub fn gettid() -> i32 {
    // Not libc::gettid: the standard library knows that name as a weak one, and in a static
    // program the linker then leaves it at address 0.
    // SAFETY: no arguments, cannot fail.
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_that_was_tried_leaves_nothing() {
        let thread = std::thread::spawn(|| {
            let niced = Attributes { policy: SCHED_BATCH, nice: 3, ..Attributes::default() };
            set_without_children(0, &niced).expect("any user may");
            let before = get(0);
            let of = |policy, priority| Attributes { policy, priority, ..Attributes::default() };
            assert_eq!(try_policy(&of(SCHED_OTHER, 0)), Ok(PolicyTrial::Had));
            match try_policy(&of(SCHED_FIFO, 7)) {
                Err(e) => assert!(e.is_permission(), "{e}"),
                had => assert_eq!(had, Ok(PolicyTrial::Had)),
            }
            assert_eq!(try_policy(&of(SCHED_IDLE, 0)), Ok(PolicyTrial::NotHere));
            assert_eq!((get(0), resets_on_fork(0)), (before, Ok(true)));
        });
        thread.join().expect("no panic");
    }

    #[test]
    fn reads_back_what_is_set() {
        let before = affinity(0).expect("own affinity");
        assert!(!before.is_empty());
        let one = [*before.first().expect("at least one CPU")];
        std::thread::spawn(move || {
            set_affinity(0, &one).expect("one of the allowed CPUs");
            assert_eq!(affinity(0).expect("own affinity"), one);
            set(0, &Attributes { policy: SCHED_BATCH, nice: 3, ..Attributes::default() })
                .expect("batch");
            let got = get(0).expect("own policy");
            assert_eq!((got.policy, got.nice), (SCHED_BATCH, 3));
        })
        .join()
        .expect("no panic");
        assert_eq!(affinity(0).expect("own affinity"), before, "only that thread");
    }
}
