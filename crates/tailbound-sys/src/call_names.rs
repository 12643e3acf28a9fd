// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of system calls by this architecture's numbers: those in which a thread can be for long.
//!
//! Context: COLD. Source: the numbers of libc; syscalls(2).

macro_rules! names {
    ($number:expr; $($name:ident = $call:ident),* $(,)?) => {
        match $number {
            $(n if n == i64::from(libc::$call) => stringify!($name).to_owned(),)*
            other => format!("number {other}"),
        }
    };
}

/// `read`, or `number 1234` for one that is not in the list.
#[must_use]
pub fn of(number: i64) -> String {
    names!(number;
        read = SYS_read, write = SYS_write, readv = SYS_readv, writev = SYS_writev, pread64 = SYS_pread64,
        pwrite64 = SYS_pwrite64, openat = SYS_openat, close = SYS_close, ioctl = SYS_ioctl, fsync = SYS_fsync,
        fdatasync = SYS_fdatasync, sync = SYS_sync, mmap = SYS_mmap, munmap = SYS_munmap, mprotect = SYS_mprotect,
        mremap = SYS_mremap, madvise = SYS_madvise, mlock = SYS_mlock, mlockall = SYS_mlockall, brk = SYS_brk,
        clone = SYS_clone, clone3 = SYS_clone3, execve = SYS_execve, exit = SYS_exit, exit_group = SYS_exit_group,
        wait4 = SYS_wait4, waitid = SYS_waitid, kill = SYS_kill, tgkill = SYS_tgkill, futex = SYS_futex,
        nanosleep = SYS_nanosleep, clock_nanosleep = SYS_clock_nanosleep, sched_yield = SYS_sched_yield,
        sched_setaffinity = SYS_sched_setaffinity, sched_setscheduler = SYS_sched_setscheduler,
        sched_setattr = SYS_sched_setattr, ppoll = SYS_ppoll, pselect6 = SYS_pselect6,
        epoll_pwait = SYS_epoll_pwait, epoll_ctl = SYS_epoll_ctl, socket = SYS_socket, connect = SYS_connect,
        accept4 = SYS_accept4, sendto = SYS_sendto, recvfrom = SYS_recvfrom, sendmsg = SYS_sendmsg,
        recvmsg = SYS_recvmsg, sendmmsg = SYS_sendmmsg, recvmmsg = SYS_recvmmsg, splice = SYS_splice,
        membarrier = SYS_membarrier, setns = SYS_setns, unshare = SYS_unshare, mount = SYS_mount,
        umount2 = SYS_umount2, getdents64 = SYS_getdents64, unlinkat = SYS_unlinkat, renameat2 = SYS_renameat2,
        mkdirat = SYS_mkdirat, statx = SYS_statx, fallocate = SYS_fallocate, ftruncate = SYS_ftruncate,
        perf_event_open = SYS_perf_event_open, bpf = SYS_bpf, seccomp = SYS_seccomp, prctl = SYS_prctl,
        init_module = SYS_init_module, finit_module = SYS_finit_module, delete_module = SYS_delete_module,
        io_uring_enter = SYS_io_uring_enter, process_vm_readv = SYS_process_vm_readv,
        rt_sigtimedwait = SYS_rt_sigtimedwait, mq_timedsend = SYS_mq_timedsend,
        mq_timedreceive = SYS_mq_timedreceive, semtimedop = SYS_semtimedop, timerfd_settime = SYS_timerfd_settime,
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_have_names() {
        assert_eq!(super::of(libc::SYS_futex), "futex");
        assert_eq!(super::of(99_999), "number 99999");
    }
}
