// SPDX-License-Identifier: MIT OR Apache-2.0
//! Port of the measuring loop over Xenomai 4's EVL core: its own sleep, by its device files.
//!
//! Context: HOT (the `Port` methods), SETUP (`new`), COLD (drop). Units: ns.
//! EVL's elements are files below /dev/evl: a thread is made of the calling one by cloning
//! an element, a clock is opened and slept on by an ioctl that goes to the core directly, as
//! a system call whose number carries a marker bit, or folded into prctl(2) on kernels that
//! know only that form. No library is needed.
//! Not here: gravity, which lets EVL's timers fire early by a calibrated time; set it to 0
//! (`/sys/class/evl/clock/monotonic/gravity`) or latency is hidden.
//! Source: the kernel's `include/uapi/evl` (control.h, factory.h, thread.h, clock.h, sched.h)
//! of ABI level 32, and `uapi/asm-generic/dovetail.h`.

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;

use libc::clockid_t;
use tailbound_rt::{Port, Wake};

use crate::clock::now_ns;
use crate::error::{SysError, check};
use crate::ioctl::{READ, WRITE, request};

/// Marks a system call as meant for the second kernel.
const MARK: libc::c_long = 0x1000_0000;
const OOB_IOCTL: libc::c_long = MARK | 2;
/// The interface used here; the core says from which level to which it serves.
const ABI: u32 = 32;

const GET_COREINFO: u64 = request(READ, b'C', 0, size_of::<CoreInfo>());
const CLONE: u64 = request(READ | WRITE, b'f', 0, size_of::<CloneRequest>());
const SET_SCHEDPARAM: u64 = request(WRITE, b'T', 1, size_of::<Attributes>());
const DETACH_SELF: u64 = request(0, b'T', 7, 0);
const SLEEP: u64 = request(WRITE, b'c', 0, size_of::<Timespec>());

/// `struct evl_core_info`.
#[repr(C)]
#[derive(Default)]
struct CoreInfo {
    abi_base: u32,
    abi_current: u32,
    fpu_features: u32,
    shm_size: u64,
}

/// `struct evl_clone_req`: without a name and attributes the element is private.
#[repr(C)]
#[derive(Default)]
struct CloneRequest {
    name_ptr: u64,
    attrs_ptr: u64,
    clone_flags: u32,
    minor: u32,
    fundle: u32,
    state_offset: u32,
    efd: u32,
}

/// `struct evl_sched_attrs`; the union is as large as a timespec.
#[repr(C)]
struct Attributes {
    policy: i32,
    priority: i32,
    _of_other_policies: [u64; 2],
}

/// `struct __evl_timespec`: 64 bits each everywhere.
#[repr(C)]
struct Timespec {
    tv_sec: i64,
    tv_nsec: i64,
}

/// How an ioctl reaches the core.
#[derive(Clone, Copy, Debug)]
enum Form {
    Marked,
    Prctl,
}

/// Sleeps in EVL until an absolute time, over and over.
#[derive(Debug)]
pub struct Evl {
    clock: clockid_t,
    form: Form,
    device: File,
    thread: OwnedFd,
}

impl Evl {
    /// Makes the calling thread, which has a real-time policy and whose memory is locked, a
    /// thread of EVL with its priority.
    ///
    /// # Errors
    /// ENOSYS: no EVL core in this kernel; ENOEXEC: one that does not serve this interface;
    /// EINVAL: a clock EVL does not sleep on, or no real-time priority; ENOTSUP: a clock that
    /// only a system call of Linux reads; what the core refuses.
    pub fn new(clock: clockid_t) -> Result<Self, SysError> {
        if !Path::new("/dev/evl/control").exists() {
            let what = "no EVL core: /dev/evl/control is missing";
            return Err(SysError::code("means evl", what, libc::ENOSYS));
        }
        let path = match clock {
            libc::CLOCK_MONOTONIC => "/dev/evl/clock/monotonic",
            libc::CLOCK_REALTIME => "/dev/evl/clock/realtime",
            _ => {
                let what = "EVL sleeps on the clocks monotonic and realtime only";
                return Err(SysError::code("means evl", what, libc::EINVAL));
            }
        };
        if !crate::clock::is_read_without_a_call() {
            let what = "reading this machine's clock takes a system call, which would leave EVL";
            return Err(SysError::code("means evl", what, libc::ENOTSUP));
        }
        let priority = crate::sched::own_fifo_priority("means evl")?;
        check_abi()?;
        let device = open(path)?;
        let thread = clone_thread()?;
        let attributes =
            Attributes { policy: libc::SCHED_FIFO, priority, _of_other_policies: [0; 2] };
        let mut form = Form::Marked;
        // SAFETY: the core reads one live evl_sched_attrs.
        let set = || unsafe {
            oob_ioctl(form, thread.as_raw_fd(), SET_SCHEDPARAM, (&raw const attributes).cast())
        };
        if set() != 0 {
            let e = SysError::last("EVL's set_schedparam", "");
            if e.errno != libc::ENOSYS {
                return Err(e);
            }
            form = Form::Prctl;
            // SAFETY: as above.
            let again = unsafe {
                oob_ioctl(form, thread.as_raw_fd(), SET_SCHEDPARAM, (&raw const attributes).cast())
            };
            check(again, "EVL's set_schedparam", "by prctl")?;
        }
        Ok(Self { clock, form, device, thread })
    }
}

fn open(path: &str) -> Result<File, SysError> {
    File::options().read(true).write(true).open(path).map_err(|e| {
        SysError::code("open", path, e.raw_os_error().unwrap_or(0)).needs("root, or rights on it")
    })
}

fn check_abi() -> Result<(), SysError> {
    let control = open("/dev/evl/control")?;
    let mut info = CoreInfo::default();
    // SAFETY: the core writes one live evl_core_info.
    let result = unsafe { libc::ioctl(control.as_raw_fd(), GET_COREINFO as _, &raw mut info) };
    // ENOTTY: the request's own layout has changed.
    check(result, "EVL's core info", "an ABI of another layout?")?;
    if (info.abi_base..=info.abi_current).contains(&ABI) {
        return Ok(());
    }
    let what = format!(
        "the core serves ABI levels {} to {}, this program speaks {ABI}",
        info.abi_base, info.abi_current
    );
    Err(SysError::code("means evl", what, libc::ENOEXEC))
}

fn clone_thread() -> Result<OwnedFd, SysError> {
    let factory = open("/dev/evl/thread/clone")?;
    let mut clone = CloneRequest::default();
    // SAFETY: the core reads and writes one live evl_clone_req.
    let result = unsafe { libc::ioctl(factory.as_raw_fd(), CLONE as _, &raw mut clone) };
    check(result, "EVL's clone", "thread")?;
    // SAFETY: the core returned a fresh descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(clone.efd.cast_signed()) })
}

/// # Safety
/// `argument` points to what `request` reads.
#[inline]
unsafe fn oob_ioctl(
    form: Form,
    fd: RawFd,
    request: u64,
    argument: *const libc::c_void,
) -> libc::c_long {
    let fd = libc::c_long::from(fd);
    let request = request as libc::c_ulong;
    match form {
        // SAFETY: the caller's.
        Form::Marked => unsafe { libc::syscall(OOB_IOCTL, fd, request, argument) },
        // SAFETY: the caller's.
        Form::Prctl => unsafe {
            libc::syscall(libc::SYS_prctl, OOB_IOCTL, fd, request, argument, 0)
        },
    }
}

impl Port for Evl {
    #[inline]
    fn sleep_until(&mut self, due_ns: i64) -> Wake {
        let due = due_ns.max(0);
        let t = Timespec { tv_sec: due / 1_000_000_000, tv_nsec: due % 1_000_000_000 };
        // SAFETY: the core reads one live __evl_timespec.
        let result =
            unsafe { oob_ioctl(self.form, self.device.as_raw_fd(), SLEEP, (&raw const t).cast()) };
        if result == 0 { Wake::Due } else { crate::timer::errno_wake() }
    }

    #[inline]
    fn now_ns(&mut self) -> i64 {
        now_ns(self.clock)
    }
}

impl Drop for Evl {
    fn drop(&mut self) {
        // SAFETY: no pointers; the thread's own descriptor is live. A refusal leaves the
        // thread attached until it ends, which is next.
        unsafe { libc::ioctl(self.thread.as_raw_fd(), DETACH_SELF as _) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_the_core_is_refused_in_words() {
        if Path::new("/dev/evl/control").exists() {
            return tailbound_testing::skip("no-evl", "this kernel has the EVL core");
        }
        let e = Evl::new(libc::CLOCK_MONOTONIC).unwrap_err();
        assert_eq!(e.errno, libc::ENOSYS);
        assert!(e.to_string().contains("no EVL core: /dev/evl/control is missing"), "{e}");
    }

    #[test]
    fn requests_are_numbered_as_the_kernel_numbers_them() {
        assert_eq!(GET_COREINFO, 0x8018_4300);
        assert_eq!(CLONE, 0xc028_6600);
        assert_eq!(SET_SCHEDPARAM, 0x4018_5401);
        assert_eq!(SLEEP, 0x4010_6300);
    }
}
