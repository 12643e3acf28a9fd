// SPDX-License-Identifier: MIT OR Apache-2.0
//! A filter that ends a program which tries to change anything: proof that a command only looks.
//!
//! Context: SETUP, COLD. For tests: the thread that confines itself starts the program, which inherits the
//! filter. Not here: that the program asks for nothing by what it only reads; mounts that are read-only.
//! Source: seccomp(2), Documentation/userspace-api/seccomp_filter.rst, open(2).

use crate::error::SysError;
use crate::seccomp::{JEQ, LOAD, RET};

/// `BPF_JMP | BPF_JSET | BPF_K`
const JSET: u16 = 0x45;
/// Offset of the low half of an argument in `struct seccomp_data`.
const fn argument(n: u32) -> u32 {
    16 + 8 * n + if cfg!(target_endian = "little") { 0 } else { 4 }
}

/// What of the flags of open(2) may change something; with `O_RDONLY` alone nothing is made.
const WRITING: libc::c_int =
    libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC | libc::O_APPEND;

/// Names, contents and attributes of files; mounts; scheduling, priorities, clocks and limits of anybody;
/// signals to anybody; modules, programs of the kernel, keys. openat2(2) too: its flags lie in memory, where no
/// filter looks.
const CHANGING: &[libc::c_long] = &[
    libc::SYS_openat2,
    libc::SYS_truncate,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_renameat2,
    libc::SYS_unlinkat,
    libc::SYS_mkdirat,
    libc::SYS_mknodat,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_pivot_root,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setparam,
    libc::SYS_setpriority,
    libc::SYS_ioprio_set,
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_tgkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_pidfd_send_signal,
    libc::SYS_ptrace,
    libc::SYS_process_vm_writev,
    libc::SYS_clock_settime,
    libc::SYS_settimeofday,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_add_key,
    libc::SYS_reboot,
];
/// Their older forms, where the machine has them at all.
#[cfg(any(target_arch = "x86_64", target_arch = "arm"))]
const OLDER: &[libc::c_long] = &[
    libc::SYS_creat,
    libc::SYS_rename,
    libc::SYS_unlink,
    libc::SYS_mkdir,
    libc::SYS_rmdir,
    libc::SYS_mknod,
    libc::SYS_link,
    libc::SYS_symlink,
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utimes,
    libc::SYS_renameat,
];
#[cfg(target_arch = "aarch64")]
const OLDER: &[libc::c_long] = &[libc::SYS_renameat];
#[cfg(not(any(target_arch = "x86_64", target_arch = "arm", target_arch = "aarch64")))]
const OLDER: &[libc::c_long] = &[];

/// Calls that open, with the place of their flags.
#[cfg(any(target_arch = "x86_64", target_arch = "arm"))]
const OPENING: &[(libc::c_long, u32)] = &[(libc::SYS_openat, 2), (libc::SYS_open, 1)];
#[cfg(not(any(target_arch = "x86_64", target_arch = "arm")))]
const OPENING: &[(libc::c_long, u32)] = &[(libc::SYS_openat, 2)];

/// Confines the *calling thread* and all it starts: who changes anything is killed with SIGSYS. Descriptors that
/// are open stay as they are: standard output is still written to.
///
/// # Errors
/// EINVAL where the kernel has no seccomp filters.
pub fn confine() -> Result<(), SysError> {
    crate::seccomp::install(filter())
}

fn filter() -> Vec<libc::sock_filter> {
    let op = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let number = |n: libc::c_long| u32::try_from(n).unwrap_or(u32::MAX);
    let mut program = vec![op(LOAD, 0, 0, 0)];
    for n in CHANGING.iter().chain(OLDER) {
        // Equal: fall to the next instruction, which kills; else step over it.
        program.push(op(JEQ, 0, 1, number(*n)));
        program.push(op(RET, 0, 0, libc::SECCOMP_RET_KILL_PROCESS));
    }
    for (n, flags) in OPENING {
        program.extend([
            op(JEQ, 0, 4, number(*n)),
            op(LOAD, 0, 0, argument(*flags)),
            op(JSET, 0, 1, WRITING.cast_unsigned()),
            op(RET, 0, 0, libc::SECCOMP_RET_KILL_PROCESS),
            op(RET, 0, 0, libc::SECCOMP_RET_ALLOW),
        ]);
    }
    program.push(op(RET, 0, 0, libc::SECCOMP_RET_ALLOW));
    program
}
