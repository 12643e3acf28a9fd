// SPDX-License-Identifier: MIT OR Apache-2.0
//! A list of the system calls a hot thread may make: anything else kills the process.
//!
//! Context: SETUP. For `--paranoid` and the tests: proof that the loop calls nothing
//! but its sleep and its clock. A filter cannot be lifted, so the calls that end a thread
//! are on the list too. Source: seccomp(2), Documentation/userspace-api/seccomp_filter.rst.

use crate::error::{SysError, check};

/// In the loop.
const LOOP: [libc::c_long; 11] = [
    libc::SYS_clock_nanosleep, // sleep
    libc::SYS_nanosleep,
    libc::SYS_ppoll,
    libc::SYS_pselect6, // select, of a newer C library
    libc::SYS_epoll_pwait2,
    libc::SYS_setitimer,       // armed for each sleep, and stopped after the last
    libc::SYS_sched_yield,     // SCHED_DEADLINE: to the next replenishment
    libc::SYS_clock_gettime,   // where the clock is not in the vDSO
    libc::SYS_read,            // timerfd
    libc::SYS_rt_sigtimedwait, // POSIX timer
    libc::SYS_restart_syscall, // after a stop signal
];
/// 64-bit time on 32-bit machines.
#[cfg(target_pointer_width = "32")]
const LOOP_TIME64: [libc::c_long; 6] = [403, 407, 413, 414, 421, 422];
#[cfg(not(target_pointer_width = "32"))]
const LOOP_TIME64: [libc::c_long; 0] = [];
/// select(2) of an older C library, where the machine has it at all.
#[cfg(target_arch = "x86_64")]
const LOOP_SELECT: [libc::c_long; 1] = [libc::SYS_select];
#[cfg(target_arch = "arm")]
const LOOP_SELECT: [libc::c_long; 1] = [libc::SYS__newselect];
#[cfg(not(any(target_arch = "x86_64", target_arch = "arm")))]
const LOOP_SELECT: [libc::c_long; 0] = [];
/// After the loop, until the thread is gone.
const END: [libc::c_long; 15] = [
    libc::SYS_fcntl, // debug builds look at a descriptor before they close it
    libc::SYS_getrusage,
    libc::SYS_futex,          // hand over the result
    libc::SYS_timer_delete,   // drop the port
    libc::SYS_close,          // drop the port
    libc::SYS_rt_sigprocmask, // pthread exit
    libc::SYS_rt_sigreturn,
    libc::SYS_madvise,     // pthread exit
    libc::SYS_munmap,      // pthread exit
    libc::SYS_mprotect,    // allocator
    libc::SYS_brk,         // allocator
    libc::SYS_sigaltstack, // std's stack guard
    libc::SYS_set_robust_list,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

pub(crate) const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS; offset 0 of seccomp_data is the number
pub(crate) const JEQ: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
pub(crate) const RET: u16 = 0x06; // BPF_RET | BPF_K

/// Confines the *calling thread* to the list.
///
/// # Errors
/// EINVAL where the kernel has no seccomp filters.
pub fn confine() -> Result<(), SysError> {
    let allowed: Vec<u32> = LOOP
        .iter()
        .chain(&LOOP_TIME64)
        .chain(&LOOP_SELECT)
        .chain(&END)
        .filter_map(|n| u32::try_from(*n).ok())
        .collect();
    let op = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut program = vec![op(LOAD, 0, 0, 0)];
    for number in &allowed {
        // Equal: fall to the next instruction, which allows; else step over it.
        program.push(op(JEQ, 0, 1, *number));
        program.push(op(RET, 0, 0, libc::SECCOMP_RET_ALLOW));
    }
    program.push(op(RET, 0, 0, libc::SECCOMP_RET_KILL_PROCESS));
    install(program)
}

/// Puts `program` before every system call of the *calling thread* and of all it starts.
///
/// # Errors
/// EINVAL where the kernel has no seccomp filters.
pub(crate) fn install(mut program: Vec<libc::sock_filter>) -> Result<(), SysError> {
    let filter = libc::sock_fprog {
        len: u16::try_from(program.len()).unwrap_or(u16::MAX),
        filter: program.as_mut_ptr(),
    };
    // SAFETY: integer arguments only.
    let no_new = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    check(no_new, "prctl", "PR_SET_NO_NEW_PRIVS")?;
    // SAFETY: seccomp(2) reads a live program of `len` instructions; flags 0 confine this thread only.
    let result = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const filter)
    };
    check(result, "seccomp", "").map(drop)
}
