// SPDX-License-Identifier: MIT OR Apache-2.0
//! A performance event of the kernel with the ring of its records.
//!
//! Context: SETUP (`open`, `run`), HOT (`next`, `word`, `done`: shared memory, no system call, no allocation).
//! Units: bytes; places in the ring count on for ever. Closing the descriptor ends the event, also
//! where this process is killed.
//! Not here: what makes a sample and what is in it (`perf`, `perf_cpu`, `perf_stacks`).
//! Source: perf_event_open(2), linux/perf_event.h (struct of 112 bytes, Linux 4.1).

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{SysError, check};
use crate::mapping::page_bytes;

pub(crate) const TYPE_HARDWARE: u32 = 0;
pub(crate) const TYPE_SOFTWARE: u32 = 1;
pub(crate) const SAMPLE_TIME: u64 = 1 << 2;
/// The number of the event, before everything else of a sample.
pub(crate) const SAMPLE_IDENTIFIER: u64 = 1 << 16;
pub(crate) const DISABLED: u64 = 1;
pub(crate) const EXCLUDE_HV: u64 = 1 << 6;
pub(crate) const USE_CLOCKID: u64 = 1 << 25;
pub(crate) const RECORD_LOST: u32 = 2;
pub(crate) const RECORD_SAMPLE: u32 = 9;
const FD_CLOEXEC: libc::c_ulong = 8;
const ENABLE: libc::c_ulong = 0x2400;
const DISABLE: libc::c_ulong = 0x2401;
const SET_OUTPUT: libc::c_ulong = 0x2405;
/// Reads 8 bytes: the event's number.
const ID: libc::c_ulong = 0x8008_2407;
/// Places in the control page: head, tail.
const HEAD: usize = 1024;
const TAIL: usize = 1032;
const HEADER_BYTES: u64 = 8;

/// struct perf_event_attr as of Linux 4.1.
#[repr(C)]
#[derive(Default)]
pub(crate) struct Attributes {
    pub(crate) kind: u32,
    pub(crate) size: u32,
    pub(crate) config: u64,
    pub(crate) period: u64,
    pub(crate) sample_type: u64,
    pub(crate) read_format: u64,
    pub(crate) flags: u64,
    pub(crate) wakeup: u32,
    pub(crate) breakpoint: u32,
    pub(crate) config1: u64,
    pub(crate) config2: u64,
    pub(crate) branches: u64,
    pub(crate) regs_user: u64,
    pub(crate) stack_user: u32,
    pub(crate) clock: i32,
    pub(crate) regs_intr: u64,
    pub(crate) aux_watermark: u32,
    pub(crate) max_stack: u16,
    pub(crate) reserved: u16,
}

/// Whose event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// A thread's, wherever it runs; 0 is the calling one.
    Thread(i32),
    /// A CPU's, whoever runs there.
    Cpu(u32),
}

/// A record that lies in the ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub(crate) kind: u32,
    pub(crate) flags: u16,
    /// What is behind its header.
    pub(crate) body: u64,
    pub(crate) end: u64,
}

/// Opens an event, off, without a ring.
fn event(
    attributes: Attributes,
    whose: Whose,
    what: &str,
    needs: &'static str,
) -> Result<OwnedFd, SysError> {
    let attributes = Attributes { size: 112, ..attributes };
    let (tid, cpu) = match whose {
        Whose::Thread(tid) => (libc::c_long::from(tid), -1),
        Whose::Cpu(cpu) => (-1, i64::from(cpu) as libc::c_long),
    };
    // SAFETY: perf_event_open(2) reads `size` bytes of a live struct; the rest are integers.
    let raw = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            tid,
            cpu,
            -1 as libc::c_long,
            FD_CLOEXEC,
        )
    };
    let raw = check(raw, "perf_event_open", what).map_err(|e| e.needs(needs))?;
    // SAFETY: a fresh descriptor, ours alone.
    Ok(unsafe { OwnedFd::from_raw_fd(i32::try_from(raw).unwrap_or(-1)) })
}

/// Whether an event counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventState {
    Running,
    Stopped,
}

/// Lets an event run, or stops it.
///
/// # Errors
/// What the kernel refuses.
pub(crate) fn run(fd: &OwnedFd, state: EventState) -> Result<(), SysError> {
    let request = match state {
        EventState::Running => ENABLE,
        EventState::Stopped => DISABLE,
    };
    // SAFETY: an ioctl without argument on a descriptor of ours.
    let done = unsafe { libc::ioctl(fd.as_raw_fd(), request as _, 0) };
    check(done, "ioctl", "PERF_EVENT_IOC_ENABLE").map(drop)
}

/// The number that the kernel gave an event.
///
/// # Errors
/// What the kernel refuses.
pub(crate) fn number(fd: &OwnedFd) -> Result<u64, SysError> {
    let mut id = 0u64;
    // SAFETY: writes the 8 bytes of a live integer.
    let done = unsafe { libc::ioctl(fd.as_raw_fd(), ID as _, &raw mut id) };
    check(done, "ioctl", "PERF_EVENT_IOC_ID").map(|_| id)
}

/// See the module.
#[derive(Debug)]
pub(crate) struct PerfRing {
    fd: OwnedFd,
    at: NonNull<u8>,
    page: usize,
    pages: usize,
}

// SAFETY: the mapping is owned, and read through `&mut` of its owners alone.
unsafe impl Send for PerfRing {}

impl PerfRing {
    /// Opens an event, off, with a ring of `pages` (a power of 2). `what` and `needs` are for errors.
    ///
    /// # Errors
    /// ENOENT or EOPNOTSUPP: no such event here; EACCES, EPERM: kernel.perf_event_paranoid; ESRCH: no such
    /// thread; EINVAL: more than kernel.perf_event_max_sample_rate.
    pub(crate) fn open(
        attributes: Attributes,
        whose: Whose,
        pages: usize,
        what: &str,
        needs: &'static str,
    ) -> Result<Self, SysError> {
        let fd = event(attributes, whose, what, needs)?;
        let page = page_bytes();
        // SAFETY: a shared mapping of the event's ring: one control page and 2^n of data.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                page * (pages + 1),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                0,
            )
        };
        match NonNull::new(at.cast::<u8>()) {
            Some(place) if at != libc::MAP_FAILED => Ok(Self { fd, at: place, page, pages }),
            _ => Err(SysError::last("mmap", "the ring of a performance event")),
        }
    }

    /// Opens one more event of the same thread or CPU, off, whose records come into this ring too; it needs the same
    /// clock.
    ///
    /// # Errors
    /// Those of [`PerfRing::open`]; EINVAL: another thread's.
    pub(crate) fn beside(
        &self,
        attributes: Attributes,
        whose: Whose,
        what: &str,
        needs: &'static str,
    ) -> Result<OwnedFd, SysError> {
        let fd = event(attributes, whose, what, needs)?;
        // SAFETY: an ioctl with a descriptor of ours, on a descriptor of ours.
        let done = unsafe { libc::ioctl(fd.as_raw_fd(), SET_OUTPUT as _, self.fd.as_raw_fd()) };
        check(done, "ioctl", "PERF_EVENT_IOC_SET_OUTPUT")?;
        Ok(fd)
    }

    /// The descriptor of the ring's own event.
    pub(crate) fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// Lets it run, or stops it.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub(crate) fn run(&self, state: EventState) -> Result<(), SysError> {
        run(&self.fd, state)
    }

    fn position(&self, place: usize) -> &AtomicU64 {
        // SAFETY: an aligned word of the live control page, which the kernel accesses atomically.
        unsafe { &*self.at.as_ptr().add(place).cast::<AtomicU64>() }
    }

    /// The word at a place of the ring.
    pub(crate) fn word(&self, at: u64) -> u64 {
        let offset = (at % (self.page as u64 * self.pages as u64)) & !7;
        // SAFETY: an aligned word of the data pages, whose size is a multiple of 8.
        unsafe {
            self.at
                .as_ptr()
                .add(self.page + usize::try_from(offset).unwrap_or(0))
                .cast::<u64>()
                .read_volatile()
        }
    }

    fn head(&self) -> u64 {
        self.position(HEAD).load(Ordering::Acquire)
    }

    /// The oldest record; [`PerfRing::done`] frees its room.
    pub(crate) fn next(&self) -> Option<Record> {
        self.before(self.head())
    }

    fn before(&self, head: u64) -> Option<Record> {
        let tail = self.position(TAIL).load(Ordering::Relaxed);
        if tail == head {
            return None;
        }
        // type: 32 bits, misc: 16, size: 16; in the machine's byte order.
        let [a, b, c, d, e, f, g, h] = self.word(tail).to_ne_bytes();
        // A size below its own header would never end.
        let size = u64::from(u16::from_ne_bytes([g, h])).max(HEADER_BYTES);
        Some(Record {
            kind: u32::from_ne_bytes([a, b, c, d]),
            flags: u16::from_ne_bytes([e, f]),
            body: tail.wrapping_add(HEADER_BYTES),
            end: tail.wrapping_add(size),
        })
    }

    /// The kernel may write over the record.
    pub(crate) fn done(&mut self, record: Record) {
        self.position(TAIL).store(record.end, Ordering::Release);
    }

    /// Hands over each record that is there now, the oldest first, with what is behind its header.
    pub(crate) fn read(&mut self, each: &mut dyn FnMut(Record, &[u8])) {
        let mut bytes = Vec::new();
        // What the reader itself causes comes with the next call: it would never end.
        let head = self.head();
        while let Some(record) = self.before(head) {
            bytes.clear();
            let mut at = record.body;
            while at != record.end && bytes.len() < usize::from(u16::MAX) {
                bytes.extend(self.word(at).to_ne_bytes());
                at = at.wrapping_add(8);
            }
            each(record, &bytes);
            self.done(record);
        }
    }
}

impl Drop for PerfRing {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `open` with this address and length.
        unsafe { libc::munmap(self.at.as_ptr().cast(), self.page * (self.pages + 1)) };
    }
}
