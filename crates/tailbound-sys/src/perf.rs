// SPDX-License-Identifier: MIT OR Apache-2.0
//! Samples of the kernel's performance events of the calling thread: when a handler in the
//! kernel took each, by its own clock.
//!
//! Context: SETUP (open), HOT (`take`: reads shared memory, no system call). Units: ns of
//! CLOCK_MONOTONIC_RAW, which handlers may read even where nothing can be locked.
//! Source: perf_event_open(2), linux/perf_event.h (struct of 112 bytes, Linux 4.1).

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::counter::CLOCK_MONOTONIC_RAW;
use crate::error::{SysError, check};
use crate::mapping::page_bytes;

/// What makes a sample fall due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A hardware counter of cycles that overflows: an NMI on x86, an interrupt or pseudo-NMI on ARM.
    Cycles,
    /// A timer of the kernel: an ordinary interrupt.
    Clock,
}

pub(crate) const TYPE_HARDWARE: u32 = 0;
pub(crate) const TYPE_SOFTWARE: u32 = 1;
pub(crate) const SAMPLE_TIME: u64 = 1 << 2;
pub(crate) const DISABLED: u64 = 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
pub(crate) const EXCLUDE_HV: u64 = 1 << 6;
pub(crate) const USE_CLOCKID: u64 = 1 << 25;
pub(crate) const ENABLE: libc::c_ulong = 0x2400;
pub(crate) const RECORD_LOST: u32 = 2;
pub(crate) const RECORD_SAMPLE: u32 = 9;
pub(crate) const FD_CLOEXEC: libc::c_ulong = 8;
const PAGES: usize = 8;
/// Places in the control page: head, tail.
pub(crate) const HEAD: usize = 1024;
pub(crate) const TAIL: usize = 1032;

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

/// Samples of one thread.
#[derive(Debug)]
pub struct Samples {
    fd: OwnedFd,
    at: NonNull<u8>,
    page: usize,
    lost: u64,
}

// SAFETY: the mapping is owned, and read through `&mut` alone.
unsafe impl Send for Samples {}

impl Samples {
    /// Opens an event of the calling thread, off: a sample each `period` cycles or ns.
    ///
    /// # Errors
    /// ENOENT or EOPNOTSUPP: no such counter here; EACCES: kernel.perf_event_paranoid.
    pub fn open(source: Source, period: u64) -> Result<Self, SysError> {
        let attributes = Attributes {
            kind: if source == Source::Cycles { TYPE_HARDWARE } else { TYPE_SOFTWARE },
            size: 112,
            config: 0,
            period,
            sample_type: SAMPLE_TIME,
            flags: DISABLED | EXCLUDE_HV | USE_CLOCKID
                // The software clock samples by itself; cycles are to be those of the loop.
                | if source == Source::Cycles { EXCLUDE_KERNEL } else { 0 },
            clock: CLOCK_MONOTONIC_RAW,
            ..Attributes::default()
        };
        // SAFETY: perf_event_open(2) reads `size` bytes of a live struct; the rest are integers.
        let raw = unsafe {
            libc::syscall(libc::SYS_perf_event_open, &raw const attributes, 0, -1, -1, FD_CLOEXEC)
        };
        let what = if source == Source::Cycles { "cycles" } else { "cpu-clock" };
        let raw = check(raw, "perf_event_open", what)
            .map_err(|e| e.needs("root, CAP_PERFMON or kernel.perf_event_paranoid below 2"))?;
        let raw = i32::try_from(raw).unwrap_or(-1);
        // SAFETY: a fresh descriptor, ours alone.
        let fd = unsafe { OwnedFd::from_raw_fd(raw) };
        let page = page_bytes();
        // SAFETY: a shared mapping of the event's ring: one control page and 2^n of data.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                page * (PAGES + 1),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                0,
            )
        };
        match NonNull::new(at.cast::<u8>()) {
            Some(place) if at != libc::MAP_FAILED => Ok(Self { fd, at: place, page, lost: 0 }),
            _ => Err(SysError::last("mmap", "the ring of a performance event")),
        }
    }

    /// Lets it run.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn enable(&self) -> Result<(), SysError> {
        // SAFETY: an ioctl without argument on a descriptor of ours.
        let done = unsafe { libc::ioctl(self.fd.as_raw_fd(), ENABLE as _, 0) };
        check(done, "ioctl", "PERF_EVENT_IOC_ENABLE").map(drop)
    }

    fn position(&self, place: usize) -> &AtomicU64 {
        // SAFETY: an aligned word of the live control page, which the kernel accesses atomically.
        unsafe { &*self.at.as_ptr().add(place).cast::<AtomicU64>() }
    }

    fn word(&self, at: u64) -> u64 {
        let offset = at % (self.page as u64 * PAGES as u64);
        // SAFETY: an aligned word of the data pages: records are multiples of 8 bytes, and so is `at`.
        unsafe {
            self.at
                .as_ptr()
                .add(self.page + usize::try_from(offset).unwrap_or(0))
                .cast::<u64>()
                .read_volatile()
        }
    }

    /// The oldest sample's time.
    pub fn take(&mut self) -> Option<i64> {
        loop {
            let tail = self.position(TAIL).load(Ordering::Relaxed);
            if tail == self.position(HEAD).load(Ordering::Acquire) {
                return None;
            }
            // type: 32 bits, misc: 16, size: 16; in the machine's byte order.
            let header = self.word(tail).to_ne_bytes();
            let [a, b, c, d, _, _, e, f] = header;
            let kind = u32::from_ne_bytes([a, b, c, d]);
            let size = u64::from(u16::from_ne_bytes([e, f]));
            let first = self.word(tail.wrapping_add(8));
            if kind == RECORD_LOST {
                self.lost = self.lost.saturating_add(self.word(tail.wrapping_add(16)));
            }
            // A size below its own header would never end.
            self.position(TAIL).store(tail.wrapping_add(size.max(8)), Ordering::Release);
            if kind == RECORD_SAMPLE {
                return i64::try_from(first).ok();
            }
        }
    }

    /// Samples that found no room.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

impl Drop for Samples {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `open` with this address and length.
        unsafe { libc::munmap(self.at.as_ptr().cast(), self.page * (PAGES + 1)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    #[test]
    fn samples_are_stamped_while_the_thread_runs() {
        let mut samples = match Samples::open(Source::Clock, 500_000) {
            Ok(samples) => samples,
            Err(e) => return tailbound_testing::skip("perf", e),
        };
        let begin = clock::now_ns(CLOCK_MONOTONIC_RAW);
        samples.enable().unwrap();
        let (mut n, mut last) = (0, begin);
        while n < 200 && clock::now_ns(CLOCK_MONOTONIC_RAW) - begin < 10_000_000_000 {
            while let Some(at) = samples.take() {
                let now = clock::now_ns(CLOCK_MONOTONIC_RAW);
                assert!(at >= last && at <= now, "{last} {at} {now}");
                last = at;
                n += 1;
            }
        }
        assert!(n >= 20, "{n} samples in 10 s");
        assert_eq!(samples.lost(), 0);
    }

    #[test]
    #[expect(clippy::print_stdout, reason = "what this machine has is worth knowing")]
    fn a_counter_that_is_not_there_is_refused_with_its_name() {
        match Samples::open(Source::Cycles, 1 << 30) {
            Ok(_) => println!("this machine counts cycles"),
            Err(e) => assert!(e.to_string().contains("cycles"), "{e}"),
        }
    }
}
