// SPDX-License-Identifier: MIT OR Apache-2.0
//! Port of the measuring loop over Xenomai 3's Cobalt core: its own sleep, by plain system calls.
//!
//! Context: HOT (the `Port` methods), SETUP (`new`). Units: ns.
//! Cobalt takes the system calls whose number carries a marker bit; its library is a wrapper
//! of these, and a static program needs no more than four of them: bind the process, make the
//! calling thread one of Cobalt's, sleep, read the clock. A kernel without the core answers
//! ENOSYS, and is told apart before that by its missing /proc/xenomai.
//! The calling thread is in Cobalt's hands from its first sleep on: each Linux system call
//! takes it back to Linux, the next sleep returns it. The loop makes none.
//! Not here: gravity, which lets Cobalt's timers fire early by a calibrated time; set it to 0
//! (`/proc/xenomai/clock/coreclk`) or latency is hidden.
//! Source: Xenomai 3 `include/cobalt/uapi` (syscall.h, features.h, sched.h), revisions 17
//! (3.1) to 20 (3.3): numbers and layouts used here are the same in all of them. 32-bit ARM: on
//! Dovetail (3.2 on), where the marker is in the number as elsewhere.

use std::path::Path;

use libc::clockid_t;
use tailbound_rt::{Port, Wake};

use crate::clock::now_ns;
use crate::error::SysError;

/// Marks a system call as meant for the second kernel.
const MARK: libc::c_long = 0x1000_0000;
const BIND: libc::c_long = MARK;
const THREAD_CREATE: libc::c_long = MARK | 1;
/// Calls with times of 64 bits: those that 64-bit kernels have always had, or those that 32-bit ones have since 3.2.
const CLOCK_GETTIME: libc::c_long = MARK | if cfg!(target_pointer_width = "64") { 23 } else { 103 };
const CLOCK_NANOSLEEP: libc::c_long =
    MARK | if cfg!(target_pointer_width = "64") { 25 } else { 105 };
/// Revisions of the interface whose calls above are known to be laid out as here.
const REVISIONS: std::ops::RangeInclusive<u32> = 17..=20;
/// Asked for first; the core names its own when that is another.
const REVISION: u32 = 19;
/// What the core writes to, with room for what later revisions may add behind it.
const REQUEST_WORDS: usize = 256;
/// `feat_ret.feat_abirev`: behind `feat_req`, `abi_rev` and two reserved fields.
const REVISION_AT: usize = 5;

/// `struct sched_param_ex`: the priority; the union behind it is not looked at for FIFO.
#[repr(C)]
struct Parameters {
    priority: i32,
    _reserved: i32,
    _of_other_classes: [u64; 8],
}

/// A time as both calls have it, on every architecture.
#[repr(C)]
struct Time {
    seconds: i64,
    ns: i64,
}

const SECOND_NS: i64 = 1_000_000_000;

/// Sleeps in Cobalt until an absolute time, over and over.
#[derive(Debug)]
pub struct Cobalt {
    clock: clockid_t,
    /// Linux's clock can be read without a system call, hence without leaving Cobalt.
    vdso: bool,
}

impl Cobalt {
    /// Makes the calling thread, which has a real-time policy and whose memory is locked, a
    /// thread of Cobalt with its priority.
    ///
    /// # Errors
    /// ENOSYS: no Cobalt core in this kernel; ENOEXEC: one of an unknown revision; EINVAL: a
    /// clock that Cobalt does not sleep on, or no real-time priority; what the core refuses.
    pub fn new(clock: clockid_t) -> Result<Self, SysError> {
        if !Path::new("/proc/xenomai").is_dir() {
            let what = "no Cobalt core: /proc/xenomai is missing";
            return Err(SysError::code("means cobalt", what, libc::ENOSYS));
        }
        if clock != libc::CLOCK_MONOTONIC && clock != libc::CLOCK_REALTIME {
            let what = "Cobalt sleeps on the clocks monotonic and realtime only";
            return Err(SysError::code("means cobalt", what, libc::EINVAL));
        }
        let priority = crate::sched::own_fifo_priority("means cobalt")?;
        bind()?;
        attach(priority)?;
        Ok(Self { clock, vdso: crate::clock::is_read_without_a_call() })
    }
}

fn bind() -> Result<(), SysError> {
    let mut revision = REVISION;
    loop {
        let mut request = [0u32; REQUEST_WORDS];
        request[1] = revision;
        // SAFETY: the core reads and writes its request, which is shorter than this array.
        let result = unsafe { libc::syscall(BIND, request.as_mut_ptr()) };
        if result == 0 {
            return Ok(());
        }
        let e = SysError::last("Cobalt's bind", "");
        if e.errno != libc::ENOEXEC {
            return Err(e);
        }
        let theirs = request.get(REVISION_AT).copied().unwrap_or(0);
        if theirs == revision || !REVISIONS.contains(&theirs) {
            let what = format!(
                "the core speaks revision {theirs}, known are {} to {}",
                REVISIONS.start(),
                REVISIONS.end()
            );
            return Err(SysError::code("Cobalt's bind", what, libc::ENOEXEC));
        }
        revision = theirs;
    }
}

fn attach(priority: i32) -> Result<(), SysError> {
    let parameters = Parameters { priority, _reserved: 0, _of_other_classes: [0; 8] };
    let mut window = 0u32;
    // The core knows threads by a number of the program's choice, here its id.
    let name = libc::c_long::from(crate::sched::gettid());
    let personality: libc::c_long = 0;
    // SAFETY: the core reads one live sched_param_ex and writes one live u32.
    let result = unsafe {
        libc::syscall(
            THREAD_CREATE,
            name,
            libc::c_long::from(libc::SCHED_FIFO),
            &raw const parameters,
            personality,
            &raw mut window,
        )
    };
    if result == 0 { Ok(()) } else { Err(SysError::last("Cobalt's thread_create", "")) }
}

impl Port for Cobalt {
    #[inline]
    fn sleep_until(&mut self, due_ns: i64) -> Wake {
        let due_ns = due_ns.max(0);
        let t = Time { seconds: due_ns / SECOND_NS, ns: due_ns % SECOND_NS };
        let none = std::ptr::null_mut::<Time>();
        // SAFETY: the core reads one live time; no remainder is asked for.
        let result = unsafe {
            libc::syscall(
                CLOCK_NANOSLEEP,
                libc::c_long::from(self.clock),
                libc::c_long::from(libc::TIMER_ABSTIME),
                &raw const t,
                none,
            )
        };
        if result == 0 { Wake::Due } else { crate::timer::errno_wake() }
    }

    #[inline]
    fn now_ns(&mut self) -> i64 {
        if self.vdso {
            return now_ns(self.clock);
        }
        let mut t = Time { seconds: 0, ns: 0 };
        let clock = libc::c_long::from(self.clock);
        // SAFETY: the core writes one live time.
        unsafe { libc::syscall(CLOCK_GETTIME, clock, &raw mut t) };
        t.seconds.wrapping_mul(SECOND_NS).wrapping_add(t.ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_the_core_is_refused_in_words() {
        if Path::new("/proc/xenomai").is_dir() {
            return tailbound_testing::skip("no-cobalt", "this kernel has the Cobalt core");
        }
        let e = Cobalt::new(libc::CLOCK_MONOTONIC).unwrap_err();
        assert_eq!(e.errno, libc::ENOSYS);
        assert!(e.to_string().contains("no Cobalt core: /proc/xenomai is missing"), "{e}");
        // And the call itself is one that such a kernel does not know.
        assert_eq!(bind().unwrap_err().errno, libc::ENOSYS);
    }
}
