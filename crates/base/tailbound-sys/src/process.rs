// SPDX-License-Identifier: MIT OR Apache-2.0
//! Children of a load worker: forked tasks, their ends, and that none is left behind.
//!
//! Context: SETUP, COLD. Only single-threaded processes fork here.
//! Not here: starting other programs (`spawn`), ending a run on Ctrl-C (`signal`).
//! Source: fork(2), wait(2), prctl(2) PR_SET_PDEATHSIG and PR_SET_CHILD_SUBREAPER,
//! signalfd(2), proc_pid_stat(5).

use std::fmt;
use std::fs;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitStatus;

use crate::error::{SysError, check};

/// SIGKILL.
pub const SIGKILL: i32 = libc::SIGKILL;
/// SIGTERM.
pub const SIGTERM: i32 = libc::SIGTERM;

/// A process number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pid(pub i32);

impl fmt::Display for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Sends `signal` to one process.
///
/// # Errors
/// ESRCH when it is gone, EPERM when it is another user's.
pub fn kill(pid: Pid, signal: i32) -> Result<(), SysError> {
    if pid.0 <= 1 {
        return Err(SysError::code("kill", format!("process {pid}"), libc::EINVAL));
    }
    // SAFETY: kill(2) on integers; the number is that of one process, never a group.
    check(unsafe { libc::kill(pid.0, signal) }, "kill", &format!("process {pid}")).map(drop)
}

/// The calling process.
#[must_use]
pub fn own_pid() -> Pid {
    Pid(std::process::id().cast_signed())
}

/// Names the calling thread, for ps(1), top(1) and traces: the first 15 bytes; PR_SET_NAME of prctl(2).
pub fn set_name(name: &str) {
    let mut bytes = [0u8; 16];
    bytes.iter_mut().zip(name.bytes().take(15)).for_each(|(slot, b)| *slot = b);
    // SAFETY: reads at most 16 bytes of a live array that ends with 0. It cannot fail.
    let _ = unsafe { libc::prctl(libc::PR_SET_NAME, bytes.as_ptr()) };
}

/// Does this process act as root (effective user 0)?
#[must_use]
pub fn is_root() -> bool {
    // SAFETY: no arguments, cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// Collects `pid` if it has ended; `None` while it lives.
///
/// # Errors
/// ECHILD when it is not a child of the caller.
pub fn try_wait(pid: Pid) -> Result<Option<ExitStatus>, SysError> {
    Ok(wait_one(pid.0, libc::WNOHANG)?.map(|(_, status)| status))
}

/// Waits until `pid`, a child of the caller, has ended, and collects it.
pub fn wait(pid: Pid) {
    drop(wait_one(pid.0, 0));
}

/// Collects any child that has ended.
#[must_use]
pub fn reap_any() -> Option<(Pid, ExitStatus)> {
    wait_one(-1, libc::WNOHANG).ok().flatten()
}

fn wait_one(pid: i32, flags: i32) -> Result<Option<(Pid, ExitStatus)>, SysError> {
    let mut status = 0;
    // SAFETY: waitpid(2) writes one live int.
    let got = unsafe { libc::waitpid(pid, &raw mut status, flags) };
    check(got, "waitpid", "")?;
    Ok((got > 0).then(|| (Pid(got), ExitStatus::from_raw(status))))
}

/// Processor time of a process that has ended and of all its descendants that were waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChildTimes {
    /// In user mode, ns.
    pub user_ns: i64,
    /// In the kernel, ns.
    pub sys_ns: i64,
}

/// Whether a child that lives is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildWait {
    /// Until it ends.
    UntilEnd,
    /// Not at all.
    Never,
}

/// Collects `pid`, a child of the caller, once it has ended, with what it cost; `None` while
/// it lives and is not waited for.
///
/// # Errors
/// ECHILD when it is not a child of the caller.
pub fn wait_times(pid: Pid, wait: ChildWait) -> Result<Option<(ExitStatus, ChildTimes)>, SysError> {
    /// Their types differ from machine to machine.
    fn wide(n: impl Into<i64>) -> i64 {
        n.into()
    }
    let mut status = 0;
    // SAFETY: all-zero bytes are a valid rusage.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    let flags = match wait {
        ChildWait::UntilEnd => 0,
        ChildWait::Never => libc::WNOHANG,
    };
    // SAFETY: wait4(2) writes one live int and one live rusage.
    let got = unsafe { libc::wait4(pid.0, &raw mut status, flags, &raw mut usage) };
    check(got, "wait4", "")?;
    let ns = |t: libc::timeval| wide(t.tv_sec) * 1_000_000_000 + wide(t.tv_usec) * 1000;
    let times = ChildTimes { user_ns: ns(usage.ru_utime), sys_ns: ns(usage.ru_stime) };
    Ok((got > 0).then(|| (ExitStatus::from_raw(status), times)))
}

/// How a process ended, for people: `exit status 3`, `signal 9`.
#[must_use]
pub fn ended(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => status.to_string(),
    }
}

/// Forks; the child runs `task` and ends with the status it returns. It dies with its
/// parent, blocks no signal, and never returns into the caller.
///
/// # Errors
/// EAGAIN at the limit of processes (RLIMIT_NPROC, the cgroup's pids.max), ENOMEM; EBUSY
/// when the calling process has several threads: a fork would take their locks along.
pub fn fork_task(task: impl FnOnce() -> u8) -> Result<Pid, SysError> {
    let threads = fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    if threads != 1 {
        return Err(SysError::code("fork", format!("{threads} threads"), libc::EBUSY));
    }
    // SAFETY: getpid(2) always succeeds.
    let parent = unsafe { libc::getpid() };
    // SAFETY: the process has one thread, so the child is a whole copy of it.
    let pid = unsafe { libc::fork() };
    check(pid, "fork", "")?;
    if pid > 0 {
        return Ok(Pid(pid));
    }
    // SAFETY: integers and a live, empty signal set; getppid tells whether the parent died
    // before the death signal was asked for.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong, 0, 0, 0);
        if libc::getppid() != parent {
            libc::_exit(0);
        }
        let none: libc::sigset_t = std::mem::zeroed();
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
    let status = catch_unwind(AssertUnwindSafe(task)).unwrap_or(101);
    // SAFETY: ends the child without the parent's destructors and exit handlers.
    unsafe { libc::_exit(status.into()) }
}

/// Makes orphaned descendants children of the caller instead of init.
///
/// # Errors
/// EINVAL before Linux 3.4.
pub fn become_subreaper() -> Result<(), SysError> {
    // SAFETY: prctl(2) on integers.
    let done = unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
    check(done, "prctl", "PR_SET_CHILD_SUBREAPER").map(drop)
}

/// Sets the nice value of the calling thread.
///
/// # Errors
/// EACCES when lowering it without CAP_SYS_NICE or RLIMIT_NICE.
pub fn set_nice(nice: i32) -> Result<(), SysError> {
    // SAFETY: setpriority(2) on integers.
    check(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) }, "setpriority", "").map(drop)
}

/// Lets this process have `needed` descriptors open: raises the soft limit, and the hard one
/// where that is permitted (CAP_SYS_RESOURCE, up to fs.nr_open).
///
/// # Errors
/// EPERM, with the hard limit in it.
pub fn allow_open_files(needed: u64) -> Result<(), SysError> {
    let (soft, hard) = crate::limits::get(libc::RLIMIT_NOFILE)?;
    if soft >= needed {
        return Ok(());
    }
    crate::limits::set(libc::RLIMIT_NOFILE, needed, hard.max(needed)).map_err(|e| {
        SysError::code("prlimit", format!("RLIMIT_NOFILE, hard limit {hard}"), e.errno)
            .needs("CAP_SYS_RESOURCE")
    })
}

/// Lets this process have as many descriptors open as its hard limit says; that limit.
///
/// # Errors
/// Where the kernel does not tell.
pub fn raise_open_files() -> Result<u64, SysError> {
    let (_, hard) = crate::limits::get(libc::RLIMIT_NOFILE)?;
    crate::limits::set(libc::RLIMIT_NOFILE, hard, hard)?;
    Ok(hard)
}

/// Gives this process, alone in a new PID namespace, a /proc that shows that namespace, in
/// a mount namespace of its own; mounts made later by it or its children are gone with them.
///
/// # Errors
/// EPERM without CAP_SYS_ADMIN, or where a container masks parts of /proc.
pub fn own_proc() -> Result<(), SysError> {
    crate::private::own_mounts()?;
    // SAFETY: integers and NUL-terminated strings; the null pointer is an unused argument.
    unsafe {
        let (proc, at) = (c"proc".as_ptr(), c"/proc".as_ptr());
        let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
        check(libc::mount(proc, at, proc, flags, std::ptr::null()), "mount", "/proc").map(drop)
    }
}

/// Kills every descendant of the caller and collects them; how many are still there when
/// nothing changes any more (0 unless they are other users' or stuck in the kernel).
/// Needs [`become_subreaper`] earlier, or those whose parent ended are not seen.
#[must_use]
pub fn kill_descendants() -> usize {
    let mut left = usize::MAX;
    // Each round stops what was there; a process that forks on meanwhile is met in the next.
    for _ in 0..200 {
        while reap_any().is_some() {}
        let alive = descendants(own_pid());
        left = alive.len();
        if left == 0 {
            break;
        }
        for pid in alive {
            // Gone already is what was wanted; another user's stays and is counted.
            let _gone = kill(pid, libc::SIGKILL);
        }
        // SAFETY: poll(2) without descriptors waits.
        unsafe { libc::poll(std::ptr::null_mut(), 0, 5) };
    }
    left
}

/// All living descendants of `root`, from /proc.
#[must_use]
pub fn descendants(root: Pid) -> Vec<Pid> {
    let mut parents: Vec<(Pid, Pid)> = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else { continue };
        if let Some((parent, state)) = parent_and_state(Pid(pid))
            && state != 'Z'
        {
            parents.push((Pid(pid), parent));
        }
    }
    let mut found = vec![root];
    let mut at = 0;
    while let Some(&parent) = found.get(at) {
        found.extend(parents.iter().filter(|p| p.1 == parent).map(|p| p.0));
        at += 1;
    }
    found.remove(0);
    found
}

/// Kills what is left of the session a dead child led: for when it could not clean up
/// itself. Processes that began a session of their own are not found.
pub fn kill_session(leader: Pid) {
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else { continue };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let session = stat.rsplit_once(')').and_then(|s| s.1.split_whitespace().nth(3));
        if session.and_then(|s| s.parse().ok()) == Some(leader.0) {
            // Gone already is what was wanted.
            let _gone = kill(Pid(pid), libc::SIGKILL);
        }
    }
}

fn parent_and_state(pid: Pid) -> Option<(Pid, char)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold spaces and parentheses: count from the last one.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((Pid(fields.next()?.parse().ok()?), state))
}

/// A descriptor the parent left at number `raw`, as one of our own (a duplicate, closed
/// on exec).
///
/// # Errors
/// EBADF when there is none.
pub fn inherited(raw: i32) -> Result<OwnedFd, SysError> {
    // SAFETY: fcntl(2) on a number; it fails if nothing is open there.
    let own = unsafe { libc::fcntl(raw, libc::F_DUPFD_CLOEXEC, 10) };
    check(own, "fcntl", &format!("descriptor {raw}"))?;
    // SAFETY: `own` is a fresh descriptor, ours alone.
    Ok(unsafe { OwnedFd::from_raw_fd(own) })
}

/// Ended children, SIGTERM, SIGINT and SIGHUP as a readable descriptor.
#[derive(Debug)]
pub struct ChildSignals(OwnedFd);

impl ChildSignals {
    /// Blocks the signals in the calling thread, and in those it starts later, and opens a descriptor for them. A thread that was there
    /// before and does not block them takes them away (signal(7)).
    ///
    /// # Errors
    /// When the kernel has no signalfd.
    pub fn open() -> Result<Self, SysError> {
        // SAFETY: all-zero bytes are a valid sigset_t; the calls read and write it alone;
        // the new descriptor is ours alone.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            for signal in [libc::SIGCHLD, libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
                libc::sigaddset(&raw mut set, signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            let raw = libc::signalfd(-1, &raw const set, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC);
            check(raw, "signalfd", "")?;
            Ok(Self(OwnedFd::from_raw_fd(raw)))
        }
    }

    /// Takes what has arrived; the number of a signal that asks for the end, if there is one.
    #[must_use]
    pub fn take(&self) -> Option<i32> {
        let mut ending = None;
        loop {
            // SAFETY: all-zero bytes are a valid signalfd_siginfo, read(2) fills at most it.
            let (got, info) = unsafe {
                let mut info: libc::signalfd_siginfo = std::mem::zeroed();
                let size = size_of::<libc::signalfd_siginfo>();
                (libc::read(self.0.as_raw_fd(), (&raw mut info).cast(), size), info)
            };
            if got <= 0 {
                return ending;
            }
            let signal = info.ssi_signo.cast_signed();
            if signal != libc::SIGCHLD {
                ending = Some(signal);
            }
        }
    }
}

impl AsFd for ChildSignals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_to_signal_groups_and_init() {
        for pid in [-1, 0, 1] {
            assert!(kill(Pid(pid), 0).is_err(), "{pid}");
        }
    }

    #[test]
    fn a_threaded_process_does_not_fork() {
        // The test harness itself runs threads.
        let (send, receive) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || receive.recv());
        let refused = fork_task(|| 0);
        drop(send);
        assert!(other.join().is_ok_and(|r| r.is_err()));
        assert_eq!(refused.map_err(|e| e.errno), Err(libc::EBUSY));
    }

    #[test]
    fn own_children_are_seen() {
        let me = own_pid();
        assert!(parent_and_state(me).is_some_and(|(parent, _)| {
            parent.0 == std::os::unix::process::parent_id().cast_signed()
        }));
    }
}
