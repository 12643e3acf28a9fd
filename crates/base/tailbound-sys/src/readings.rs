// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every way a program can read a clock, by name; and whether the kernel is entered for it.
//!
//! Context: HOT ([`Reading::read`]), SETUP and COLD (the rest). Units: ns; the counter's own ticks.
//! Not here: what the readings are compared with (`tailbound-probe`).
//! Source: clock_gettime(2), gettimeofday(2), time(2), vdso(7), seccomp(2).

use std::collections::BTreeMap;

use crate::clock::{now_ns, resolution_ns};
use crate::counter;
use crate::error::{SysError, check};
use crate::time64;

/// One way to read a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reading {
    /// clock_gettime(2) of this clock.
    Clock(libc::clockid_t),
    /// gettimeofday(2).
    Gettimeofday,
    /// time(2).
    Time,
    /// The processor's counter: rdtsc, cntvct.
    Counter,
}

/// Every way, with its name.
pub const READINGS: [(&str, Reading); 12] = [
    ("monotonic", Reading::Clock(libc::CLOCK_MONOTONIC)),
    ("monotonic-raw", Reading::Clock(libc::CLOCK_MONOTONIC_RAW)),
    ("realtime", Reading::Clock(libc::CLOCK_REALTIME)),
    ("boottime", Reading::Clock(libc::CLOCK_BOOTTIME)),
    ("tai", Reading::Clock(libc::CLOCK_TAI)),
    ("gettimeofday", Reading::Gettimeofday),
    ("thread-cpu", Reading::Clock(libc::CLOCK_THREAD_CPUTIME_ID)),
    ("process-cpu", Reading::Clock(libc::CLOCK_PROCESS_CPUTIME_ID)),
    ("monotonic-coarse", Reading::Clock(libc::CLOCK_MONOTONIC_COARSE)),
    ("realtime-coarse", Reading::Clock(libc::CLOCK_REALTIME_COARSE)),
    ("time", Reading::Time),
    ("counter", Reading::Counter),
];

const SECOND_NS: i64 = 1_000_000_000;

impl Reading {
    /// Reads it: ns, of the counter ticks.
    #[must_use]
    #[inline]
    pub fn read(self) -> i64 {
        match self {
            Self::Clock(id) => now_ns(id),
            Self::Gettimeofday => {
                let mut t = time64::timeval { tv_sec: 0, tv_usec: 0 };
                // SAFETY: gettimeofday(2) writes one live timeval; no time zone is asked for.
                unsafe { time64::gettimeofday(&raw mut t, std::ptr::null_mut()) };
                t.tv_sec.wrapping_mul(SECOND_NS).wrapping_add(t.tv_usec.wrapping_mul(1000))
            }
            // SAFETY: time(2) stores nothing when it is given no place.
            Self::Time => {
                // SAFETY: time(2) stores nothing when it is given no place.
                let seconds = unsafe { time64::time(std::ptr::null_mut()) };
                seconds.wrapping_mul(SECOND_NS)
            }
            Self::Counter => counter::ticks().cast_signed(),
        }
    }

    /// What the clock says its resolution is; `None` for what says nothing.
    ///
    /// # Errors
    /// EINVAL when the kernel does not know the clock.
    pub fn resolution_ns(self) -> Result<Option<i64>, SysError> {
        match self {
            Self::Clock(id) => resolution_ns(id).map(Some),
            Self::Gettimeofday => Ok(Some(1000)),
            Self::Time => Ok(Some(SECOND_NS)),
            Self::Counter => Ok(None),
        }
    }

    /// Does it fail when the kernel refuses the system calls that read clocks?
    fn fails(self) -> bool {
        match self {
            Self::Clock(id) => {
                let mut t = crate::clock::timespec(0);
                // SAFETY: clock_gettime(2) writes one live timespec.
                unsafe { time64::clock_gettime(id, &raw mut t) != 0 }
            }
            Self::Gettimeofday => {
                let mut t = time64::timeval { tv_sec: 0, tv_usec: 0 };
                // SAFETY: gettimeofday(2) writes one live timeval.
                unsafe { time64::gettimeofday(&raw mut t, std::ptr::null_mut()) != 0 }
            }
            // SAFETY: time(2) stores nothing when it is given no place.
            Self::Time => unsafe { time64::time(std::ptr::null_mut()) == -1 },
            Self::Counter => false,
        }
    }
}

/// Which readings enter the kernel: tried, in a thread of its own whose filter refuses the system
/// calls that read clocks. What still works there needs none of them (the vDSO, an instruction).
///
/// # Errors
/// Where the kernel has no seccomp filters.
pub fn that_enter_the_kernel() -> Result<BTreeMap<&'static str, bool>, SysError> {
    let tried = std::thread::Builder::new().spawn(|| {
        refuse_clock_calls()?;
        Ok(READINGS.iter().map(|(name, reading)| (*name, reading.fails())).collect())
    });
    let thread =
        tried.map_err(|e| SysError::code("pthread_create", "", e.raw_os_error().unwrap_or(0)))?;
    thread.join().unwrap_or_else(|_| Err(SysError::code("thread", "it panicked: a bug of ours", 0)))
}

/// For the calling thread, which must end soon: a filter cannot be lifted.
fn refuse_clock_calls() -> Result<(), SysError> {
    let calls: &[libc::c_long] = &[
        libc::SYS_clock_gettime,
        libc::SYS_gettimeofday,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_time,
        #[cfg(target_pointer_width = "32")]
        403,
    ];
    let op = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut program = vec![op(0x20, 0, 0, 0)];
    for number in calls.iter().filter_map(|n| u32::try_from(*n).ok()) {
        program.push(op(0x15, 0, 1, number));
        program.push(op(0x06, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned()));
    }
    program.push(op(0x06, 0, 0, libc::SECCOMP_RET_ALLOW));
    crate::seccomp::install(program)
}

/// CPU time of thread `tid` of this process.
///
/// # Errors
/// EINVAL when there is no such thread.
pub fn thread_cpu_ns(tid: i32) -> Result<i64, SysError> {
    // As the kernel's posix-timers_types.h: the complement of the id, per thread, exact.
    let clock = (!tid << 3) | 6;
    let mut t = crate::clock::timespec(0);
    // SAFETY: clock_gettime(2) writes one live timespec.
    let read = unsafe { time64::clock_gettime(clock, &raw mut t) };
    check(read, "clock_gettime", &format!("thread {tid}"))?;
    #[expect(clippy::unnecessary_cast, reason = "c_long is 32 bits wide on some targets")]
    Ok(t.tv_sec.wrapping_mul(SECOND_NS).wrapping_add(t.tv_nsec as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_clocks_enter_the_kernel_and_the_counter_does_not() {
        let entering = match that_enter_the_kernel() {
            Ok(entering) => entering,
            Err(e) => return tailbound_testing::skip("root", e),
        };
        assert_eq!(entering.len(), READINGS.len());
        assert_eq!(entering.get("process-cpu"), Some(&true), "no vDSO serves it");
        assert_eq!(entering.get("counter"), Some(&false));
        // The filter was the thread's own.
        assert!(READINGS.iter().all(|(_, r)| !r.fails()));
    }

    #[test]
    fn a_threads_clock_is_found_by_its_id() {
        let own = thread_cpu_ns(crate::sched::gettid()).expect("own thread");
        let also = now_ns(libc::CLOCK_THREAD_CPUTIME_ID);
        assert!(own <= also, "read before");
        assert!(thread_cpu_ns(i32::MAX - 1).is_err());
    }
}
