// SPDX-License-Identifier: MIT OR Apache-2.0
//! System calls by their numbers: those that the rules know by name, of three architectures.
//!
//! Numbers never change; a call that is not here is named by its number.
//! Source: arch/x86/entry/syscalls/syscall_64.tbl, scripts/syscall.tbl (64-bit ARM),
//! arch/arm/tools/syscall.tbl.

/// Whose numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallTable {
    /// 64-bit x86.
    X86_64,
    /// 64-bit ARM, and others with the generic table.
    Arm64,
    /// 32-bit ARM, EABI.
    Arm,
}

/// Name; number on x86-64, 64-bit ARM, 32-bit ARM (-1: not there).
const CALLS: &[(&str, [i16; 3])] = &[
    ("read", [0, 63, 3]),
    ("write", [1, 64, 4]),
    ("open", [2, -1, 5]),
    ("close", [3, 57, 6]),
    ("poll", [7, -1, 168]),
    ("mmap", [9, 222, 192]),
    ("mprotect", [10, 226, 125]),
    ("munmap", [11, 215, 91]),
    ("brk", [12, 214, 45]),
    ("ioctl", [16, 29, 54]),
    ("pread64", [17, 67, 180]),
    ("pwrite64", [18, 68, 181]),
    ("readv", [19, 65, 145]),
    ("writev", [20, 66, 146]),
    ("select", [23, -1, 142]),
    ("sched_yield", [24, 124, 158]),
    ("mremap", [25, 216, 163]),
    ("msync", [26, 227, 144]),
    ("madvise", [28, 233, 220]),
    ("pause", [34, -1, 29]),
    ("nanosleep", [35, 101, 162]),
    ("sendfile", [40, 71, 239]),
    ("connect", [42, 203, 283]),
    ("accept", [43, 202, 285]),
    ("sendto", [44, 206, 290]),
    ("recvfrom", [45, 207, 292]),
    ("sendmsg", [46, 211, 296]),
    ("recvmsg", [47, 212, 297]),
    ("clone", [56, 220, 120]),
    ("fork", [57, -1, 2]),
    ("vfork", [58, -1, 190]),
    ("execve", [59, 221, 11]),
    ("exit", [60, 93, 1]),
    ("wait4", [61, 260, 114]),
    ("semop", [65, 193, 298]),
    ("msgsnd", [69, 189, 301]),
    ("msgrcv", [70, 188, 302]),
    ("flock", [73, 32, 143]),
    ("fsync", [74, 82, 118]),
    ("fdatasync", [75, 83, 148]),
    ("ftruncate", [77, 46, 93]),
    ("rename", [82, -1, 38]),
    ("unlink", [87, -1, 10]),
    ("rt_sigtimedwait", [128, 137, 177]),
    ("rt_sigsuspend", [130, 133, 179]),
    ("sched_setparam", [142, 118, 154]),
    ("sched_setscheduler", [144, 119, 156]),
    ("mlock", [149, 228, 150]),
    ("mlockall", [151, 230, 152]),
    ("sync", [162, 81, 36]),
    ("futex", [202, 98, 240]),
    ("restart_syscall", [219, 128, 0]),
    ("semtimedop", [220, 192, 312]),
    ("clock_nanosleep", [230, 115, 265]),
    ("exit_group", [231, 94, 248]),
    ("epoll_wait", [232, -1, 252]),
    ("mq_timedsend", [242, 182, 276]),
    ("mq_timedreceive", [243, 183, 277]),
    ("waitid", [247, 95, 280]),
    ("openat", [257, 56, 322]),
    ("pselect6", [270, 72, 335]),
    ("ppoll", [271, 73, 336]),
    ("epoll_pwait", [281, 22, 346]),
    ("fallocate", [285, 47, 352]),
    ("accept4", [288, 242, 366]),
    ("preadv", [295, 69, 361]),
    ("pwritev", [296, 70, 362]),
    ("recvmmsg", [299, 243, 365]),
    ("sendmmsg", [307, 269, 374]),
    ("sched_setattr", [314, 274, 380]),
    ("io_uring_enter", [426, 426, 426]),
    ("clone3", [435, 435, 435]),
    ("epoll_pwait2", [441, 441, 441]),
    ("futex_waitv", [449, 449, 449]),
    ("futex_wake", [454, 454, 454]),
    ("futex_wait", [455, 455, 455]),
    // The variants of 32-bit machines with 64-bit times bear the names of what they replace.
    ("clock_nanosleep", [-1, -1, 407]),
    ("pselect6", [-1, -1, 413]),
    ("ppoll", [-1, -1, 414]),
    ("recvmmsg", [-1, -1, 417]),
    ("mq_timedsend", [-1, -1, 418]),
    ("mq_timedreceive", [-1, -1, 419]),
    ("semtimedop", [-1, -1, 420]),
    ("rt_sigtimedwait", [-1, -1, 421]),
    ("futex", [-1, -1, 422]),
];

impl CallTable {
    /// By the name that uname(2) and Rust give a machine.
    #[must_use]
    pub fn of(machine: &str) -> Option<Self> {
        match machine {
            "x86_64" => Some(Self::X86_64),
            "aarch64" | "riscv64" => Some(Self::Arm64),
            "arm" | "armv7l" | "armv6l" => Some(Self::Arm),
            _ => None,
        }
    }

    fn column(self, numbers: &[i16; 3]) -> i64 {
        let [x86, arm64, arm] = *numbers;
        i64::from(match self {
            Self::X86_64 => x86,
            Self::Arm64 => arm64,
            Self::Arm => arm,
        })
    }

    /// The call's name.
    #[must_use]
    pub fn name(self, id: i64) -> Option<&'static str> {
        let found = CALLS.iter().find(|(_, numbers)| id >= 0 && self.column(numbers) == id);
        found.map(|(name, _)| *name)
    }

    /// Numbers of the calls of this name.
    #[must_use]
    pub fn numbers(self, name: &str) -> Vec<i64> {
        let of = |(n, numbers): &(&str, [i16; 3])| (*n == name).then(|| self.column(numbers));
        CALLS.iter().filter_map(of).filter(|id| *id >= 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_has_two_names() {
        for table in [CallTable::X86_64, CallTable::Arm64, CallTable::Arm] {
            let mut ids: Vec<i64> =
                CALLS.iter().map(|(_, n)| table.column(n)).filter(|id| *id >= 0).collect();
            let all = ids.len();
            ids.sort_unstable();
            ids.dedup();
            assert_eq!(ids.len(), all, "{table:?}");
        }
    }

    #[test]
    fn calls_are_found_both_ways() {
        assert_eq!(CallTable::X86_64.name(230), Some("clock_nanosleep"));
        assert_eq!(CallTable::Arm.numbers("futex"), [240, 422]);
        assert!(CallTable::Arm64.numbers("epoll_wait").is_empty());
        assert_eq!(CallTable::X86_64.name(-1), None);
        assert_eq!(CallTable::of("s390x"), None);
    }
}
