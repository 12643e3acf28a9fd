// SPDX-License-Identifier: MIT OR Apache-2.0
//! Samples of all that one CPU does, whoever runs there, so many times a second.
//!
//! Context: SETUP (open), COLD (`read`). Units: ns of CLOCK_MONOTONIC. Records go out as they lie in the ring: what
//! is in them is for the caller to read.
//! Not here: samples of one thread by their times alone (`perf`).
//! Source: perf_event_open(2), linux/perf_event.h.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{SysError, check};
use crate::mapping::page_bytes;
use crate::perf::{
    Attributes, DISABLED, ENABLE, EXCLUDE_HV, FD_CLOEXEC, HEAD, Source, TAIL, TYPE_HARDWARE,
    TYPE_SOFTWARE, USE_CLOCKID,
};

const COMM: u64 = 1 << 9;
const BY_FREQUENCY: u64 = 1 << 10;
const TASK: u64 = 1 << 13;
const TIMES_OF_ALL: u64 = 1 << 18;
const NO_USER_CALLERS: u64 = 1 << 22;
const MAPS_OF_CODE: u64 = 1 << 23;
const DISABLE: libc::c_ulong = 0x2401;
/// Pages of data: at a thousand samples a second of 300 bytes almost a second.
const PAGES: usize = 64;
/// Callers of a sample; the kernel's own limit is 127.
const CALLERS: u16 = 48;

/// See the module.
#[derive(Debug)]
pub struct CpuSamples {
    fd: OwnedFd,
    at: NonNull<u8>,
    page: usize,
}

// SAFETY: the mapping is owned, and read through `&mut` alone.
unsafe impl Send for CpuSamples {}

impl CpuSamples {
    /// Opens an event of `cpu`, off: `frequency` samples a second, with `fields`
    /// (PERF_SAMPLE_*).
    ///
    /// # Errors
    /// ENOENT or EOPNOTSUPP: no such counter here; EACCES: kernel.perf_event_paranoid; EINVAL: more
    /// than kernel.perf_event_max_sample_rate.
    pub fn open(cpu: u32, source: Source, frequency: u64, fields: u64) -> Result<Self, SysError> {
        let attributes = Attributes {
            kind: if source == Source::Cycles { TYPE_HARDWARE } else { TYPE_SOFTWARE },
            size: 112,
            period: frequency,
            sample_type: fields,
            flags: DISABLED
                | EXCLUDE_HV
                | USE_CLOCKID
                | BY_FREQUENCY
                | COMM
                | TASK
                | TIMES_OF_ALL
                | MAPS_OF_CODE
                | NO_USER_CALLERS,
            clock: libc::CLOCK_MONOTONIC,
            max_stack: CALLERS,
            ..Attributes::default()
        };
        let cpu_number = libc::c_long::from(cpu);
        // SAFETY: perf_event_open(2) reads `size` bytes of a live struct; the rest are integers.
        let raw = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                -1,
                cpu_number,
                -1,
                FD_CLOEXEC,
            )
        };
        let name = if source == Source::Cycles { "cycles" } else { "cpu-clock" };
        let raw = check(raw, "perf_event_open", &format!("{name} of CPU {cpu}"))
            .map_err(|e| e.needs("root, CAP_PERFMON or kernel.perf_event_paranoid below 1"))?;
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
            Some(place) if at != libc::MAP_FAILED => Ok(Self { fd, at: place, page }),
            _ => Err(SysError::last("mmap", "the ring of a performance event")),
        }
    }

    /// Lets it run, or stops it.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn run(&self, on: bool) -> Result<(), SysError> {
        let request = if on { ENABLE } else { DISABLE };
        // SAFETY: an ioctl without argument on a descriptor of ours.
        let done = unsafe { libc::ioctl(self.fd.as_raw_fd(), request as _, 0) };
        check(done, "ioctl", "PERF_EVENT_IOC_ENABLE").map(drop)
    }

    fn position(&self, place: usize) -> &AtomicU64 {
        // SAFETY: an aligned word of the live control page, which the kernel accesses atomically.
        unsafe { &*self.at.as_ptr().add(place).cast::<AtomicU64>() }
    }

    fn word(&self, at: u64) -> [u8; 8] {
        let offset = (at % (self.page as u64 * PAGES as u64)) & !7;
        // SAFETY: an aligned word of the data pages, whose size is a multiple of 8.
        let word = unsafe {
            self.at
                .as_ptr()
                .add(self.page + usize::try_from(offset).unwrap_or(0))
                .cast::<u64>()
                .read_volatile()
        };
        word.to_ne_bytes()
    }

    /// Hands over each record, the oldest first: its kind, its flags, and what is behind its header.
    pub fn read(&mut self, each: &mut dyn FnMut(u32, u16, &[u8])) {
        let mut bytes = Vec::new();
        let head = self.position(HEAD).load(Ordering::Acquire);
        let mut tail = self.position(TAIL).load(Ordering::Relaxed);
        while tail < head {
            // type: 32 bits, misc: 16, size: 16; in the machine's byte order.
            let [a, b, c, d, e, f, g, h] = self.word(tail);
            let size = u64::from(u16::from_ne_bytes([g, h]));
            // A size below its own header would never end.
            let next = tail.saturating_add(size.max(8));
            if next > head {
                break;
            }
            bytes.clear();
            let mut at = tail + 8;
            while at < next {
                bytes.extend(self.word(at));
                at += 8;
            }
            each(u32::from_ne_bytes([a, b, c, d]), u16::from_ne_bytes([e, f]), &bytes);
            tail = next;
            self.position(TAIL).store(tail, Ordering::Release);
        }
    }
}

impl Drop for CpuSamples {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `open` with this address and length.
        unsafe { libc::munmap(self.at.as_ptr().cast(), self.page * (PAGES + 1)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_is_sampled_while_this_test_runs_there() {
        const SAMPLE: u32 = 9;
        let mut all = match CpuSamples::open(0, Source::Clock, 500, 1) {
            Ok(samples) => samples,
            Err(e) => return tailbound_testing::skip("perf", e),
        };
        all.run(true).unwrap();
        let (mut n, begin) = (0, std::time::Instant::now());
        // A CPU is sampled whether it is idle or not.
        while n < 20 && begin.elapsed().as_secs() < 30 {
            std::thread::yield_now();
            all.read(&mut |kind, _, bytes| n += u32::from(kind == SAMPLE && bytes.len() == 8));
        }
        assert!(n >= 20, "{n} samples in 30 s");
    }
}
