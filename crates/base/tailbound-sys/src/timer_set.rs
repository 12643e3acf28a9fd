// SPDX-License-Identifier: MIT OR Apache-2.0
//! Many periodic timers of one thread: the work of a load that storms timers.
//!
//! Context: HOT of a load, never of a measured loop (its timers are in `timer`). Units: ns;
//! expirations. Their first expirations are spread over an interval, so that each is an
//! interrupt of its own, or all are at the same instant, so that one interrupt has to expire
//! them all. Expirations that were told together are counted, none is lost.
//! Source: timerfd_create(2), epoll(7), timer_create(2), sigtimedwait(2).

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::clock::{CLOCK_MONOTONIC, now_ns, timespec};
use crate::error::{SysError, check};
use crate::time64;

/// Descriptors told of in one wait.
const TOLD: usize = 64;

/// How the timers tell.
#[derive(Debug)]
enum Kind {
    Descriptors { epoll: OwnedFd, _timers: Vec<OwnedFd> },
    Signals { set: libc::sigset_t, timers: Vec<libc::timer_t> },
}

/// Timers of the thread that made them.
#[derive(Debug)]
pub struct TimerSet(Kind);

/// When the timers of a set fall due within an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// At even distances.
    Spread,
    /// All at the same ns: one interrupt of the clock expires them one after the other.
    Together,
}

/// What the timers of a set have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// How many.
    pub count: usize,
    /// From one expiration of a timer to its next.
    pub interval_ns: i64,
    /// When within it.
    pub due: Due,
}

impl Pattern {
    fn of(&self, slot: usize, begun_ns: i64) -> time64::itimerspec {
        let share = self.interval_ns / i64::try_from(self.count.max(1)).unwrap_or(i64::MAX);
        let offset = match self.due {
            Due::Spread => share.saturating_mul(i64::try_from(slot).unwrap_or(0)),
            Due::Together => 0,
        };
        time64::itimerspec {
            it_interval: timespec(self.interval_ns),
            it_value: timespec(begun_ns.saturating_add(self.interval_ns).saturating_add(offset)),
        }
    }
}

impl TimerSet {
    /// As many timerfds, waited for by epoll.
    ///
    /// # Errors
    /// EMFILE at the limit of descriptors, ENOMEM.
    pub fn descriptors(pattern: Pattern) -> Result<Self, SysError> {
        // SAFETY: an integer; the returned descriptor is ours alone.
        let raw = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        check(raw, "epoll_create1", "")?;
        // SAFETY: a fresh, valid descriptor.
        let epoll = unsafe { OwnedFd::from_raw_fd(raw) };
        let begun_ns = now_ns(CLOCK_MONOTONIC);
        let mut timers = Vec::with_capacity(pattern.count);
        for slot in 0..pattern.count {
            let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
            // SAFETY: integers; the returned descriptor is ours alone.
            let raw = unsafe { libc::timerfd_create(CLOCK_MONOTONIC, flags) };
            check(raw, "timerfd_create", "")?;
            // SAFETY: a fresh, valid descriptor.
            let timer = unsafe { OwnedFd::from_raw_fd(raw) };
            let spec = pattern.of(slot, begun_ns);
            let events = libc::EPOLLIN.cast_unsigned();
            let mut event = libc::epoll_event { events, u64: raw.unsigned_abs().into() };
            // SAFETY: each call reads one live struct on own descriptors.
            unsafe {
                let absolute = libc::TFD_TIMER_ABSTIME;
                let set =
                    time64::timerfd_settime(raw, absolute, &raw const spec, std::ptr::null_mut());
                check(set, "timerfd_settime", "")?;
                let (epoll, add) = (epoll.as_raw_fd(), libc::EPOLL_CTL_ADD);
                check(libc::epoll_ctl(epoll, add, raw, &raw mut event), "epoll_ctl", "")?;
            }
            timers.push(timer);
        }
        Ok(Self(Kind::Descriptors { epoll, _timers: timers }))
    }

    /// As many POSIX timers, which signal the calling thread.
    ///
    /// # Errors
    /// EAGAIN at RLIMIT_SIGPENDING, ENOMEM; ENOSYS where the kernel has none.
    pub fn signals(pattern: Pattern) -> Result<Self, SysError> {
        let signal = libc::SIGRTMIN();
        // SAFETY: an all-zero set is valid, and filled and read by the calls.
        let set = unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            check(libc::sigaddset(&raw mut set, signal), "sigaddset", "")?;
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            set
        };
        let mut it = Self(Kind::Signals { set, timers: Vec::with_capacity(pattern.count) });
        let begun_ns = now_ns(CLOCK_MONOTONIC);
        for slot in 0..pattern.count {
            let mut timer: libc::timer_t = std::ptr::null_mut();
            let spec = pattern.of(slot, begun_ns);
            // SAFETY: an all-zero sigevent is valid; each call reads or writes live structs.
            unsafe {
                let mut event: libc::sigevent = std::mem::zeroed();
                event.sigev_notify = libc::SIGEV_THREAD_ID;
                event.sigev_signo = signal;
                event.sigev_notify_thread_id = crate::sched::gettid();
                let made = libc::timer_create(CLOCK_MONOTONIC, &raw mut event, &raw mut timer);
                check(made, "timer_create", "")?;
                if let Kind::Signals { timers, .. } = &mut it.0 {
                    timers.push(timer);
                }
                let absolute = libc::TIMER_ABSTIME;
                let set =
                    time64::timer_settime(timer, absolute, &raw const spec, std::ptr::null_mut());
                check(set, "timer_settime", "")?;
            }
        }
        Ok(it)
    }

    /// Sleeps until timers have expired; how many expirations there were.
    ///
    /// # Errors
    /// None is expected.
    pub fn wait(&mut self) -> Result<u64, SysError> {
        match &self.0 {
            Kind::Descriptors { epoll, .. } => {
                let mut events = [libc::epoll_event { events: 0, u64: 0 }; TOLD];
                // SAFETY: writes at most TOLD events into the live array.
                let told = unsafe {
                    libc::epoll_wait(epoll.as_raw_fd(), events.as_mut_ptr(), TOLD as i32, -1)
                };
                let told = interrupted(told, "epoll_wait")?;
                let mut all = 0;
                for event in events.iter().take(told) {
                    let mut expirations = 0u64;
                    // SAFETY: an own descriptor; eight bytes into a live u64.
                    let got =
                        unsafe { libc::read(event.u64 as i32, (&raw mut expirations).cast(), 8) };
                    if got == 8 {
                        all += expirations;
                    }
                }
                Ok(all)
            }
            Kind::Signals { set, .. } => {
                // SAFETY: an all-zero siginfo is valid; the calls read the set and write it.
                let (got, overrun) = unsafe {
                    let mut info: libc::siginfo_t = std::mem::zeroed();
                    let got = libc::sigwaitinfo(set, &raw mut info);
                    (got, info.si_overrun())
                };
                let told = interrupted(got, "sigwaitinfo")?;
                Ok(if told > 0 { 1 + u64::from(overrun.max(0).unsigned_abs()) } else { 0 })
            }
        }
    }
}

/// A result, or 0 where a signal came between.
fn interrupted(result: i32, call: &'static str) -> Result<usize, SysError> {
    match check(result, call, "") {
        Err(e) if e.errno == libc::EINTR => Ok(0),
        Err(e) => Err(e),
        Ok(n) => Ok(usize::try_from(n).unwrap_or(0)),
    }
}

impl Drop for TimerSet {
    fn drop(&mut self) {
        if let Kind::Signals { timers, .. } = &self.0 {
            for timer in timers {
                // SAFETY: made by `signals`, and deleted once.
                unsafe { libc::timer_delete(*timer) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expirations_are_those_that_time_makes() {
        let patterns = [Due::Spread, Due::Together].map(|due| Pattern {
            count: 10,
            interval_ns: 2_000_000,
            due,
        });
        for (make, pattern) in [TimerSet::descriptors, TimerSet::signals]
            .into_iter()
            .flat_map(|make| patterns.map(|p| (make, p)))
        {
            let begun = now_ns(CLOCK_MONOTONIC);
            let Ok(mut timers) = make(pattern) else { panic!("timers") };
            let mut all = 0;
            while all < 500 {
                all += timers.wait().unwrap_or(u64::MAX / 2);
            }
            let due = (now_ns(CLOCK_MONOTONIC) - begun) / 200_000;
            assert!(i64::try_from(all).is_ok_and(|n| n <= due + 10), "{all} of {due}");
        }
    }
}
