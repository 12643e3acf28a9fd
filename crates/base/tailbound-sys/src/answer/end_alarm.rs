// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ends a read that waits without a limit, when the time is over.
//!
//! Context: SETUP in `new`, HOT in `at` (a system call only where the time is another than before). Units: ns of the clock.
//! Until then nothing happens; from then on a signal comes again and again, for one that comes just before the read ends nothing.
//! Source: timer_create(2), SIGEV_THREAD_ID.

use crate::clock::timespec;
use crate::error::{SysError, check};
use crate::signal;
use crate::time64;

const AGAIN_NS: i64 = 10_000_000;

/// A timer that interrupts the thread that made it.
pub(super) struct EndAlarm {
    timer: libc::timer_t,
    end_ns: i64,
}

// SAFETY: the id of a timer belongs to the process; only the signal goes to the thread that made it.
unsafe impl Send for EndAlarm {}

impl EndAlarm {
    /// For the calling thread, on `clock`.
    ///
    /// # Errors
    /// EINVAL where timers do not know the clock; EAGAIN when there are too many.
    pub(super) fn new(clock: libc::clockid_t) -> Result<Self, SysError> {
        // SAFETY: all-zero bytes are a valid sigevent; the fields that matter are set next.
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = signal::interrupting();
        event.sigev_notify_thread_id = crate::sched::gettid();
        let mut timer: libc::timer_t = std::ptr::null_mut();
        // SAFETY: reads one live sigevent, writes one live timer_t.
        let made = unsafe { libc::timer_create(clock, &raw mut event, &raw mut timer) };
        check(made, "timer_create", &clock.to_string())?;
        Ok(Self { timer, end_ns: i64::MIN })
    }

    /// Interrupts from `end_ns` on.
    pub(super) fn at(&mut self, end_ns: i64) {
        if self.end_ns == end_ns {
            return;
        }
        self.end_ns = end_ns;
        let spec =
            time64::itimerspec { it_value: timespec(end_ns), it_interval: timespec(AGAIN_NS) };
        let none = std::ptr::null_mut();
        // SAFETY: reads one live itimerspec; the timer exists.
        unsafe { time64::timer_settime(self.timer, libc::TIMER_ABSTIME, &raw const spec, none) };
    }
}

impl Drop for EndAlarm {
    fn drop(&mut self) {
        // SAFETY: the timer was made by `new` and is deleted once.
        unsafe { libc::timer_delete(self.timer) };
    }
}
