// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cheapest system calls there are, one after the other: for a load, and for a benchmark
//! of what entering the kernel costs.
//!
//! Context: HOT of a load, never of a measured loop. Units: calls.
//! None is one that a C library answers in the place of the kernel.
//! Source: getppid(2), read(2), write(2), lseek(2), dup(2), futex(2), sched_yield(2), clock_getres(2).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use crate::error::SysError;

/// One kind of call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// getppid(2): nothing but the way in and out.
    Getppid,
    /// One byte read from /dev/zero.
    Read,
    /// One byte written to /dev/null.
    Write,
    /// lseek(2): finds a descriptor and gives it back.
    Lseek,
    /// dup(2) and close(2): counted as two.
    Dup,
    /// FUTEX_WAKE where nobody waits.
    Futex,
    /// sched_yield(2).
    Yield,
}

impl Call {
    /// Every one, by the name of its call.
    pub const ALL: [(&'static str, Self); 7] = [
        ("getppid", Self::Getppid),
        ("read", Self::Read),
        ("write", Self::Write),
        ("lseek", Self::Lseek),
        ("dup", Self::Dup),
        ("futex", Self::Futex),
        ("yield", Self::Yield),
    ];
}

/// What the calls are made on.
#[derive(Debug)]
pub struct Calls {
    zero: File,
    null: File,
    word: u32,
}

impl Calls {
    /// Opens /dev/zero and /dev/null.
    ///
    /// # Errors
    /// ENOENT where there is no /dev.
    pub fn new() -> Result<Self, SysError> {
        let failed =
            |path: &str, e: io::Error| SysError::code("open", path, e.raw_os_error().unwrap_or(0));
        let zero = File::open("/dev/zero").map_err(|e| failed("/dev/zero", e))?;
        let null = File::options().write(true).open("/dev/null");
        Ok(Self { zero, null: null.map_err(|e| failed("/dev/null", e))?, word: 0 })
    }

    /// Makes `call` repeatedly; returns the number of system calls made.
    ///
    /// # Errors
    /// Those of the call: none is expected of any.
    pub fn make(&self, call: Call, times: u64) -> Result<u64, SysError> {
        let mut byte = 0u8;
        let (zero, null) = (self.zero.as_raw_fd(), self.null.as_raw_fd());
        let (at, word) = (&raw mut byte, &raw const self.word);
        // SAFETY: every call takes integers, own descriptors, and one live byte or word.
        unsafe {
            match call {
                Call::Getppid => repeat("getppid", times, || libc::getppid().into()),
                Call::Read => {
                    repeat("read", times, || libc::syscall(libc::SYS_read, zero, at, 1usize))
                }
                Call::Write => {
                    repeat("write", times, || libc::syscall(libc::SYS_write, null, at, 1usize))
                }
                Call::Lseek => repeat("lseek", times, || {
                    libc::syscall(libc::SYS_lseek, zero, 0, libc::SEEK_CUR)
                }),
                Call::Dup => repeat("dup", times, || {
                    let copy = libc::syscall(libc::SYS_dup, null);
                    if copy >= 0 {
                        libc::syscall(libc::SYS_close, copy);
                    }
                    copy
                })
                .map(|n| 2 * n),
                Call::Futex => {
                    let wake = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
                    repeat("futex", times, || libc::syscall(libc::SYS_futex, word, wake, 1))
                }
                Call::Yield => {
                    repeat("sched_yield", times, || libc::syscall(libc::SYS_sched_yield))
                }
            }
        }
    }
}

/// Nothing but the call and a look at its result.
#[inline]
fn repeat(
    name: &'static str,
    times: u64,
    mut call: impl FnMut() -> libc::c_long,
) -> Result<u64, SysError> {
    for _ in 0..times {
        if call() < 0 {
            return Err(SysError::last(name, ""));
        }
    }
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_is_made_and_leaves_no_descriptor() {
        let Ok(calls) = Calls::new() else { panic!("/dev") };
        for (name, call) in Call::ALL {
            // On a busy machine each yield may take a time slice.
            let times = if call == Call::Yield { 3 } else { 2000 };
            let expected = if call == Call::Dup { 2 * times } else { times };
            assert_eq!(calls.make(call, times), Ok(expected), "{name}");
        }
    }
}
