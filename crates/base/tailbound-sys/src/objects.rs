// SPDX-License-Identifier: MIT OR Apache-2.0
//! System calls on files in memory, timers, pipes and the process itself, one by one, for a load that makes them in
//! an order that somebody wrote.
//!
//! Context: HOT of a load, never of a measured loop. Units: bytes, ns.
//! Not here: memory (`mapping`), children (`short_lived`), CPUs (`sched`).
//! Source: memfd_create(2), fallocate(2), sendfile(2), pipe(2), timerfd_create(2), getrandom(2), membarrier(2).

use std::fs::File;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::clock::{CLOCK_MONOTONIC, timespec};
use crate::error::{SysError, check};
use crate::time64;

/// From the kernel's include/uapi/linux/membarrier.h.
const MEMBARRIER_CMD_GLOBAL: libc::c_int = 1;

/// An empty file in memory.
///
/// # Errors
/// EMFILE at the limit of descriptors, ENOMEM.
pub fn memory_file() -> Result<File, SysError> {
    // SAFETY: a NUL-terminated name and a number.
    let raw = unsafe { libc::memfd_create(c"calls".as_ptr(), libc::MFD_CLOEXEC) };
    check(raw, "memfd_create", "")?;
    // SAFETY: a fresh descriptor, ours alone.
    Ok(unsafe { File::from_raw_fd(raw) })
}

/// Frees the first `bytes` of a file, which then read as zero; its length stays.
///
/// # Errors
/// EOPNOTSUPP where the file system has no holes.
pub fn punch(file: &File, bytes: u64) -> Result<(), SysError> {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    let bytes = i64::try_from(bytes.max(1)).unwrap_or(i64::MAX);
    // SAFETY: a borrowed descriptor and numbers.
    let done = unsafe { libc::fallocate64(file.as_raw_fd(), mode, 0, bytes) };
    check(done, "fallocate", "").map(drop)
}

/// Copies `bytes` from the beginning of one file to the beginning of another, in the kernel; returns how many were.
///
/// # Errors
/// ENOSPC, ENOMEM.
pub fn copy(from: &File, to: &File, bytes: usize) -> Result<usize, SysError> {
    // SAFETY: a borrowed descriptor and numbers.
    let at = unsafe { libc::lseek64(to.as_raw_fd(), 0, libc::SEEK_SET) };
    check(at, "lseek", "")?;
    let mut offset: libc::off64_t = 0;
    // SAFETY: borrowed descriptors and one live offset.
    let done =
        unsafe { libc::sendfile64(to.as_raw_fd(), from.as_raw_fd(), &raw mut offset, bytes) };
    check(done, "sendfile", "").map(isize::unsigned_abs)
}

/// Both ends of a pipe that blocks nobody: what is read from, what is written to.
///
/// # Errors
/// EMFILE at the limit of descriptors.
pub fn pipe() -> Result<(OwnedFd, OwnedFd), SysError> {
    let mut ends = [0; 2];
    // SAFETY: two live integers.
    let done = unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) };
    check(done, "pipe2", "")?;
    // SAFETY: fresh descriptors, ours alone.
    Ok(unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
}

/// A timer that is not armed.
///
/// # Errors
/// EMFILE at the limit of descriptors.
pub fn timer() -> Result<OwnedFd, SysError> {
    // SAFETY: numbers.
    let raw = unsafe { libc::timerfd_create(CLOCK_MONOTONIC, libc::TFD_CLOEXEC) };
    check(raw, "timerfd_create", "")?;
    // SAFETY: a fresh descriptor, ours alone.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// Arms a timer, once, `ns` from now.
///
/// # Errors
/// None is expected.
pub fn arm(timer: BorrowedFd<'_>, ns: i64) -> Result<(), SysError> {
    let spec = time64::itimerspec { it_interval: timespec(0), it_value: timespec(ns) };
    // SAFETY: a borrowed descriptor and one live struct.
    let done = unsafe {
        time64::timerfd_settime(timer.as_raw_fd(), 0, &raw const spec, std::ptr::null_mut())
    };
    check(done, "timerfd_settime", "").map(drop)
}

/// Fills `into` with random bytes; returns how many came.
///
/// # Errors
/// EAGAIN until the kernel has gathered enough, which takes a guest that has just booted about a second.
pub fn random(into: &mut [u8]) -> Result<usize, SysError> {
    // SAFETY: a live buffer and its length.
    let got = unsafe { libc::getrandom(into.as_mut_ptr().cast(), into.len(), libc::GRND_NONBLOCK) };
    check(got, "getrandom", "").map(isize::unsigned_abs)
}

/// Waits until all CPUs have passed a point at which their memory is in order.
///
/// # Errors
/// EINVAL on a CPU without ticks (nohz_full); ENOSYS without CONFIG_MEMBARRIER.
pub fn barrier() -> Result<(), SysError> {
    // SAFETY: membarrier(2) on integers.
    let done = unsafe { libc::syscall(libc::SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) };
    check(done, "membarrier", "").map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::os::fd::AsFd as _;
    use std::os::unix::fs::FileExt as _;

    #[test]
    fn files_in_memory_are_copied_and_punched() {
        let (Ok(a), Ok(b)) = (memory_file(), memory_file()) else { panic!("memfd_create") };
        assert!(a.write_all_at(b"abcdefgh", 0).is_ok());
        assert_eq!(copy(&a, &b, 8), Ok(8));
        // From the beginning again: nothing grows.
        assert_eq!(copy(&a, &b, 8), Ok(8));
        assert!(b.metadata().is_ok_and(|m| m.len() == 8));
        assert_eq!(punch(&b, 4), Ok(()));
        let mut back = [1; 8];
        assert!(b.read_exact_at(&mut back, 0).is_ok());
        assert_eq!(&back, b"\0\0\0\0efgh");
    }

    #[test]
    fn pipes_do_not_block_and_timers_expire() {
        let Ok((reader, writer)) = pipe() else { panic!("pipe2") };
        let (mut reader, mut writer) = (File::from(reader), File::from(writer));
        let mut byte = [0];
        let empty = reader.read(&mut byte).err().map(|e| e.kind());
        assert_eq!(empty, Some(std::io::ErrorKind::WouldBlock));
        assert!(writer.write_all(&[7]).is_ok() && reader.read(&mut byte).is_ok());
        let Ok(timer) = timer() else { panic!("timerfd_create") };
        assert_eq!(arm(timer.as_fd(), 1), Ok(()));
        let mut expired = [0; 8];
        assert!(File::from(timer).read_exact(&mut expired).is_ok());
        assert_eq!(u64::from_ne_bytes(expired), 1);
        assert_eq!(random(&mut [0; 16]), Ok(16));
    }
}
