// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ports of the measuring loop over a periodic timer: timerfd + read, POSIX timer + sigwaitinfo.
//!
//! Context: HOT (the `Port` methods), SETUP (`new`). Units: ns.
//! The timer runs on the schedule's own epoch and interval, and the port counts its
//! expirations: an expiration that was already accounted for as missed is passed over, so
//! that a late reader never takes a stale expiration for an early wake-up.
//! Source: timerfd_create(2), timer_create(2), sigwaitinfo(2), sigaction(2) (`si_overrun`).

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use libc::clockid_t;
use tailbound_rt::{Port, Wake};

use crate::clock::{now_ns, timespec};
use crate::error::{SysError, check};
use crate::time64::{self, itimerspec};

/// How many expirations have been consumed, and how many a due time needs.
#[derive(Debug)]
struct Count {
    first_ns: i64,
    interval_ns: i64,
    consumed: i64,
}

impl Count {
    /// Has the expiration of `due_ns` been consumed?
    #[inline]
    fn reached(&self, due_ns: i64) -> bool {
        let needed = due_ns
            .wrapping_sub(self.first_ns)
            .wrapping_div(self.interval_ns.max(1))
            .wrapping_add(1);
        self.consumed >= needed
    }
}

fn periodic(first_ns: i64, interval_ns: i64) -> itimerspec {
    itimerspec { it_interval: timespec(interval_ns), it_value: timespec(first_ns) }
}

/// A periodic timerfd.
#[derive(Debug)]
pub struct Timerfd {
    fd: OwnedFd,
    clock: clockid_t,
    count: Count,
}

impl Timerfd {
    /// A timer on `clock` that expires at `first_ns` and every `interval_ns` after.
    ///
    /// # Errors
    /// EINVAL where timerfd does not know the clock (CLOCK_TAI).
    pub fn new(clock: clockid_t, first_ns: i64, interval_ns: i64) -> Result<Self, SysError> {
        // SAFETY: no pointers; the returned descriptor is ours alone.
        let raw = unsafe { libc::timerfd_create(clock, libc::TFD_CLOEXEC) };
        check(raw, "timerfd_create", &clock.to_string())?;
        // SAFETY: `raw` is a fresh, valid descriptor.
        let fd = unsafe { OwnedFd::from_raw_fd(raw) };
        let spec = periodic(first_ns, interval_ns);
        // SAFETY: timerfd_settime(2) reads one live itimerspec.
        let set = unsafe {
            time64::timerfd_settime(
                fd.as_raw_fd(),
                libc::TFD_TIMER_ABSTIME,
                &raw const spec,
                std::ptr::null_mut(),
            )
        };
        check(set, "timerfd_settime", "")?;
        Ok(Self { fd, clock, count: Count { first_ns, interval_ns, consumed: 0 } })
    }
}

impl Port for Timerfd {
    #[inline]
    fn sleep_until(&mut self, due_ns: i64) -> Wake {
        while !self.count.reached(due_ns) {
            let mut expirations = 0u64;
            // SAFETY: read(2) writes at most eight bytes into a live u64.
            let got = unsafe { libc::read(self.fd.as_raw_fd(), (&raw mut expirations).cast(), 8) };
            if got < 0 {
                return errno_wake();
            }
            self.count.consumed = self.count.consumed.saturating_add_unsigned(expirations);
        }
        Wake::Due
    }
    #[inline]
    fn now_ns(&mut self) -> i64 {
        now_ns(self.clock)
    }
}

/// A periodic POSIX timer whose signal the thread waits for.
#[derive(Debug)]
pub struct PosixTimer {
    timer: libc::timer_t,
    set: libc::sigset_t,
    clock: clockid_t,
    count: Count,
}

impl PosixTimer {
    /// A timer on `clock` that signals the *calling* thread at `first_ns` and every
    /// `interval_ns` after. Blocks the signal in that thread.
    ///
    /// # Errors
    /// EINVAL where timers do not know the clock; EAGAIN when there are too many.
    pub fn new(clock: clockid_t, first_ns: i64, interval_ns: i64) -> Result<Self, SysError> {
        let signal = libc::SIGRTMIN();
        // SAFETY: all-zero bytes are a valid sigset_t, filled by the calls below.
        let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
        // SAFETY: both calls write the live set.
        let failed =
            unsafe { libc::sigemptyset(&raw mut set) | libc::sigaddset(&raw mut set, signal) };
        check(failed, "sigaddset", "")?;
        // SAFETY: reads the live set; no old mask is asked for.
        let masked =
            unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
        if masked != 0 {
            return Err(SysError::code("pthread_sigmask", "", masked));
        }
        // SAFETY: all-zero bytes are a valid sigevent; the fields that matter are set next.
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = signal;
        event.sigev_notify_thread_id = crate::sched::gettid();
        let mut timer: libc::timer_t = std::ptr::null_mut();
        // SAFETY: reads one live sigevent, writes one live timer_t.
        let made = unsafe { libc::timer_create(clock, &raw mut event, &raw mut timer) };
        check(made, "timer_create", &clock.to_string())?;
        let port = Self { timer, set, clock, count: Count { first_ns, interval_ns, consumed: 0 } };
        let spec = periodic(first_ns, interval_ns);
        // SAFETY: reads one live itimerspec; the timer exists.
        let armed = unsafe {
            time64::timer_settime(timer, libc::TIMER_ABSTIME, &raw const spec, std::ptr::null_mut())
        };
        check(armed, "timer_settime", "")?;
        Ok(port)
    }
}

impl Drop for PosixTimer {
    fn drop(&mut self) {
        // SAFETY: the timer was made by `new` and is deleted once.
        unsafe { libc::timer_delete(self.timer) };
    }
}

impl Port for PosixTimer {
    #[inline]
    fn sleep_until(&mut self, due_ns: i64) -> Wake {
        while !self.count.reached(due_ns) {
            // SAFETY: all-zero bytes are a valid siginfo_t.
            let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
            // SAFETY: reads the live set, writes the live siginfo.
            if unsafe { libc::sigwaitinfo(&raw const self.set, &raw mut info) } < 0 {
                return errno_wake();
            }
            if info.si_code != libc::SI_TIMER {
                continue;
            }
            // What timer_getoverrun(2) would tell is in the signal already: a call less before the
            // stamp. A timer's signal has `si_overrun` where others have `si_uid`.
            // SAFETY: the kernel filled the live siginfo, for a signal of a timer.
            let overrun = unsafe { info.si_uid() }.cast_signed();
            self.count.consumed =
                self.count.consumed.saturating_add(1).saturating_add(i64::from(overrun.max(0)));
        }
        Wake::Due
    }
    #[inline]
    fn now_ns(&mut self) -> i64 {
        now_ns(self.clock)
    }
}

/// Sets the timer of this process's own profiling to never, which it is: a system call that changes nothing
/// and makes the kernel's event `timer:itimer_state`. For measuring what an event costs.
pub fn clear_profiling_timer() {
    let never = libc::itimerval {
        it_interval: libc::timeval { tv_sec: 0, tv_usec: 0 },
        it_value: libc::timeval { tv_sec: 0, tv_usec: 0 },
    };
    // SAFETY: reads one live struct; nothing is written back to a null pointer.
    let _ = unsafe { libc::setitimer(libc::ITIMER_PROF, &raw const never, std::ptr::null_mut()) };
}

#[cold]
pub(crate) fn errno_wake() -> Wake {
    match std::io::Error::last_os_error().raw_os_error() {
        Some(libc::EINTR) => Wake::Interrupted,
        errno => Wake::Failed(errno.unwrap_or(0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{CLOCK_MONOTONIC, Nanosleep};

    #[test]
    fn a_late_reader_of_a_posix_timer_takes_all_that_fell_due() {
        const INTERVAL_NS: i64 = 1_000_000;
        let first = now_ns(CLOCK_MONOTONIC) + INTERVAL_NS;
        let mut timer = PosixTimer::new(CLOCK_MONOTONIC, first, INTERVAL_NS).expect("timer");
        let late = first + 20 * INTERVAL_NS;
        assert_eq!(Nanosleep(CLOCK_MONOTONIC).sleep_until(late), Wake::Due);
        assert_eq!(timer.sleep_until(first), Wake::Due);
        // A kernel counts the expirations when the signal is taken.
        assert!(timer.count.reached(late - INTERVAL_NS), "{:?}", timer.count);
        let due_by_now = (now_ns(CLOCK_MONOTONIC) - first) / INTERVAL_NS + 1;
        assert!(timer.count.consumed <= due_by_now, "{:?}", timer.count);
        // A signal that somebody else sent is no expiration.
        let before = timer.count.consumed;
        // SAFETY: to the calling thread, in which it is blocked.
        unsafe { libc::raise(libc::SIGRTMIN()) };
        assert_eq!(timer.sleep_until(first + before * INTERVAL_NS), Wake::Due);
        let due_by_now = (now_ns(CLOCK_MONOTONIC) - first) / INTERVAL_NS + 1;
        assert!(timer.count.consumed > before && timer.count.consumed <= due_by_now);
    }
}
