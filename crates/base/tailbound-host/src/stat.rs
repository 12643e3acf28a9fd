// SPDX-License-Identifier: MIT OR Apache-2.0
//! One line of `/proc/PID/stat` or `/proc/PID/task/TID/stat`.
//!
//! Units: as the kernel's. Fields bear the numbers of proc_pid_stat(5).

/// Kernel thread; include/linux/sched.h.
const PF_KTHREAD: u64 = 0x0020_0000;
/// User space may not change the affinity; include/linux/sched.h.
const PF_NO_SETAFFINITY: u64 = 0x0400_0000;

/// What the line says of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stat<'a> {
    /// Its number.
    pub(crate) tid: u32,
    /// Its name; it may hold blanks and parentheses.
    pub(crate) name: &'a str,
    rest: &'a str,
}

impl<'a> Stat<'a> {
    /// Parts the line; the name ends at the last parenthesis.
    pub(crate) fn parse(line: &'a str) -> Option<Self> {
        let (head, rest) = line.rsplit_once(')')?;
        let (tid, name) = head.split_once('(')?;
        Some(Self { tid: tid.trim().parse().ok()?, name, rest })
    }

    /// The field of that number, 3 (state) or higher.
    pub(crate) fn word(&self, number: usize) -> Option<&'a str> {
        self.rest.split_ascii_whitespace().nth(number.checked_sub(3)?)
    }

    /// The field of that number as a whole number.
    pub(crate) fn number(&self, number: usize) -> Option<u64> {
        self.word(number)?.parse().ok()
    }

    /// A thread of the kernel.
    pub(crate) fn is_kernel(&self) -> Option<bool> {
        Some(self.number(9)? & PF_KTHREAD != 0)
    }

    /// A thread whose CPUs user space cannot change.
    pub(crate) fn is_fixed(&self) -> Option<bool> {
        Some(self.number(9)? & PF_NO_SETAFFINITY != 0)
    }

    /// Policy number (0 SCHED_OTHER, 1 FIFO, 2 RR, 6 DEADLINE) and real-time priority.
    pub(crate) fn policy(&self) -> Option<(u64, u8)> {
        Some((self.number(41)?, u8::try_from(self.number(40)?).ok()?))
    }

    /// When it began, in ticks since boot: tells a reused number from the same thread.
    pub(crate) fn start_ticks(&self) -> Option<u64> {
        self.number(22)
    }

    /// The CPU it ran on last.
    pub(crate) fn last_cpu(&self) -> Option<u32> {
        u32::try_from(self.number(39)?).ok()
    }
}
