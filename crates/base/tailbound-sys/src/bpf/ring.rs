// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reader of a ring that programs in the kernel write.
//!
//! Units: bytes. Shared memory: one page with the reader's place, one with the writer's, the data
//! twice behind each other. Each record begins with its length, of which the highest bits say
//! whether it is being written, or was given up.
//! Source: kernel/bpf/ringbuf.c, Documentation/bpf/ringbuf.rst.

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::Map;
use crate::error::{SysError, check};
use crate::mapping::page_bytes;

const BUSY: u32 = 1 << 31;
const GIVEN_UP: u32 = 1 << 30;
const HEADER: u64 = 8;

/// A mapping that is undone when it is dropped.
#[derive(Debug)]
struct Shared {
    at: NonNull<u8>,
    bytes: usize,
}

impl Shared {
    fn map(
        map: &Map,
        offset: usize,
        bytes: usize,
        protection: libc::c_int,
    ) -> Result<Self, SysError> {
        let offset = libc::off_t::try_from(offset).unwrap_or(0);
        // SAFETY: a shared mapping of a map's memory at no particular address.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                protection,
                libc::MAP_SHARED,
                map.fd.as_raw_fd(),
                offset,
            )
        };
        match NonNull::new(at.cast::<u8>()) {
            Some(place) if at != libc::MAP_FAILED => Ok(Self { at: place, bytes }),
            _ => Err(SysError::last("mmap", "the ring of programs in the kernel")),
        }
    }

    /// The word of 8 bytes at the begin, which the kernel accesses atomically.
    fn position(&self) -> &AtomicU64 {
        // SAFETY: an aligned word of a live mapping of at least a page.
        unsafe { &*self.at.as_ptr().cast::<AtomicU64>() }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map` with this address and length.
        unsafe { libc::munmap(self.at.as_ptr().cast(), self.bytes) };
    }
}

/// Waits for a record of a ring. Its programs must let the kernel wake whoever waits.
#[derive(Debug)]
pub struct RingWaiter {
    fd: OwnedFd,
}

impl RingWaiter {
    /// For the ring of `map`.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn of(map: &Map) -> Result<Self, SysError> {
        let failed = |e: std::io::Error| {
            SysError::code("fcntl", "the ring of programs", e.raw_os_error().unwrap_or(0))
        };
        Ok(Self { fd: map.fd.try_clone().map_err(failed)? })
    }

    /// Until there is a record, or a signal comes.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn wait(&self) -> Result<(), SysError> {
        let mut waited = libc::pollfd { fd: self.fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one live entry.
        let done = unsafe { libc::poll(&raw mut waited, 1, -1) };
        match check(libc::c_long::from(done), "poll", "the ring of programs") {
            Err(e) if e.errno != libc::EINTR => Err(e),
            _ => Ok(()),
        }
    }
}

/// See the module.
#[derive(Debug)]
pub struct Ring {
    reader: Shared,
    writer: Shared,
    page: usize,
    bytes: u64,
}

// SAFETY: the mappings are owned, and read through `&mut` alone.
unsafe impl Send for Ring {}

impl Ring {
    /// Opens the ring of `map`, which has `bytes` (as it was made with).
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn open(map: &Map, bytes: usize) -> Result<Self, SysError> {
        let page = page_bytes();
        let reader = Shared::map(map, 0, page, libc::PROT_READ | libc::PROT_WRITE)?;
        let both = bytes.saturating_mul(2).saturating_add(page);
        let writer = Shared::map(map, page, both, libc::PROT_READ)?;
        Ok(Self { reader, writer, page, bytes: bytes as u64 })
    }

    /// Where the data of position `at` lies, with `room` bytes behind it.
    fn place(&self, at: u64, room: u64) -> Option<NonNull<u8>> {
        let offset = at.checked_rem(self.bytes)?;
        let end = offset.checked_add(room)?;
        // The data lies there twice, so that what goes over its end is in one piece.
        if end > self.bytes.checked_mul(2)? {
            return None;
        }
        let offset = usize::try_from(offset).ok()?.checked_add(self.page)?;
        // SAFETY: within the mapping of one page and twice the data, as was looked at.
        NonNull::new(unsafe { self.writer.at.as_ptr().add(offset) })
    }

    /// Hands over each whole record, the oldest first, until one that is being written.
    pub fn read(&mut self, each: &mut dyn FnMut(&[u8])) {
        let mut buffer = Vec::new();
        let mut at = self.reader.position().load(Ordering::Relaxed);
        let end = self.writer.position().load(Ordering::Acquire);
        // What is more than the ring holds was never written.
        while at < end && end - at <= self.bytes {
            let Some(head) = self.place(at, HEADER) else { return };
            // SAFETY: an aligned word of the live mapping: records are multiples of 8 bytes.
            let head = unsafe { &*head.as_ptr().cast::<AtomicU32>() }.load(Ordering::Acquire);
            if head & BUSY != 0 {
                return;
            }
            let length = u64::from(head & !(BUSY | GIVEN_UP));
            let next = at.saturating_add(length.saturating_add(HEADER).next_multiple_of(8));
            if next > end {
                return;
            }
            if head & GIVEN_UP == 0
                && let Some(data) = self.place(at + HEADER, length)
            {
                buffer.clear();
                // SAFETY: `length` bytes within the mapping; the kernel does not write a record again before
                // the reader's place is beyond it.
                buffer.extend(
                    (0..usize::try_from(length).unwrap_or(0))
                        .map(|i| unsafe { data.as_ptr().add(i).read_volatile() }),
                );
                each(&buffer);
            }
            at = next;
            self.reader.position().store(at, Ordering::Release);
        }
    }
}
