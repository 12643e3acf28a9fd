// SPDX-License-Identifier: MIT OR Apache-2.0
//! A process that may be sent a signal later: the one that had the number when this was opened, and never a later one
//! with the same number.
//!
//! Context: SETUP ([`Addressee::open`]), COLD. Source: pidfd_open(2), pidfd_send_signal(2), Linux 5.3; signal(7).

use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

use crate::error::SysError;
use crate::process::Pid;

/// Names of signal(7) without `SIG`.
const NAMES: [(&str, i32); 22] = [
    ("HUP", libc::SIGHUP),
    ("INT", libc::SIGINT),
    ("QUIT", libc::SIGQUIT),
    ("ABRT", libc::SIGABRT),
    ("KILL", libc::SIGKILL),
    ("USR1", libc::SIGUSR1),
    ("USR2", libc::SIGUSR2),
    ("PIPE", libc::SIGPIPE),
    ("ALRM", libc::SIGALRM),
    ("TERM", libc::SIGTERM),
    ("CHLD", libc::SIGCHLD),
    ("CONT", libc::SIGCONT),
    ("STOP", libc::SIGSTOP),
    ("TSTP", libc::SIGTSTP),
    ("TTIN", libc::SIGTTIN),
    ("TTOU", libc::SIGTTOU),
    ("URG", libc::SIGURG),
    ("XCPU", libc::SIGXCPU),
    ("VTALRM", libc::SIGVTALRM),
    ("PROF", libc::SIGPROF),
    ("WINCH", libc::SIGWINCH),
    ("IO", libc::SIGIO),
];

/// See the module.
#[derive(Debug)]
pub struct Addressee {
    pid: Pid,
    handle: OwnedFd,
}

impl Addressee {
    /// The process with this number, which must be there and accept signals of this user.
    ///
    /// # Errors
    /// ESRCH: there is none; EINVAL: it is a thread, or init; EPERM: another user's; ENOSYS before Linux 5.3.
    pub fn open(pid: Pid) -> Result<Self, SysError> {
        let what = format!("process {pid}");
        if pid.0 <= 1 {
            return Err(SysError::code("pidfd_open", what, libc::EINVAL));
        }
        // SAFETY: pidfd_open(2) on integers.
        let opened = unsafe { libc::syscall(libc::SYS_pidfd_open, pid.0, 0) };
        let raw = i32::try_from(opened).unwrap_or(-1);
        if raw < 0 {
            return Err(SysError::last("pidfd_open", what));
        }
        // SAFETY: the kernel made it for us, and nobody else has it; it is closed on exec.
        let one = Self { pid, handle: unsafe { OwnedFd::from_raw_fd(raw) } };
        one.send(0)?;
        Ok(one)
    }

    /// The process that started this one.
    ///
    /// # Errors
    /// As [`Self::open`]: EINVAL where that is init.
    pub fn parent() -> Result<Self, SysError> {
        Self::open(Pid(std::os::unix::process::parent_id().cast_signed()))
    }

    /// Its number.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Sends it `signal`.
    ///
    /// # Errors
    /// ESRCH: it has ended, whoever has its number now.
    pub fn send(&self, signal: i32) -> Result<(), SysError> {
        let nothing = std::ptr::null::<libc::siginfo_t>();
        // SAFETY: a live descriptor, integers, and no siginfo.
        let done = unsafe {
            let fd = self.handle.as_raw_fd();
            libc::syscall(libc::SYS_pidfd_send_signal, fd, signal, nothing, 0)
        };
        let failed = || SysError::last("pidfd_send_signal", format!("process {}", self.pid));
        if done < 0 { Err(failed()) } else { Ok(()) }
    }
}

/// The number of a signal that is written as `USR1`, `SIGUSR1` or `10`.
#[must_use]
pub fn signal_number(text: &str) -> Option<i32> {
    if let Ok(number) = text.parse::<i32>() {
        return (1..=libc::SIGRTMAX()).contains(&number).then_some(number);
    }
    let name = text.strip_prefix("SIG").unwrap_or(text);
    NAMES.iter().find(|(known, _)| *known == name).map(|(_, number)| *number)
}

/// `SIGUSR1`; `signal 35` where it has no name.
#[must_use]
pub fn signal_name(number: i32) -> String {
    match NAMES.iter().find(|(_, known)| *known == number) {
        Some((name, _)) => format!("SIG{name}"),
        None => format!("signal {number}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{self, SIGKILL};
    use crate::spawn::Spawn;

    #[test]
    fn signals_have_names_and_numbers() {
        let usr1 = Some(libc::SIGUSR1);
        assert_eq!([signal_number("USR1"), signal_number("SIGUSR1")], [usr1, usr1]);
        assert_eq!(signal_number(&libc::SIGUSR1.to_string()), usr1);
        for wrong in ["", "usr1", "0", "-9", "65", "SIGNONE", "9x"] {
            assert_eq!(signal_number(wrong), None, "{wrong}");
        }
        assert_eq!(signal_name(libc::SIGTERM), "SIGTERM");
        assert_eq!(signal_name(40), "signal 40");
    }

    #[test]
    fn init_and_numbers_that_nobody_has_are_refused() {
        for pid in [-1, 0, 1, i32::MAX] {
            assert!(Addressee::open(Pid(pid)).is_err(), "{pid}");
        }
    }

    #[test]
    fn only_the_process_that_was_meant_gets_it() {
        let pid = Spawn {
            program: std::path::Path::new("/bin/sleep"),
            arguments: &["60".into()],
            descriptors: &[],
            pid_namespace: false,
            new_session: false,
            death_signal: SIGKILL,
            cpus: &[],
            environment: crate::environment::Environment::Clean,
        }
        .start()
        .expect("a sleeper");
        let sleeper = Addressee::open(pid).expect("it is there");
        sleeper.send(libc::SIGTERM).expect("sent");
        process::wait(pid);
        assert_eq!(sleeper.send(0).map_err(|e| e.errno), Err(libc::ESRCH), "its number is free");
    }
}
