// SPDX-License-Identifier: MIT OR Apache-2.0
//! Children that end at once: fork, exit or exec, wait. The work of a load.
//!
//! Context: HOT of a load, never of a measured loop.
//! Unlike a task of `process::fork_task` the child runs no code of ours but `_exit` or
//! `execv`, which may follow a fork in any process, so that nothing is looked up first.
//! Source: fork(2), execve(2), wait(2), signal-safety(7).

use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use crate::error::{SysError, check};

/// A program to execute, its words ready for the kernel before the fork.
#[derive(Debug)]
pub struct Program {
    path: CString,
    /// Kept for `pointers`.
    _words: Vec<CString>,
    pointers: Vec<*const libc::c_char>,
}

impl Program {
    /// The file `path`, called with `words`, the first of which is its own name.
    ///
    /// # Errors
    /// EINVAL when a word holds a zero byte.
    pub fn new(path: &str, words: Vec<OsString>) -> Result<Self, SysError> {
        let word = |bytes: Vec<u8>| {
            CString::new(bytes).map_err(|_| SysError::code("execve", "a word", libc::EINVAL))
        };
        let path = word(path.into())?;
        let words: Vec<CString> =
            words.into_iter().map(|w| word(w.into_vec())).collect::<Result<_, _>>()?;
        let mut pointers: Vec<_> = words.iter().map(|w| w.as_ptr()).collect();
        pointers.push(std::ptr::null());
        Ok(Self { path, _words: words, pointers })
    }
}

/// Status of a child whose program could not be executed, as in a shell.
pub const NOT_EXECUTED: i32 = 127;

/// Makes a child that exits with 0 or becomes `program`, and waits for its end.
///
/// # Errors
/// EAGAIN at the limit of processes (RLIMIT_NPROC, the cgroup's pids.max), ENOMEM.
pub fn run(program: Option<&Program>) -> Result<ExitStatus, SysError> {
    // SAFETY: the child calls async-signal-safe functions alone, on words made before.
    let pid = unsafe { libc::fork() };
    check(pid, "fork", "")?;
    if pid == 0 {
        let Some(program) = program else {
            // SAFETY: ends the child without the parent's destructors and exit handlers.
            unsafe { libc::_exit(0) }
        };
        // SAFETY: NUL-terminated words in an array that ends in a null pointer, alive in
        // this copy of the parent; returns only when refused.
        unsafe {
            libc::execv(program.path.as_ptr(), program.pointers.as_ptr());
            libc::_exit(NOT_EXECUTED)
        }
    }
    let mut status = 0;
    loop {
        // SAFETY: waitpid(2) writes one live int.
        match check(unsafe { libc::waitpid(pid, &raw mut status, 0) }, "waitpid", "") {
            Ok(_) => return Ok(ExitStatus::from_raw(status)),
            Err(e) if e.errno == libc::EINTR => {}
            Err(e) => return Err(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_come_and_go() {
        assert!(run(None).is_ok_and(|s| s.success()));
        let shell = |words: [&str; 3]| Program::new("/bin/sh", words.map(OsString::from).into());
        let Ok(shell) = shell(["sh", "-c", "exit 3"]) else { panic!("no zero bytes in there") };
        assert!(run(Some(&shell)).is_ok_and(|s| s.code() == Some(3)));
        let Ok(nothing) = Program::new("/nonexistent", Vec::new()) else { panic!("no zero bytes") };
        assert!(run(Some(&nothing)).is_ok_and(|s| s.code() == Some(NOT_EXECUTED)));
        assert!(Program::new("a\0b", Vec::new()).is_err());
    }
}
