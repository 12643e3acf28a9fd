// SPDX-License-Identifier: MIT OR Apache-2.0
//! Resource limits, resource use, and the guard against a real-time loop that never sleeps.
//!
//! Context: SETUP, COLD. Units: ns, pages, bytes. Source: getrlimit(2), getrusage(2).

use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{SysError, check};

/// Set by anyone who wants the measuring loops of this process to end.
pub static STOP: AtomicBool = AtomicBool::new(false);
/// Set by the guard when a real-time thread ran for [`GUARD_SOFT_US`] without sleeping.
pub static RUNAWAY: AtomicBool = AtomicBool::new(false);

/// CPU time without a sleep after which the guard stops the loops.
pub const GUARD_SOFT_US: u64 = 500_000;
/// CPU time without a sleep after which the kernel kills the process.
pub const GUARD_HARD_US: u64 = 3_000_000;

/// A limit below this ends a real-time thread at a tick of the clock that it happens to run in (10 ms at 100 Hz).
const RTTIME_FLOOR_US: u64 = 20_000;

/// Arms RLIMIT_RTTIME: a real-time thread that never sleeps first stops the loops
/// (SIGXCPU, handled in that very thread), then is killed by the kernel; both so much later
/// as threads are meant to be busy without a sleep (0 for those of a schedule).
/// A limit that is tighter is raised, where this process may; one that would end threads that sleep is refused.
///
/// # Errors
/// When the limit cannot be set, or is too tight and cannot be raised.
pub fn guard_realtime(busy_ns: i64) -> Result<(), SysError> {
    extern "C" fn on_xcpu(_: i32) {
        RUNAWAY.store(true, Ordering::Relaxed);
        STOP.store(true, Ordering::Relaxed);
    }
    // SAFETY: all-zero bytes are a valid sigaction: no mask, no flags.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = on_xcpu as extern "C" fn(i32) as usize;
    // SAFETY: the handler only stores to atomics, which is async-signal-safe.
    let set_handler =
        unsafe { libc::sigaction(libc::SIGXCPU, &raw const action, std::ptr::null_mut()) };
    check(set_handler, "sigaction", "SIGXCPU")?;
    let (_, hard) = get(libc::RLIMIT_RTTIME)?;
    let busy_us = u64::try_from(busy_ns / 1000).unwrap_or(0);
    let after = |guard_us: u64| guard_us.saturating_add(busy_us);
    let (wanted_soft, wanted_hard) = (after(GUARD_SOFT_US), after(GUARD_HARD_US));
    if hard >= wanted_hard {
        return set(libc::RLIMIT_RTTIME, wanted_soft, wanted_hard);
    }
    if set(libc::RLIMIT_RTTIME, wanted_soft, wanted_hard).is_ok() {
        return Ok(());
    }
    if hard < RTTIME_FLOOR_US.saturating_add(busy_us) {
        let what = format!(
            "RLIMIT_RTTIME is {hard} us: the kernel would kill a real-time thread that sleeps in time"
        );
        return Err(SysError::code("prlimit", what, libc::EPERM).needs(
            "ulimit -R unlimited by root, LimitRTTIME=infinity in the unit, or CAP_SYS_RESOURCE",
        ));
    }
    // Nobody loses the guard: it comes as late as this login allows.
    set(libc::RLIMIT_RTTIME, wanted_soft.min(hard), hard)
}

#[cfg(target_env = "gnu")]
type Resource = libc::__rlimit_resource_t;
#[cfg(not(target_env = "gnu"))]
type Resource = i32;

/// Soft and hard limit of a resource; u64::MAX is unlimited.
///
/// # Errors
/// EINVAL for an unknown resource.
pub fn get(resource: Resource) -> Result<(u64, u64), SysError> {
    let mut limit = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: prlimit(2) writes one live rlimit64.
    let result = unsafe {
        libc::syscall(libc::SYS_prlimit64, 0, resource, std::ptr::null::<u8>(), &raw mut limit)
    };
    check(result, "prlimit", "")?;
    Ok((limit.rlim_cur, limit.rlim_max))
}

/// Sets soft and hard limit of a resource.
///
/// # Errors
/// EPERM when raising the hard limit without CAP_SYS_RESOURCE.
pub fn set(resource: Resource, soft: u64, hard: u64) -> Result<(), SysError> {
    let limit = libc::rlimit64 { rlim_cur: soft, rlim_max: hard };
    // SAFETY: prlimit(2) reads one live rlimit64.
    let result = unsafe {
        libc::syscall(libc::SYS_prlimit64, 0, resource, &raw const limit, std::ptr::null::<u8>())
    };
    check(result, "prlimit", "").map(drop)
}

/// Counters of the calling thread so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Page faults without disk access.
    pub minor_faults: u64,
    /// Page faults with disk access.
    pub major_faults: u64,
    /// Times it slept.
    pub voluntary_switches: u64,
    /// Times it was preempted.
    pub involuntary_switches: u64,
    /// CPU time.
    pub cpu_ns: u64,
}

/// Reads the calling thread's counters.
#[must_use]
pub fn thread_usage() -> Usage {
    // SAFETY: all-zero bytes are a valid rusage.
    let mut r: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: getrusage(2) writes one live rusage; RUSAGE_THREAD exists since Linux 2.6.26.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut r) };
    let count = |v: libc::c_long| u64::try_from(v).unwrap_or(0);
    Usage {
        minor_faults: count(r.ru_minflt),
        major_faults: count(r.ru_majflt),
        voluntary_switches: count(r.ru_nvcsw),
        involuntary_switches: count(r.ru_nivcsw),
        cpu_ns: u64::try_from(crate::clock::now_ns(crate::clock::CLOCK_THREAD_CPUTIME_ID))
            .unwrap_or(0),
    }
}

impl Usage {
    /// What was used since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            minor_faults: self.minor_faults.saturating_sub(earlier.minor_faults),
            major_faults: self.major_faults.saturating_sub(earlier.major_faults),
            voluntary_switches: self.voluntary_switches.saturating_sub(earlier.voluntary_switches),
            involuntary_switches: self
                .involuntary_switches
                .saturating_sub(earlier.involuntary_switches),
            cpu_ns: self.cpu_ns.saturating_sub(earlier.cpu_ns),
        }
    }
}

/// CPU time of this process so far.
#[must_use]
pub fn process_cpu_ns() -> u64 {
    u64::try_from(crate::clock::now_ns(libc::CLOCK_PROCESS_CPUTIME_ID)).unwrap_or(0)
}

/// The highest real-time priority RLIMIT_RTPRIO allows this process; 0 for none.
#[must_use]
pub fn realtime_priority() -> Option<u64> {
    get(libc::RLIMIT_RTPRIO).ok().map(|(soft, _)| soft)
}

/// The calling thread's timer slack: how late the kernel may make an ordinary thread's sleep.
///
/// # Errors
/// Where the kernel does not tell.
pub fn timer_slack_ns() -> Result<i64, SysError> {
    // SAFETY: integer arguments only.
    let slack = unsafe { libc::prctl(libc::PR_GET_TIMERSLACK, 0, 0, 0, 0) };
    check(slack, "prctl", "PR_GET_TIMERSLACK").map(i64::from)
}

/// Sets the calling thread's timer slack; other threads keep theirs, and it ends with the thread.
///
/// # Errors
/// EINVAL for 0: to the kernel that means the thread's default.
pub fn set_timer_slack_ns(slack_ns: i64) -> Result<(), SysError> {
    let Some(slack) = libc::c_ulong::try_from(slack_ns).ok().filter(|s| *s > 0) else {
        return Err(SysError::code("prctl", "PR_SET_TIMERSLACK", libc::EINVAL));
    };
    // SAFETY: integer arguments only.
    let set = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, slack, 0, 0, 0) };
    check(set, "prctl", "PR_SET_TIMERSLACK").map(drop)
}
