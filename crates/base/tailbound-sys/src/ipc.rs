// SPDX-License-Identifier: MIT OR Apache-2.0
//! What tasks of a load share: counters in memory that outlives a fork, bare read and
//! write, and waiting on several descriptors.
//!
//! Context: HOT in `read` and `write` (of a load, never of a measured loop), SETUP elsewhere.
//! Units: bytes; ms for time limits. Source: mmap(2), read(2), write(2), poll(2).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::SysError;

/// Two lines of 64 bytes: adjacent lines are prefetched in pairs.
const SLOT_BYTES: usize = 128;

/// Counters in memory shared by all processes forked after its creation, each on cache
/// lines of its own.
#[derive(Debug)]
pub struct SharedCounters {
    at: NonNull<u8>,
    slots: usize,
}

// SAFETY: the memory is a mapping of this object alone, accessed only as AtomicU64.
unsafe impl Send for SharedCounters {}
// SAFETY: as above; AtomicU64 may be shared.
unsafe impl Sync for SharedCounters {}

impl SharedCounters {
    /// `slots` counters, all 0.
    ///
    /// # Errors
    /// ENOMEM.
    pub fn new(slots: usize) -> Result<Self, SysError> {
        let slots = slots.max(1);
        let bytes = slots
            .checked_mul(SLOT_BYTES)
            .ok_or_else(|| SysError::code("mmap", format!("{slots} counters"), libc::ENOMEM))?;
        // SAFETY: a fresh anonymous mapping; the kernel fills it with zeros.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(SysError::last("mmap", format!("{slots} counters")));
        }
        let at = NonNull::new(at.cast::<u8>())
            .ok_or_else(|| SysError::code("mmap", "address 0", libc::ENOMEM))?;
        Ok(Self { at, slots })
    }

    /// Counter `slot`; numbers beyond the last share the last.
    #[must_use]
    pub fn slot(&self, slot: usize) -> &AtomicU64 {
        let slot = slot.min(self.slots - 1);
        // SAFETY: inside the mapping, aligned to 128, zero bytes are a valid AtomicU64, and
        // the mapping lives as long as `self`.
        unsafe { &*self.at.as_ptr().add(slot * SLOT_BYTES).cast::<AtomicU64>() }
    }

    /// Adds `n` to `slot`, of which the caller is the only writer: a load and a store, no
    /// locked instruction.
    pub fn add(&self, slot: usize, n: u64) {
        let counter = self.slot(slot);
        counter.store(counter.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
    }

    /// The sum of all.
    #[must_use]
    pub fn total(&self) -> u64 {
        (0..self.slots).map(|s| self.slot(s).load(Ordering::Relaxed)).sum()
    }
}

impl Drop for SharedCounters {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping made in `new`; no reference outlives `self`.
        unsafe { libc::munmap(self.at.as_ptr().cast(), self.slots * SLOT_BYTES) };
    }
}

/// read(2) without the cancellation bookkeeping of the C library.
///
/// # Errors
/// Those of read(2).
pub fn read(fd: BorrowedFd<'_>, into: &mut [u8]) -> io::Result<usize> {
    // SAFETY: read(2) writes at most the length of the live slice.
    let n = unsafe { libc::syscall(libc::SYS_read, fd.as_raw_fd(), into.as_mut_ptr(), into.len()) };
    usize::try_from(n).map_err(|_| io::Error::last_os_error())
}

/// write(2) without the cancellation bookkeeping of the C library.
///
/// # Errors
/// Those of write(2).
pub fn write(fd: BorrowedFd<'_>, from: &[u8]) -> io::Result<usize> {
    // SAFETY: write(2) reads at most the length of the live slice.
    let n = unsafe { libc::syscall(libc::SYS_write, fd.as_raw_fd(), from.as_ptr(), from.len()) };
    usize::try_from(n).map_err(|_| io::Error::last_os_error())
}

/// A stream descriptor in its own end's close: a TCP socket closed with unread data, or with
/// this set, is reset and leaves no TIME_WAIT behind.
///
/// # Errors
/// ENOTSOCK.
pub fn reset_on_close(socket: BorrowedFd<'_>) -> Result<(), SysError> {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    crate::socket_option::set_option(
        socket,
        libc::SOL_SOCKET,
        libc::SO_LINGER,
        &linger,
        "SO_LINGER",
    )
}

/// Waits until a descriptor is readable or closed at the other end, or for `timeout_ms`;
/// which ones are, in the order given. A signal ends the wait early: none are.
///
/// # Errors
/// ENOMEM, EINVAL.
pub fn wait_readable(fds: &[BorrowedFd<'_>], timeout_ms: i32) -> Result<Vec<bool>, SysError> {
    let all: Vec<(BorrowedFd<'_>, Until)> = fds.iter().map(|fd| (*fd, Until::Readable)).collect();
    wait_ready(&all, timeout_ms)
}

/// What a descriptor is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// There is something to read.
    Readable,
    /// There is room to write.
    Writable,
}

/// As [`wait_readable`], each descriptor until it is ready for what it is waited for.
///
/// # Errors
/// ENOMEM, EINVAL.
pub fn wait_ready(fds: &[(BorrowedFd<'_>, Until)], timeout_ms: i32) -> Result<Vec<bool>, SysError> {
    let events = |until| match until {
        Until::Readable => libc::POLLIN,
        Until::Writable => libc::POLLOUT,
    };
    let mut polls: Vec<libc::pollfd> = fds
        .iter()
        .map(|(fd, until)| libc::pollfd { fd: fd.as_raw_fd(), events: events(*until), revents: 0 })
        .collect();
    let count = libc::nfds_t::try_from(polls.len())
        .map_err(|_| SysError::code("poll", "", libc::EINVAL))?;
    // SAFETY: poll(2) reads and writes the live array of that length.
    if unsafe { libc::poll(polls.as_mut_ptr(), count, timeout_ms) } < 0 {
        let error = SysError::last("poll", "");
        if error.errno != libc::EINTR {
            return Err(error);
        }
        return Ok(vec![false; fds.len()]);
    }
    Ok(polls.iter().map(|p| p.revents != 0).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn counters_are_apart_and_add_up() {
        let Ok(counters) = SharedCounters::new(3) else { panic!("mmap") };
        counters.add(0, 1);
        counters.add(2, 1);
        counters.add(99, 1);
        assert_eq!(counters.slot(2).load(Ordering::Relaxed), 2);
        assert_eq!(counters.total(), 3);
    }

    #[test]
    fn a_closed_pipe_is_readable_and_ends() {
        let Ok((reader, writer)) = io::pipe() else { panic!("pipe") };
        assert_eq!(wait_readable(&[reader.as_fd()], 0), Ok(vec![false]));
        assert!(write(writer.as_fd(), b"x").is_ok_and(|n| n == 1));
        assert_eq!(wait_readable(&[reader.as_fd()], 0), Ok(vec![true]));
        let mut byte = [0];
        assert!(read(reader.as_fd(), &mut byte).is_ok_and(|n| n == 1));
        drop(writer);
        assert_eq!(wait_readable(&[reader.as_fd()], 0), Ok(vec![true]));
        assert!(read(reader.as_fd(), &mut byte).is_ok_and(|n| n == 0));
    }
}
