// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hand-over by a pipe that is written and read through io_uring.
//!
//! Context: HOT (one io_uring_enter each), SETUP (`Ring::new`).
//! The receiver's read is queued before it waits: one call submits it and waits for its end.
//! A ring may be dropped while its read is in flight, and the kernel ends that later: so the bytes
//! it reads into are never freed ([`Bytes`]).
//! Source: io_uring(7), io_uring_setup(2), io_uring_enter(2), linux/io_uring.h.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use tailbound_rt::Wake;
use tailbound_rt::handover::{Give, Take};

use crate::error::{SysError, check};

const ENTRIES: u32 = 4;
const OFFSET_SUBMISSIONS: libc::off_t = 0;
const OFFSET_ENTRIES: libc::off_t = 0x1000_0000;
const FEATURE_SINGLE_MMAP: u32 = 1;
const ENTER_GETEVENTS: u32 = 1;
const OP_READ: u8 = 22;
const OP_WRITE: u8 = 23;
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct SubmissionOffsets {
    head: u32,
    tail: u32,
    ring_mask: u32,
    ring_entries: u32,
    flags: u32,
    dropped: u32,
    array: u32,
    reserved: u32,
    user_addr: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct CompletionOffsets {
    head: u32,
    tail: u32,
    ring_mask: u32,
    ring_entries: u32,
    overflow: u32,
    cqes: u32,
    flags: u32,
    reserved: u32,
    user_addr: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Parameters {
    sq_entries: u32,
    cq_entries: u32,
    flags: u32,
    sq_thread_cpu: u32,
    sq_thread_idle: u32,
    features: u32,
    wq_fd: u32,
    reserved: [u32; 3],
    sq: SubmissionOffsets,
    cq: CompletionOffsets,
}

/// A submission queue entry: the fields of a read or write, the rest zero.
#[repr(C)]
struct Entry {
    opcode: u8,
    flags: u8,
    priority: u16,
    fd: i32,
    offset: u64,
    address: u64,
    length: u32,
    rest: [u32; 9],
}

#[repr(C)]
struct Completion {
    user_data: u64,
    result: i32,
    flags: u32,
}

const _: () = assert!(
    size_of::<Parameters>() == 120 && size_of::<Entry>() == 64 && size_of::<Completion>() == 16
);

/// A mapping of the ring's memory.
struct Area {
    at: *mut u8,
    bytes: usize,
}

impl Area {
    fn map(fd: RawFd, bytes: usize, offset: libc::off_t) -> Result<Self, SysError> {
        // SAFETY: a mapping of the ring's memory at no particular address.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                fd,
                offset,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(SysError::last("mmap", "io_uring"));
        }
        Ok(Self { at: at.cast(), bytes })
    }

    fn word(&self, offset: u32) -> &AtomicU32 {
        // SAFETY: the kernel gave the offset of an aligned u32 inside the mapping, which it
        // reads and writes atomically too.
        unsafe { &*self.at.add(offset as usize).cast::<AtomicU32>() }
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping made in `map`.
        unsafe { libc::munmap(self.at.cast(), self.bytes) };
    }
}

/// The eight bytes that an operation writes or reads, on a cache line of their own. Never freed:
/// the kernel may write to them after the ring is gone. A run makes a few rings.
#[repr(align(64))]
struct Bytes(AtomicU64);

impl Bytes {
    fn new() -> &'static Self {
        Box::leak(Box::new(Self(AtomicU64::new(1))))
    }
}

/// One ring, with at most one operation in it.
pub(super) struct Ring {
    queues: Area,
    entries: Area,
    parameters: Parameters,
    bytes: &'static Bytes,
    fd: OwnedFd,
}

// SAFETY: the mappings are owned; the ring is used by one thread at a time.
unsafe impl Send for Ring {}

impl Ring {
    pub(super) fn new() -> Result<Self, SysError> {
        let mut parameters = Parameters::default();
        // SAFETY: io_uring_setup(2) reads and writes the live parameters.
        let raw = unsafe { libc::syscall(libc::SYS_io_uring_setup, ENTRIES, &raw mut parameters) };
        let raw = check(raw, "io_uring_setup", "").map_err(|e| {
            e.needs("kernel.io_uring_disabled=0, and a container that lets io_uring_setup through")
        })?;
        // SAFETY: a fresh descriptor, ours alone.
        let fd = unsafe { OwnedFd::from_raw_fd(i32::try_from(raw).unwrap_or(-1)) };
        if parameters.features & FEATURE_SINGLE_MMAP == 0 {
            return Err(SysError::code("io_uring_setup", "Linux 5.6 or later", libc::ENOSYS));
        }
        let (sq, cq) = (&parameters.sq, &parameters.cq);
        let bytes = (sq.array as usize + parameters.sq_entries as usize * 4)
            .max(cq.cqes as usize + parameters.cq_entries as usize * size_of::<Completion>());
        let queues = Area::map(fd.as_raw_fd(), bytes, OFFSET_SUBMISSIONS)?;
        let bytes = parameters.sq_entries as usize * size_of::<Entry>();
        let entries = Area::map(fd.as_raw_fd(), bytes, OFFSET_ENTRIES)?;
        Ok(Self { queues, entries, parameters, bytes: Bytes::new(), fd })
    }

    /// Queues one operation on its bytes.
    fn queue(&self, opcode: u8, fd: RawFd) {
        let (sq, tail) = (&self.parameters.sq, self.queues.word(self.parameters.sq.tail));
        let position = tail.load(Ordering::Relaxed);
        let slot = position & self.queues.word(sq.ring_mask).load(Ordering::Relaxed);
        let entry = Entry {
            opcode,
            flags: 0,
            priority: 0,
            fd,
            offset: u64::MAX,
            address: self.bytes.0.as_ptr().expose_provenance() as u64,
            length: 8,
            rest: [0; 9],
        };
        // SAFETY: `slot` is below the number of entries, and of an entry that the kernel has
        // taken: there is never more than one.
        unsafe { self.entries.at.cast::<Entry>().add(slot as usize).write(entry) };
        self.queues.word(sq.array + 4 * slot).store(slot, Ordering::Relaxed);
        tail.store(position.wrapping_add(1), Ordering::Release);
    }

    /// Submits what is queued and waits for an end; its result, or `None` where a signal came
    /// first.
    fn enter(&self) -> Result<Option<i32>, i32> {
        let (sq, cq) = (&self.parameters.sq, &self.parameters.cq);
        let queued = self
            .queues
            .word(sq.tail)
            .load(Ordering::Relaxed)
            .wrapping_sub(self.queues.word(sq.head).load(Ordering::Acquire));
        // SAFETY: io_uring_enter(2) on integers; no signal mask.
        let entered = unsafe {
            libc::syscall(
                libc::SYS_io_uring_enter,
                self.fd.as_raw_fd(),
                queued,
                1,
                ENTER_GETEVENTS,
                std::ptr::null::<u8>(),
                0,
            )
        };
        let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
        let head = self.queues.word(cq.head);
        let position = head.load(Ordering::Relaxed);
        if position == self.queues.word(cq.tail).load(Ordering::Acquire) {
            return if entered < 0 && errno != libc::EINTR { Err(errno) } else { Ok(None) };
        }
        let slot = position & self.queues.word(cq.ring_mask).load(Ordering::Relaxed);
        // SAFETY: `slot` is below the number of completions, and of one that the kernel has
        // written before it moved the tail.
        let result = unsafe {
            let all = self.queues.at.add(cq.cqes as usize).cast::<Completion>();
            (*all.add(slot as usize)).result
        };
        head.store(position.wrapping_add(1), Ordering::Release);
        Ok(Some(result))
    }
}

/// The sender's end.
pub(super) struct Writer {
    ring: Ring,
    fd: Arc<OwnedFd>,
}

impl Writer {
    pub(super) fn new(fd: Arc<OwnedFd>) -> Result<Self, SysError> {
        Ok(Self { ring: Ring::new()?, fd })
    }
}

impl Give for Writer {
    fn give(&mut self) -> Result<(), i32> {
        self.ring.queue(OP_WRITE, self.fd.as_raw_fd());
        loop {
            match self.ring.enter()? {
                Some(result) if result < 0 => return Err(result.saturating_neg()),
                Some(_) => return Ok(()),
                None => {}
            }
        }
    }
}

/// The receiver's end.
pub(super) struct Reader {
    ring: Ring,
    fd: Arc<OwnedFd>,
    queued: bool,
}

impl Reader {
    pub(super) fn new(fd: Arc<OwnedFd>) -> Result<Self, SysError> {
        Ok(Self { ring: Ring::new()?, fd, queued: false })
    }
}

impl Take for Reader {
    fn take(&mut self) -> Wake {
        if !self.queued {
            self.ring.queue(OP_READ, self.fd.as_raw_fd());
            self.queued = true;
        }
        match self.ring.enter() {
            Ok(None) => Wake::Interrupted,
            Ok(Some(result)) => {
                self.queued = false;
                match result {
                    0 => Wake::Failed(libc::EPIPE),
                    r if r < 0 => Wake::Failed(r.saturating_neg()),
                    _ => Wake::Due,
                }
            }
            Err(errno) => Wake::Failed(errno),
        }
    }
}
