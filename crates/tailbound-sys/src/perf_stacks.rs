// SPDX-License-Identifier: MIT OR Apache-2.0
//! The registers and the top of the user stack of another thread, each time it enters a system
//! call or faults on a page.
//!
//! Context: SETUP (`open`), COLD (`read`). Units: ns of CLOCK_MONOTONIC. The kernel copies the stack
//! when the event happens: that is time of the watched thread. Closing the descriptor ends it,
//! also where this process is killed.
//! Not here: what the words of the stack mean (`tailbound-trace`).
//! Source: perf_event_open(2); arch/{x86,arm64}/include/uapi/asm/perf_regs.h.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{SysError, check};
use crate::mapping::page_bytes;
use crate::perf::{
    Attributes, DISABLED, ENABLE, FD_CLOEXEC, HEAD, RECORD_LOST, RECORD_SAMPLE, SAMPLE_TIME, TAIL,
    TYPE_SOFTWARE, USE_CLOCKID,
};

const TYPE_TRACEPOINT: u32 = 2;
const PAGE_FAULTS: u64 = 2;
const SAMPLE_REGS_USER: u64 = 1 << 12;
const SAMPLE_STACK_USER: u64 = 1 << 13;
const CLOCK_MONOTONIC: i32 = 1;
/// Of the stack, from its top; a multiple of 8.
pub const STACK_BYTES: u32 = 8192;
/// Pages of the ring, a power of 2: about 500 samples, a tenth of a second of busy threads.
const PAGES: usize = 1024;

/// The kernel's numbers of the registers that are copied, ascending, and DWARF's numbers for them.
#[cfg(target_arch = "x86_64")]
const REGISTERS: &[(u32, u16)] =
    &[(1, 3), (6, 6), (7, 7), (8, 16), (20, 12), (21, 13), (22, 14), (23, 15)];
/// Callee-saved ones, frame pointer, link register, stack pointer; the program counter has no number
/// of DWARF's own there, and takes that of the return address's column.
#[cfg(target_arch = "aarch64")]
const REGISTERS: &[(u32, u16)] = &[
    (19, 19),
    (20, 20),
    (21, 21),
    (22, 22),
    (23, 23),
    (24, 24),
    (25, 25),
    (26, 26),
    (27, 27),
    (28, 28),
    (29, 29),
    (30, 30),
    (31, 31),
    (32, PROGRAM_COUNTER),
];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const REGISTERS: &[(u32, u16)] = &[];

/// The number that the program counter has here.
#[cfg(target_arch = "x86_64")]
pub const PROGRAM_COUNTER: u16 = 16;
/// The number that the program counter has here.
#[cfg(not(target_arch = "x86_64"))]
pub const PROGRAM_COUNTER: u16 = 32;

/// The number that the stack pointer has here.
pub const STACK_POINTER: u16 = if cfg!(target_arch = "x86_64") { 7 } else { 31 };

/// What makes a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The tracepoint of this number (`events/SYSTEM/NAME/id`).
    Tracepoint(u64),
    /// A page fault.
    PageFault,
}

/// One sample.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StackSample {
    /// When.
    pub t_ns: u64,
    /// Registers by DWARF's numbers.
    pub registers: Vec<(u16, u64)>,
    /// The stack from the stack pointer upwards, as far as it was copied.
    pub stack: Vec<u8>,
}

/// Samples of one thread and trigger.
#[derive(Debug)]
pub struct StackSamples {
    fd: OwnedFd,
    at: NonNull<u8>,
    page: usize,
    lost: u64,
}

// SAFETY: the mapping is owned, and read through `&mut` alone.
unsafe impl Send for StackSamples {}

impl StackSamples {
    /// Begins to sample thread `tid`.
    ///
    /// # Errors
    /// ENOSYS: not on this architecture; ESRCH: no such thread; EACCES, EPERM:
    /// kernel.perf_event_paranoid; ENOENT: no such tracepoint.
    pub fn open(tid: i32, trigger: Trigger) -> Result<Self, SysError> {
        if REGISTERS.is_empty() {
            return Err(SysError::code(
                "perf_event_open",
                "registers of this machine",
                libc::ENOSYS,
            ));
        }
        let (kind, config) = match trigger {
            Trigger::Tracepoint(id) => (TYPE_TRACEPOINT, id),
            Trigger::PageFault => (TYPE_SOFTWARE, PAGE_FAULTS),
        };
        let attributes = Attributes {
            kind,
            size: 112,
            config,
            period: 1,
            sample_type: SAMPLE_TIME | SAMPLE_REGS_USER | SAMPLE_STACK_USER,
            flags: DISABLED | USE_CLOCKID,
            clock: CLOCK_MONOTONIC,
            regs_user: REGISTERS.iter().fold(0, |mask, (bit, _)| mask | 1 << bit),
            stack_user: STACK_BYTES,
            ..Attributes::default()
        };
        // SAFETY: perf_event_open(2) reads `size` bytes of a live struct; the rest are integers.
        let raw = unsafe {
            libc::syscall(libc::SYS_perf_event_open, &raw const attributes, tid, -1, -1, FD_CLOEXEC)
        };
        let raw = check(raw, "perf_event_open", "user stacks")
            .map_err(|e| e.needs("root, CAP_PERFMON or kernel.perf_event_paranoid below 2"))?;
        // SAFETY: a fresh descriptor, ours alone.
        let fd = unsafe { OwnedFd::from_raw_fd(i32::try_from(raw).unwrap_or(-1)) };
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
        let samples = match NonNull::new(at.cast::<u8>()) {
            Some(place) if at != libc::MAP_FAILED => Self { fd, at: place, page, lost: 0 },
            _ => return Err(SysError::last("mmap", "the ring of user stacks")),
        };
        // SAFETY: an ioctl without argument on a descriptor of ours.
        let done = unsafe { libc::ioctl(samples.fd.as_raw_fd(), ENABLE as _, 0) };
        check(done, "ioctl", "PERF_EVENT_IOC_ENABLE")?;
        Ok(samples)
    }

    fn position(&self, place: usize) -> &AtomicU64 {
        // SAFETY: an aligned word of the live control page, which the kernel accesses atomically.
        unsafe { &*self.at.as_ptr().add(place).cast::<AtomicU64>() }
    }

    /// A copy of `n` bytes of the ring from `from` on.
    fn bytes(&self, from: u64, n: usize) -> Vec<u8> {
        let size = self.page * PAGES;
        let begin = usize::try_from(from % size as u64).unwrap_or(0);
        let n = n.min(size);
        let first = n.min(size - begin);
        let mut out = vec![0u8; n];
        // SAFETY: both parts lie within the data pages: begin + first <= size, n - first <= begin; the
        // kernel writes no byte between tail and head.
        unsafe {
            let data = self.at.as_ptr().add(self.page);
            std::ptr::copy_nonoverlapping(data.add(begin), out.as_mut_ptr(), first);
            std::ptr::copy_nonoverlapping(data, out.as_mut_ptr().add(first), n - first);
        }
        out
    }

    /// Hands over all samples that there are.
    pub fn read(&mut self, each: &mut dyn FnMut(StackSample)) {
        let head = self.position(HEAD).load(Ordering::Acquire);
        let mut tail = self.position(TAIL).load(Ordering::Relaxed);
        while tail != head {
            let header = self.bytes(tail, 8);
            let [a, b, c, d, _, _, e, f] = *header.first_chunk::<8>().unwrap_or(&[0; 8]);
            let kind = u32::from_ne_bytes([a, b, c, d]);
            // A size below its own header would never end.
            let size = u16::from_ne_bytes([e, f]).max(8);
            if kind == RECORD_SAMPLE {
                let body = self.bytes(tail.wrapping_add(8), usize::from(size) - 8);
                if let Some(sample) = parse(&body) {
                    each(sample);
                }
            } else if kind == RECORD_LOST {
                let body = self.bytes(tail.wrapping_add(16), 8);
                let lost = u64::from_ne_bytes(*body.first_chunk::<8>().unwrap_or(&[0; 8]));
                self.lost = self.lost.saturating_add(lost);
            }
            tail = tail.wrapping_add(u64::from(size));
            self.position(TAIL).store(tail, Ordering::Release);
        }
    }

    /// Samples that found no room.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

/// Time, ABI of the registers, registers, size of the stack, stack, how much of it is good.
fn parse(body: &[u8]) -> Option<StackSample> {
    let word = |at: usize| {
        let bytes = body.get(at..at.checked_add(8)?)?;
        bytes.first_chunk::<8>().map(|b| u64::from_ne_bytes(*b))
    };
    let t_ns = word(0)?;
    if word(8)? == 0 {
        // A thread of the kernel, or one that has no user registers now.
        return Some(StackSample { t_ns, ..StackSample::default() });
    }
    let mut at = 16;
    let mut registers = Vec::with_capacity(REGISTERS.len());
    for (_, number) in REGISTERS {
        registers.push((*number, word(at)?));
        at += 8;
    }
    let size = usize::try_from(word(at)?).ok()?;
    let dump = at + 8;
    let good = match size {
        0 => 0,
        _ => usize::try_from(word(dump.checked_add(size)?)?).ok()?.min(size),
    };
    Some(StackSample { t_ns, registers, stack: body.get(dump..dump + good)?.to_vec() })
}

impl Drop for StackSamples {
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
    fn a_page_fault_leaves_the_registers_and_the_stack() {
        // SAFETY: no arguments, no memory.
        let tid = unsafe { libc::gettid() };
        let mut samples = match StackSamples::open(tid, Trigger::PageFault) {
            Ok(samples) => samples,
            Err(e) => return tailbound_testing::skip("perf", e),
        };
        let begin = clock::now_ns(clock::CLOCK_MONOTONIC).cast_unsigned();
        let fresh = vec![1u8; 1 << 20];
        assert_eq!(fresh.iter().map(|b| u64::from(*b)).sum::<u64>(), 1 << 20);
        let end = clock::now_ns(clock::CLOCK_MONOTONIC).cast_unsigned();
        let mut seen = Vec::new();
        samples.read(&mut |s| seen.push(s));
        assert!(!seen.is_empty(), "a fresh megabyte has faults");
        let inside = seen.iter().filter(|s| (begin..=end).contains(&s.t_ns));
        for s in inside {
            assert_eq!(s.registers.len(), REGISTERS.len());
            assert!(!s.stack.is_empty() && s.stack.len() <= STACK_BYTES as usize);
        }
    }

    #[test]
    fn what_is_cut_off_is_no_sample() {
        assert_eq!(parse(&[0; 12]), None);
        let kernel = parse(&[0; 16]).expect("time and no registers");
        assert!(kernel.registers.is_empty() && kernel.stack.is_empty());
    }
}
