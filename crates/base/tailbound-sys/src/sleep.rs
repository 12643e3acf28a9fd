// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ports of the measuring loop over the kernel's relative sleeps: nanosleep(2), usleep(3), poll,
//! select, epoll and the process's interval timer.
//!
//! Context: HOT (the `Port` methods), SETUP (`new`). Units: ns; the sleeps that take µs are
//! given the next whole one, so that none ends before its time.
//! None of them knows absolute times: each sleeps for what is left of the *absolute* schedule, so
//! that nothing drifts and every activation stays due when it was due. That adds a clock read and
//! a race before the sleep, as in [`NanosleepRelative`](crate::clock::NanosleepRelative).
//! Not here: the absolute sleep (`clock`), periodic timers (`timer`).
//! Source: nanosleep(2), usleep(3), ppoll(2), select(2), epoll_pwait2(2), setitimer(2), sigwaitinfo(2).

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use libc::clockid_t;
use tailbound_rt::{Port, Wake};

use crate::clock::{now_ns, span};
use crate::error::{SysError, check};
use crate::raw_time::words;
use crate::timer::errno_wake;

/// usleep(3) takes less than a second.
const USLEEP_MAX_US: u32 = 999_999;
const MICROS_IN_SECOND: i64 = 1_000_000;
/// An alarm that somebody else's thread took comes again after this long.
const AGAIN_US: i64 = 100_000;

/// One way to sleep for a span.
pub trait Span {
    /// Sleeps for `left_ns`, more than 0.
    fn sleep(&mut self, left_ns: i64) -> Wake;
}

/// Sleeps for what is left until an absolute time, by `S`.
#[derive(Debug)]
pub struct Left<S>(pub clockid_t, pub S);

impl<S: Span> Port for Left<S> {
    #[inline]
    fn sleep_until(&mut self, due_ns: i64) -> Wake {
        let left = due_ns.wrapping_sub(now_ns(self.0));
        if left <= 0 { Wake::Due } else { self.1.sleep(left) }
    }
    #[inline]
    fn now_ns(&mut self) -> i64 {
        now_ns(self.0)
    }
}

/// As [`Left`], for sleeps that may end early: sleeps on until the time has come.
#[derive(Debug)]
pub struct UntilDue<S>(pub clockid_t, pub S);

impl<S: Span> Port for UntilDue<S> {
    #[inline]
    fn sleep_until(&mut self, due_ns: i64) -> Wake {
        loop {
            let left = due_ns.wrapping_sub(now_ns(self.0));
            if left <= 0 {
                return Wake::Due;
            }
            match self.1.sleep(left) {
                Wake::Due => {}
                other => return other,
            }
        }
    }
    #[inline]
    fn now_ns(&mut self) -> i64 {
        now_ns(self.0)
    }
}

/// Whole microseconds that hold `ns`.
#[inline]
fn micros(ns: i64) -> i64 {
    ns.saturating_add(999).wrapping_div(1000)
}

/// nanosleep(2) itself, which the C library no longer calls.
#[derive(Debug)]
pub struct PlainNanosleep;

impl Span for PlainNanosleep {
    #[inline]
    fn sleep(&mut self, left_ns: i64) -> Wake {
        // On 32-bit machines it takes seconds of 32 bits: 68 years.
        let t = words(left_ns);
        let none = std::ptr::null_mut::<libc::c_long>();
        // SAFETY: nanosleep(2) reads two live words; no remainder is asked for.
        let result = unsafe { libc::syscall(libc::SYS_nanosleep, t.as_ptr(), none) };
        if result == 0 { Wake::Due } else { errno_wake() }
    }
}

/// usleep(3), a second at most at a time: for [`UntilDue`].
#[derive(Debug)]
pub struct Usleep;

impl Span for Usleep {
    #[inline]
    fn sleep(&mut self, left_ns: i64) -> Wake {
        let us = u32::try_from(micros(left_ns)).unwrap_or(USLEEP_MAX_US).min(USLEEP_MAX_US);
        // SAFETY: an integer argument only.
        if unsafe { libc::usleep(us) } == 0 { Wake::Due } else { errno_wake() }
    }
}

/// ppoll(2) of nothing: poll(2) itself counts in milliseconds.
#[derive(Debug)]
pub struct Poll;

impl Span for Poll {
    #[inline]
    fn sleep(&mut self, left_ns: i64) -> Wake {
        let t = span(left_ns);
        // SAFETY: ppoll(2) reads one live timespec and no descriptors; the mask stays.
        let n = unsafe { libc::ppoll(std::ptr::null_mut(), 0, &raw const t, std::ptr::null()) };
        if n == 0 { Wake::Due } else { errno_wake() }
    }
}

/// select(2) of nothing.
#[derive(Debug)]
pub struct Select;

impl Span for Select {
    #[inline]
    fn sleep(&mut self, left_ns: i64) -> Wake {
        let mut t = timeval(micros(left_ns));
        let none = std::ptr::null_mut::<libc::fd_set>();
        // SAFETY: select(2) reads and writes one live timeval and no descriptors.
        let n = unsafe { libc::select(0, none, none, none, &raw mut t) };
        if n == 0 { Wake::Due } else { errno_wake() }
    }
}

/// epoll_pwait2(2) on an epoll instance that watches nothing: epoll_wait(2) counts in milliseconds.
#[derive(Debug)]
pub struct Epoll(OwnedFd);

impl Epoll {
    /// An empty epoll instance.
    ///
    /// # Errors
    /// ENOSYS where the kernel has no epoll_pwait2 (before 5.11).
    pub fn new() -> Result<Self, SysError> {
        // SAFETY: no pointers; the returned descriptor is ours alone.
        let raw = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        check(raw, "epoll_create1", "")?;
        // SAFETY: `raw` is a fresh, valid descriptor.
        let epoll = Self(unsafe { OwnedFd::from_raw_fd(raw) });
        check(epoll.wait(0), "epoll_pwait2", "").map_err(|e| e.needs("Linux 5.11 or later"))?;
        Ok(epoll)
    }

    #[inline]
    fn wait(&self, ns: i64) -> libc::c_long {
        // The kernel's own timespec has 64 bits everywhere.
        let t = [ns.wrapping_div(1_000_000_000), ns.wrapping_rem(1_000_000_000)];
        // SAFETY: all-zero bytes are a valid epoll_event.
        let mut event: libc::epoll_event = unsafe { std::mem::zeroed() };
        // SAFETY: writes at most one live event, reads a live timespec; the mask stays.
        unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.0.as_raw_fd(),
                &raw mut event,
                1,
                &raw const t,
                std::ptr::null::<u8>(),
                0usize,
            )
        }
    }
}

impl Span for Epoll {
    #[inline]
    fn sleep(&mut self, left_ns: i64) -> Wake {
        if self.wait(left_ns) == 0 { Wake::Due } else { errno_wake() }
    }
}

/// setitimer(2) and sigwaitinfo(2): for [`UntilDue`]. A process has one such timer, so one
/// thread can sleep this way. Stopped when dropped.
#[derive(Debug)]
pub struct Itimer(libc::sigset_t);

impl Itimer {
    /// The process's interval timer, whose signal the calling thread waits for.
    ///
    /// # Errors
    /// What the kernel refused. Every thread of the process must have called [`block_alarm`],
    /// or be the child of one that has.
    pub fn new() -> Result<Self, SysError> {
        block_alarm().map(Self)
    }
}

/// Blocks SIGALRM in the calling thread and its later children. Should another thread take one
/// nevertheless, it is not the end of the process.
///
/// # Errors
/// What the kernel refused.
pub fn block_alarm() -> Result<libc::sigset_t, SysError> {
    extern "C" fn nothing(_: i32) {}
    // SAFETY: all-zero bytes are a valid sigaction: no mask, no flags.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = nothing as extern "C" fn(i32) as usize;
    // SAFETY: the handler does nothing.
    let handled =
        unsafe { libc::sigaction(libc::SIGALRM, &raw const action, std::ptr::null_mut()) };
    check(handled, "sigaction", "SIGALRM")?;
    // SAFETY: all-zero bytes are a valid sigset_t, filled by the calls below.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: both calls write the live set.
    let failed =
        unsafe { libc::sigemptyset(&raw mut set) | libc::sigaddset(&raw mut set, libc::SIGALRM) };
    check(failed, "sigaddset", "")?;
    // SAFETY: reads the live set; no old mask is asked for.
    let masked =
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
    if masked == 0 { Ok(set) } else { Err(SysError::code("pthread_sigmask", "SIGALRM", masked)) }
}

impl Drop for Itimer {
    fn drop(&mut self) {
        arm_itimer(0, 0);
    }
}

impl Span for Itimer {
    #[inline]
    fn sleep(&mut self, left_ns: i64) -> Wake {
        if !arm_itimer(micros(left_ns), AGAIN_US) {
            return errno_wake();
        }
        // SAFETY: all-zero bytes are a valid siginfo_t.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: reads the live set, writes the live siginfo.
        let signal = unsafe { libc::sigwaitinfo(&raw const self.0, &raw mut info) };
        if signal < 0 { errno_wake() } else { Wake::Due }
    }
}

#[inline]
fn arm_itimer(first_us: i64, again_us: i64) -> bool {
    let spec = libc::itimerval { it_interval: timeval(again_us), it_value: timeval(first_us) };
    // SAFETY: setitimer(2) reads one live itimerval; the old one is not asked for.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const spec, std::ptr::null_mut()) == 0 }
}

/// A span of µs. (The casts narrow where the C library's are 32 bits wide.)
#[inline]
fn timeval(us: i64) -> libc::timeval {
    libc::timeval {
        tv_sec: us.wrapping_div(MICROS_IN_SECOND) as _,
        tv_usec: us.wrapping_rem(MICROS_IN_SECOND) as _,
    }
}
