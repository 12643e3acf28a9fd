// SPDX-License-Identifier: MIT OR Apache-2.0
//! Clocks, and the two-call port of the measuring loop.
//!
//! Context: HOT (`now_ns`, [`Nanosleep`], [`NanosleepRelative`]), SETUP (the rest). Units: ns.
//! Source: clock_gettime(2), clock_nanosleep(2).

use libc::clockid_t;
use tailbound_rt::{Port, Wake};

use crate::error::{SysError, check};
use crate::raw_time::words;
use crate::time64::{self, timespec};

pub use libc::{
    CLOCK_BOOTTIME, CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_TAI, CLOCK_THREAD_CPUTIME_ID,
};

const SECOND_NS: i64 = 1_000_000_000;

/// A point of time or a timer's period; negative ones become 0. (The cast narrows nanoseconds where long is 32 bits wide.)
#[inline]
pub(crate) fn timespec(ns: i64) -> timespec {
    let ns = ns.max(0);
    timespec {
        tv_sec: ns / SECOND_NS,
        tv_nsec: (ns % SECOND_NS) as _,
        #[cfg(target_pointer_width = "32")]
        padding: 0,
    }
}

/// A span to wait for, at most 68 years where the C library's seconds have 32 bits; negative ones become 0.
#[inline]
pub(crate) fn span(ns: i64) -> libc::timespec {
    let [tv_sec, tv_nsec] = words(ns);
    libc::timespec { tv_sec, tv_nsec }
}

/// Reads `clock`; 0 if the kernel does not know it (see [`resolution_ns`] for the check).
#[must_use]
#[inline]
#[expect(clippy::unnecessary_cast, reason = "c_long is 32 bits wide on some targets")]
pub fn now_ns(clock: clockid_t) -> i64 {
    let mut t = timespec(0);
    // SAFETY: clock_gettime(2) writes one live timespec.
    unsafe { time64::clock_gettime(clock, &raw mut t) };
    t.tv_sec.wrapping_mul(SECOND_NS).wrapping_add(t.tv_nsec as i64)
}

/// Is this machine's clock read without a system call (vDSO)? Unknown sources count as not.
pub(crate) fn is_read_without_a_call() -> bool {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    std::fs::read_to_string(path).is_ok_and(|source| {
        matches!(source.trim(), "tsc" | "tsc-early" | "arch_sys_counter" | "riscv_clocksource")
    })
}

/// The clock's resolution: 1 ns with high-resolution timers, a tick without.
///
/// # Errors
/// EINVAL when the kernel does not know the clock.
#[expect(clippy::unnecessary_cast, reason = "c_long is 32 bits wide on some targets")]
pub fn resolution_ns(clock: clockid_t) -> Result<i64, SysError> {
    if cfg!(miri) {
        // It has the clocks, and not this call.
        return Ok(1);
    }
    let mut t = span(0);
    // SAFETY: clock_getres(2) writes one live timespec.
    let result = unsafe { libc::clock_getres(clock, &raw mut t) };
    check(result, "clock_getres", &clock.to_string())?;
    Ok((t.tv_sec as i64).wrapping_mul(SECOND_NS).wrapping_add(t.tv_nsec as i64))
}

/// Sleeps until an absolute time, over and over.
#[derive(Debug)]
pub struct Nanosleep(pub clockid_t);

impl Port for Nanosleep {
    #[inline]
    fn sleep_until(&mut self, due_ns: i64) -> Wake {
        sleep(self.0, libc::TIMER_ABSTIME, due_ns)
    }
    #[inline]
    fn now_ns(&mut self) -> i64 {
        now_ns(self.0)
    }
}

/// Sleeps for the time that is left: one more clock read, and a race before the sleep.
#[derive(Debug)]
pub struct NanosleepRelative(pub clockid_t);

impl Port for NanosleepRelative {
    #[inline]
    fn sleep_until(&mut self, due_ns: i64) -> Wake {
        let left = due_ns.wrapping_sub(now_ns(self.0));
        if left <= 0 { Wake::Due } else { sleep(self.0, 0, left) }
    }
    #[inline]
    fn now_ns(&mut self) -> i64 {
        now_ns(self.0)
    }
}

/// Sleeps until an absolute time, once; a signal may end it earlier.
pub fn sleep_until(clock: clockid_t, due_ns: i64) {
    sleep(clock, libc::TIMER_ABSTIME, due_ns);
}

#[inline]
fn sleep(clock: clockid_t, flags: i32, ns: i64) -> Wake {
    let t = timespec(ns);
    // SAFETY: clock_nanosleep(2) reads one live timespec; no remainder is asked for.
    match unsafe { time64::clock_nanosleep(clock, flags, &raw const t, std::ptr::null_mut()) } {
        0 => Wake::Due,
        libc::EINTR => Wake::Interrupted,
        errno => Wake::Failed(errno),
    }
}
