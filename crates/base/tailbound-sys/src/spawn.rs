// SPDX-License-Identifier: MIT OR Apache-2.0
//! Starts another program from a process that measures: without copying its memory map,
//! without handing down its real-time policy, signals or descriptors, and in a PID
//! namespace of its own where that is allowed.
//!
//! Context: SETUP, COLD. The child shares the parent's memory until it calls execve(2),
//! as in vfork(2): a fork would write-protect every locked page of the parent, and each
//! would then cost a page fault in the measured loop.
//! Not here: what is started, and ending it (`process`).
//! Source: clone(2), vfork(2), pid_namespaces(7), prctl(2), signal-safety(7).

use std::ffi::{CString, OsStr, OsString, c_void};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::mpsc;

use crate::duplicate::duplicate_above;
use crate::environment::Environment;
use crate::error::{SysError, check};
use crate::held_calls::{HeldCalls, Preparation};
use crate::process::Pid;
use crate::sched::gettid;

/// Highest descriptor number that can be handed down.
pub const TARGET_FD_MAX: i32 = 9;
const STACK_BYTES: usize = 64 * 1024;
/// The kernel's default for normal threads.
const TIMER_SLACK_NS: libc::c_ulong = 50_000;

/// One bit a CPU, for all 8192 the kernel can have; cpu_set_t holds 1024.
const MASK_WORDS: usize = 8192 / 64;
type CpuMask = [u64; MASK_WORDS];

/// What to start and how.
#[derive(Debug)]
pub struct Spawn<'a> {
    /// The file to execute.
    pub program: &'a Path,
    /// Its arguments, without its own name.
    pub arguments: &'a [OsString],
    /// Descriptors it gets, with the number (0 to [`TARGET_FD_MAX`]) each is to have
    /// there. Numbers 0 to 2 not named here are the caller's own.
    pub descriptors: &'a [(BorrowedFd<'a>, i32)],
    /// Make it the init of a new PID namespace: when it ends, so does everything it
    /// started. Needs CAP_SYS_ADMIN.
    pub pid_namespace: bool,
    /// Make it leader of a new session, out of reach of the terminal's Ctrl-C.
    pub new_session: bool,
    /// The signal it gets when the *thread* that starts it ends.
    pub death_signal: i32,
    /// CPUs it may use; empty: those of the calling thread.
    pub cpus: &'a [u32],
    /// The variables it is given.
    pub environment: Environment,
}

/// What a program that is not trusted may do less than its caller.
#[derive(Clone, Debug)]
pub struct Confined<'a> {
    /// Its working folder, which its relative names are found in: those above it need not be open
    /// to its user.
    pub folder: &'a Path,
    /// User and group it runs as, with no other group; the caller's if there is none.
    pub user: Option<u32>,
    /// One more group.
    pub group: Option<u32>,
    /// The largest file it may write.
    pub file_bytes_max: u64,
}

struct Confinement {
    folder: CString,
    user: Option<u32>,
    group: Option<u32>,
    file_bytes_max: u64,
}

struct Child {
    confinement: Option<Confinement>,
    hold: Option<Preparation>,
    /// Why its calls cannot be held.
    not_held: Option<i32>,
    argv: Vec<*const libc::c_char>,
    envp: Vec<*const libc::c_char>,
    moves: Vec<(i32, i32)>,
    cpus: Option<CpuMask>,
    new_session: bool,
    death_signal: i32,
    /// Whose end it is told of; 0 where it cannot know, in a PID namespace of its own.
    parent: i32,
    highest_fd: u32,
    failed: Option<(&'static str, i32)>,
}

impl Spawn<'_> {
    /// Starts it; returns once the program was executed.
    ///
    /// # Errors
    /// The call that failed in the parent or in the child, execve(2) included; EPERM at
    /// `clone` when the PID namespace is not permitted.
    pub fn start(&self) -> Result<Pid, SysError> {
        self.launch(None, None).map(|(pid, _)| pid)
    }

    /// As [`Self::start`], by a thread of its own; `before` gets the number of that thread first, so that whoever
    /// records what its children do misses nothing. None: that thread failed.
    pub fn start_in_thread(&self, before: impl FnOnce(i32)) -> Option<Result<Pid, SysError>> {
        let (tell, told) = mpsc::channel();
        let (go, gone) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let starter = scope.spawn(move || {
                tell.send(gettid()).unwrap_or_default();
                gone.recv().unwrap_or_default();
                self.start()
            });
            if let Ok(tid) = told.recv() {
                before(tid);
            }
            drop(go);
            starter.join().ok()
        })
    }

    /// As [`Self::start`], confined: it can gain no right by executing anything, and leaves no core.
    ///
    /// # Errors
    /// As [`Self::start`]; the call that would have confined it.
    pub fn start_confined(&self, confined: &Confined<'_>) -> Result<Pid, SysError> {
        self.launch(Some(confined), None).map(|(pid, _)| pid)
    }

    /// As [`Self::start_confined`], with some of its calls held from its first instruction on. Where
    /// the kernel does not let them be held, it runs all the same, and the second value says why.
    ///
    /// # Errors
    /// As [`Self::start_confined`].
    pub fn start_held(
        &self,
        confined: &Confined<'_>,
    ) -> Result<(Pid, Result<HeldCalls, SysError>), SysError> {
        match Preparation::new(TARGET_FD_MAX + 2) {
            Ok(hold) => self.launch(Some(confined), Some(hold)),
            Err(e) => self.launch(Some(confined), None).map(|(pid, _)| (pid, Err(e))),
        }
    }

    fn launch(
        &self,
        confined: Option<&Confined<'_>>,
        hold: Option<Preparation>,
    ) -> Result<(Pid, Result<HeldCalls, SysError>), SysError> {
        let text = |s: &OsStr| {
            CString::new(s.as_bytes()).map_err(|_| {
                SysError::code("execve", format!("NUL byte in {}", s.display()), libc::EINVAL)
            })
        };
        let mut argv = vec![text(self.program.as_os_str())?];
        for argument in self.arguments {
            argv.push(text(argument)?);
        }
        let mut envp = Vec::new();
        for (key, value) in self.environment.variables() {
            let mut line = key;
            line.push("=");
            line.push(&value);
            envp.push(text(&line)?);
        }
        // Above every target number, so that no dup2 overwrites a source still needed.
        let mut sources = Vec::new();
        for &(fd, target) in self.descriptors {
            if !(0..=TARGET_FD_MAX).contains(&target) {
                return Err(SysError::code("dup2", target.to_string(), libc::EBADF));
            }
            sources.push((duplicate_above(fd.as_raw_fd(), TARGET_FD_MAX + 1)?, target));
        }
        let highest = self.descriptors.iter().map(|d| d.1).max().unwrap_or(2).max(2);
        let confinement = |c: &Confined<'_>| {
            let (user, group, file_bytes_max) = (c.user, c.group, c.file_bytes_max);
            Ok::<_, SysError>(Confinement {
                folder: text(c.folder.as_os_str())?,
                user,
                group,
                file_bytes_max,
            })
        };
        let mut child = Child {
            confinement: confined.map(confinement).transpose()?,
            hold,
            not_held: None,
            argv: pointers(&argv),
            envp: pointers(&envp),
            moves: sources.iter().map(|(fd, target)| (fd.as_raw_fd(), *target)).collect(),
            cpus: cpu_mask(self.cpus),
            new_session: self.new_session,
            death_signal: self.death_signal,
            // SAFETY: getpid(2) always succeeds.
            parent: if self.pid_namespace { 0 } else { unsafe { libc::getpid() } },
            highest_fd: highest.unsigned_abs(),
            failed: None,
        };
        let pid =
            clone_and_execute(&mut child, if self.pid_namespace { libc::CLONE_NEWPID } else { 0 })?;
        if let Some((call, errno)) = child.failed {
            // It ended with _exit before executing anything: collect it.
            // SAFETY: no status is asked for.
            unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
            return Err(SysError::code(call, self.program.display().to_string(), errno));
        }
        let held = match (child.hold.take(), child.not_held) {
            (Some(hold), None) => hold.finish(),
            (_, errno) => Err(SysError::code("seccomp", "listener", errno.unwrap_or(libc::EINVAL))),
        };
        Ok((Pid(pid), held))
    }
}

fn pointers(strings: &[CString]) -> Vec<*const libc::c_char> {
    strings.iter().map(|s| s.as_ptr()).chain(std::iter::once(std::ptr::null())).collect()
}

fn cpu_mask(cpus: &[u32]) -> Option<CpuMask> {
    let mut mask = [0u64; MASK_WORDS];
    for &cpu in cpus {
        if let Some(word) = mask.get_mut(cpu as usize / 64) {
            *word |= 1 << (cpu % 64);
        }
    }
    (!cpus.is_empty()).then_some(mask)
}

/// The child gets the new `namespaces`, which are flags of clone(2).
fn clone_and_execute(child: &mut Child, namespaces: libc::c_int) -> Result<i32, SysError> {
    let mut stack = vec![0u8; STACK_BYTES];
    let top = stack.as_mut_ptr_range().end as usize & !15;
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD | namespaces;
    // No handler of the parent may run in the child, which shares its memory.
    // SAFETY: all-zero bytes are valid sigset_t values, filled by the calls below.
    let (mut all, mut old): (libc::sigset_t, libc::sigset_t) =
        unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
    // SAFETY: both sets are live.
    unsafe {
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut old);
    }
    // SAFETY: CLONE_VFORK suspends this thread until the child has executed or ended, so
    // the stack and `child` outlive the child's use of them and nobody else touches them.
    let pid = unsafe {
        libc::clone(in_child, top as *mut c_void, flags, std::ptr::from_mut(child).cast())
    };
    let result = check(pid, "clone", if namespaces == 0 { "" } else { "CLONE_NEWPID" })
        .map_err(|e| e.needs("CAP_SYS_ADMIN for a PID namespace"));
    // SAFETY: restores the mask saved above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const old, std::ptr::null_mut()) };
    result
}

/// Runs in the child: system calls only, no allocation, no lock.
extern "C" fn in_child(argument: *mut c_void) -> libc::c_int {
    // SAFETY: the parent passed its live `Child` and sleeps until we are done.
    let child = unsafe { &mut *argument.cast::<Child>() };
    let failure = prepare(child).err().unwrap_or_else(|| {
        // SAFETY: argv and envp are NUL-terminated arrays of live C strings.
        unsafe {
            libc::execve(
                child.argv.first().copied().unwrap_or(std::ptr::null()),
                child.argv.as_ptr(),
                child.envp.as_ptr(),
            );
        }
        ("execve", last_errno())
    });
    child.failed = Some(failure);
    // SAFETY: ends the child without running anything of the parent.
    unsafe { libc::_exit(127) }
}

fn prepare(child: &mut Child) -> Result<(), (&'static str, i32)> {
    // SAFETY: plain system calls on integers and live structs; the child's signal table,
    // descriptor table and scheduling are its own (no CLONE_SIGHAND, CLONE_FILES).
    unsafe {
        if child.new_session && libc::setsid() < 0 {
            return Err(("setsid", last_errno()));
        }
        death_signal(child)?;
        let normal: libc::sched_param = std::mem::zeroed();
        // The system call, not musl's wrapper, which refuses.
        let policy = libc::SCHED_OTHER;
        if libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const normal) < 0 {
            return Err(("sched_setscheduler", last_errno()));
        }
        // Ours may be urgent. A user who asked to be nice asked it of all that is started. (-1 may be an error: 0 then.)
        if libc::getpriority(libc::PRIO_PROCESS, 0) < 0 {
            libc::setpriority(libc::PRIO_PROCESS, 0, 0);
        }
        libc::prctl(libc::PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0, 0, 0);
        if let Some(cpus) = &child.cpus
            && libc::syscall(libc::SYS_sched_setaffinity, 0, size_of_val(cpus), cpus.as_ptr()) < 0
        {
            return Err(("sched_setaffinity", last_errno()));
        }
        for &(from, to) in &child.moves {
            if libc::dup2(from, to) < 0 {
                return Err(("dup2", last_errno()));
            }
        }
        let mut highest = child.highest_fd;
        let mut sends_by = -1;
        if let Some(hold) = &child.hold {
            highest += 1;
            sends_by = libc::dup3(hold.child_fd(), highest.cast_signed(), libc::O_CLOEXEC);
        }
        close_above(highest);
        if let Some(confinement) = &child.confinement {
            confine(confinement)?;
            // Another user's process has forgotten it.
            death_signal(child)?;
        }
        let default: libc::sigaction = std::mem::zeroed();
        for signal in 1..65 {
            libc::sigaction(signal, &raw const default, std::ptr::null_mut());
        }
        let none: libc::sigset_t = std::mem::zeroed();
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        child.not_held = child.hold.as_ref().and_then(|hold| hold.in_child(sends_by).err());
    }
    Ok(())
}

/// Asks for the signal at the end of the parent, which may have been killed before.
fn death_signal(child: &Child) -> Result<(), (&'static str, i32)> {
    // SAFETY: integers only.
    let parent = unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, child.death_signal as libc::c_ulong, 0, 0, 0);
        libc::getppid()
    };
    if child.death_signal != 0 && child.parent != 0 && parent != child.parent {
        return Err(("getppid", libc::ESRCH));
    }
    Ok(())
}

/// Numbers of the calls that take user and group in 32 bits.
#[cfg(target_arch = "arm")]
const IDENTITY: [libc::c_long; 3] =
    [libc::SYS_setgroups32, libc::SYS_setresgid32, libc::SYS_setresuid32];
#[cfg(not(target_arch = "arm"))]
const IDENTITY: [libc::c_long; 3] = [libc::SYS_setgroups, libc::SYS_setresgid, libc::SYS_setresuid];

/// The system calls themselves: the C library's would change the caller's threads too.
fn confine(confinement: &Confinement) -> Result<(), (&'static str, i32)> {
    let [set_groups, set_group, set_user] = IDENTITY;
    let ok = |done: libc::c_long, call| if done < 0 { Err((call, last_errno())) } else { Ok(()) };
    // SAFETY: system calls on integers and live structs, in the child.
    unsafe {
        ok(libc::chdir(confinement.folder.as_ptr()).into(), "chdir")?;
        for (what, bytes) in
            [(libc::RLIMIT_FSIZE, confinement.file_bytes_max), (libc::RLIMIT_CORE, 0)]
        {
            let most = bytes as libc::rlim_t;
            let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
            ok(libc::setrlimit(what, &raw const limit).into(), "setrlimit")?;
        }
        if let Some(user) = confinement.user {
            let groups = confinement.group.as_slice();
            ok(libc::syscall(set_groups, groups.len(), groups.as_ptr()), "setgroups")?;
            ok(libc::syscall(set_group, user, user, user), "setresgid")?;
            ok(libc::syscall(set_user, user, user, user), "setresuid")?;
        }
        ok(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0).into(), "PR_SET_NO_NEW_PRIVS")
    }
}

/// Closes every descriptor above `highest`; before Linux 5.9 (no close_range) those below
/// 4096: Tailbound opens its own close-on-exec, these are what it inherited.
fn close_above(highest: u32) {
    // SAFETY: descriptors of the child, whose table is a copy.
    unsafe {
        if libc::syscall(libc::SYS_close_range, highest + 1, u32::MAX, 0) < 0 {
            for fd in highest + 1..4096 {
                libc::close(fd.cast_signed());
            }
        }
    }
}

fn last_errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(parent: i32, death_signal: i32) -> Option<(&'static str, i32)> {
        let program = CString::new("/bin/true").expect("no NUL");
        let mut child = Child {
            confinement: None,
            hold: None,
            not_held: None,
            argv: pointers(std::slice::from_ref(&program)),
            envp: pointers(&[]),
            moves: Vec::new(),
            cpus: None,
            new_session: false,
            death_signal,
            parent,
            highest_fd: 2,
            failed: None,
        };
        let pid = clone_and_execute(&mut child, 0).expect("a child");
        // SAFETY: our own child; no status is asked for.
        unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
        child.failed
    }

    /// Killed between clone(2) and prctl(2), the parent cannot be waited for: the child would go on without anyone.
    #[test]
    fn nothing_is_executed_for_a_parent_that_is_gone() {
        // SAFETY: always succeeds.
        let this = unsafe { libc::getpid() };
        assert_eq!(started(this, libc::SIGTERM), None);
        assert_eq!(started(1, libc::SIGTERM), Some(("getppid", libc::ESRCH)));
        assert_eq!(started(1, 0), None, "it is to outlive its parent");
        assert_eq!(started(0, libc::SIGTERM), None, "in a PID namespace of its own");
    }
}
