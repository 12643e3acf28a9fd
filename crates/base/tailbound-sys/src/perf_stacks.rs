// SPDX-License-Identifier: MIT OR Apache-2.0
//! The registers and the top of the user stack of another thread, each time it enters a system
//! call or faults on a page.
//!
//! Context: SETUP (`open`), COLD (`read`). Units: ns of CLOCK_MONOTONIC. The kernel copies the stack
//! when the event happens: that is time of the watched thread. Closing the descriptor ends it,
//! also where this process is killed.
//! Not here: what the words of the stack mean (`tailbound-trace`).
//! Source: perf_event_open(2); arch/{x86,arm64,riscv}/include/uapi/asm/perf_regs.h.

use crate::perf_ring::EventState;
use std::os::fd::OwnedFd;

use crate::error::SysError;
use crate::perf_ring::{
    self, Attributes, DISABLED, PerfRing, RECORD_LOST, RECORD_SAMPLE, SAMPLE_IDENTIFIER,
    SAMPLE_TIME, TYPE_SOFTWARE, USE_CLOCKID, Whose,
};

const TYPE_TRACEPOINT: u32 = 2;
const PAGE_FAULTS: u64 = 2;
const SAMPLE_REGS_USER: u64 = 1 << 12;
const SAMPLE_STACK_USER: u64 = 1 << 13;
const CLOCK_MONOTONIC: i32 = 1;
/// Of the stack, from its top; a multiple of 8.
pub const STACK_BYTES: u32 = 8192;

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
/// Return address, stack pointer, callee-saved ones (the first is the frame pointer).
#[cfg(target_arch = "riscv64")]
const REGISTERS: &[(u32, u16)] = &[
    (0, PROGRAM_COUNTER),
    (1, 1),
    (2, 2),
    (8, 8),
    (9, 9),
    (18, 18),
    (19, 19),
    (20, 20),
    (21, 21),
    (22, 22),
    (23, 23),
    (24, 24),
    (25, 25),
    (26, 26),
    (27, 27),
];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
const REGISTERS: &[(u32, u16)] = &[];

/// The number that the program counter has here.
pub const PROGRAM_COUNTER: u16 = if cfg!(target_arch = "x86_64") {
    16
} else if cfg!(target_arch = "riscv64") {
    64
} else {
    32
};

/// The number that the stack pointer has here.
pub const STACK_POINTER: u16 = if cfg!(target_arch = "x86_64") {
    7
} else if cfg!(target_arch = "riscv64") {
    2
} else {
    31
};

/// What makes a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The tracepoint of this number (`events/SYSTEM/NAME/id`).
    Tracepoint(u64),
    /// A page fault.
    PageFault,
}

/// How many samples a ring has room for, between two calls of [`StackSamples::read`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// About 500, in 4 MiB: a tenth of a second of a busy thread.
    Large,
    /// About 120, in 1 MiB.
    Small,
}

impl Room {
    /// Pages of 4 KiB, a power of 2.
    fn pages(self) -> usize {
        match self {
            Self::Large => 1024,
            Self::Small => 256,
        }
    }
}

/// One sample.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StackSample {
    /// When.
    pub t_ns: u64,
    /// A page fault made it, and no system call.
    pub fault: bool,
    /// Registers by DWARF's numbers.
    pub registers: Vec<(u16, u64)>,
    /// The stack from the stack pointer upwards, as far as it was copied.
    pub stack: Vec<u8>,
}

/// Samples of one thread, of all its triggers in one ring.
#[derive(Debug)]
pub struct StackSamples {
    ring: PerfRing,
    /// The triggers that have no ring of their own.
    _others: Vec<OwnedFd>,
    /// The number of the trigger that is page faults.
    faults: Option<u64>,
    lost: u64,
}

impl StackSamples {
    /// Begins to sample thread `tid` at each of these.
    ///
    /// # Errors
    /// ENOSYS: not on this architecture; ESRCH: no such thread; EACCES, EPERM:
    /// kernel.perf_event_paranoid; ENOENT: no such tracepoint.
    pub fn open(tid: i32, triggers: &[Trigger], room: Room) -> Result<Self, SysError> {
        if REGISTERS.is_empty() {
            return Err(SysError::code(
                "perf_event_open",
                "registers of this machine",
                libc::ENOSYS,
            ));
        }
        let needs = "root, CAP_PERFMON or kernel.perf_event_paranoid below 2";
        let (whose, what) = (Whose::Thread(tid), "user stacks");
        let Some((first, others)) = triggers.split_first() else {
            return Err(SysError::code("perf_event_open", "no trigger", libc::EINVAL));
        };
        let ring = PerfRing::open(attributes(*first), whose, room.pages(), what, needs)?;
        let others = others
            .iter()
            .map(|t| ring.beside(attributes(*t), whose, what, needs))
            .collect::<Result<Vec<OwnedFd>, SysError>>()?;
        let mut faults = None;
        for (trigger, fd) in triggers.iter().zip(std::iter::once(ring.fd()).chain(&others)) {
            if *trigger == Trigger::PageFault {
                faults = Some(perf_ring::number(fd)?);
            }
            perf_ring::run(fd, EventState::Running)?;
        }
        Ok(Self { ring, _others: others, faults, lost: 0 })
    }

    /// Hands over all samples that there are.
    pub fn read(&mut self, each: &mut dyn FnMut(StackSample)) {
        let (lost, faults) = (&mut self.lost, self.faults);
        self.ring.read(&mut |record, body| match record.kind {
            RECORD_SAMPLE => parse(body, faults).into_iter().for_each(&mut *each),
            RECORD_LOST => {
                // The event's number, and how many.
                let count = body.get(8..16).and_then(|b| b.first_chunk::<8>());
                *lost = lost.saturating_add(count.map_or(0, |b| u64::from_ne_bytes(*b)));
            }
            _ => {}
        });
    }

    /// Samples that found no room.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

fn attributes(trigger: Trigger) -> Attributes {
    let (kind, config) = match trigger {
        Trigger::Tracepoint(id) => (TYPE_TRACEPOINT, id),
        Trigger::PageFault => (TYPE_SOFTWARE, PAGE_FAULTS),
    };
    Attributes {
        kind,
        config,
        period: 1,
        sample_type: SAMPLE_IDENTIFIER | SAMPLE_TIME | SAMPLE_REGS_USER | SAMPLE_STACK_USER,
        flags: DISABLED | USE_CLOCKID,
        clock: CLOCK_MONOTONIC,
        regs_user: REGISTERS.iter().fold(0, |mask, (bit, _)| mask | 1 << bit),
        stack_user: STACK_BYTES,
        ..Attributes::default()
    }
}

/// The event's number, time, ABI of the registers, registers, size of the stack, stack, how much of it is good.
fn parse(body: &[u8], faults: Option<u64>) -> Option<StackSample> {
    let word = |at: usize| {
        let bytes = body.get(at..at.checked_add(8)?)?;
        bytes.first_chunk::<8>().map(|b| u64::from_ne_bytes(*b))
    };
    let (fault, t_ns) = (Some(word(0)?) == faults, word(8)?);
    if word(16)? == 0 {
        // A thread of the kernel, or one that has no user registers now.
        return Some(StackSample { t_ns, fault, ..StackSample::default() });
    }
    let mut at = 24;
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
    Some(StackSample { t_ns, fault, registers, stack: body.get(dump..dump + good)?.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    #[test]
    fn a_page_fault_leaves_the_registers_and_the_stack() {
        // SAFETY: no arguments, no memory.
        let tid = unsafe { libc::gettid() };
        let mut samples = match StackSamples::open(tid, &[Trigger::PageFault], Room::Small) {
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
            assert!(s.fault);
            assert_eq!(s.registers.len(), REGISTERS.len());
            assert!(!s.stack.is_empty() && s.stack.len() <= STACK_BYTES as usize);
        }
    }

    #[test]
    fn what_is_cut_off_is_no_sample() {
        assert_eq!(parse(&[0; 20], None), None);
        let kernel = parse(&[0; 24], Some(7)).expect("time and no registers");
        assert!(!kernel.fault && parse(&[0; 24], Some(0)).is_some_and(|s| s.fault));
        assert!(kernel.registers.is_empty() && kernel.stack.is_empty());
    }
}
