// SPDX-License-Identifier: MIT OR Apache-2.0
//! A second process of a probe: this program again, in a role, over memory and descriptors
//! that the first handed down.
//!
//! Context: SETUP in both processes. Executed anew instead of forked: a fork would
//! write-protect every locked page of the first process, and each would then cost a page fault
//! in a measured loop.
//! A peer dies with the thread that started it, and is killed when its handle is dropped. A
//! guardian is the exception: it outlives its starter, to clean up.
//! Not here: what the roles do (the probes' own files), and their list (`roles`).
//! Source: prctl(2) PR_SET_PDEATHSIG.

use std::ffi::OsString;
use std::io::PipeWriter;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use tailbound_sys::environment::Environment;
use tailbound_sys::error::SysError;
use tailbound_sys::process::{self, Pid};
use tailbound_sys::spawn::{Spawn, TARGET_FD_MAX};

use crate::error::ProbeError;

/// The hidden verb of the command line.
pub const VERB: &str = "peer";
/// The first descriptor handed down; the others follow.
pub(crate) const FIRST_FD: i32 = 3;

/// What a process may be started as.
pub(crate) struct Role {
    /// Its word.
    pub(crate) name: &'static str,
    /// Its life, with the words and descriptors it was given.
    pub(crate) run: fn(&[String], Vec<OwnedFd>) -> Result<(), SysError>,
}

/// What a guardian is started as.
pub(crate) const GUARDIAN: Role = Role { name: "semaphore-guard", run: guard_semaphores };

/// A running peer.
#[derive(Debug)]
pub struct Peer {
    pid: Pid,
    ended: bool,
}

impl Peer {
    /// Starts this program in `role`, with `words`, and `descriptors` in their order (at most
    /// seven).
    ///
    /// # Errors
    /// The call that was refused.
    pub fn start(
        exe: &Path,
        role: &str,
        words: &[String],
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<Self, ProbeError> {
        let pid = spawn(exe, role, words, descriptors, process::SIGKILL)?;
        Ok(Self { pid, ended: false })
    }

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// How it ended, for people; `None` while it lives.
    pub fn ended(&mut self) -> Option<String> {
        if self.ended {
            return Some("it has ended".to_owned());
        }
        match process::try_wait(self.pid) {
            Ok(None) => None,
            Ok(Some(status)) => {
                self.ended = true;
                Some(process::ended(status))
            }
            Err(e) => {
                self.ended = true;
                Some(e.to_string())
            }
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        if !self.ended && self.ended().is_none() {
            // Gone meanwhile is what was wanted.
            drop(process::kill(self.pid, process::SIGKILL));
            process::wait(self.pid);
        }
    }
}

fn spawn(
    exe: &Path,
    role: &str,
    words: &[String],
    descriptors: &[BorrowedFd<'_>],
    death_signal: i32,
) -> Result<Pid, ProbeError> {
    let mut arguments: Vec<OsString> =
        vec![VERB.into(), role.into(), descriptors.len().to_string().into()];
    arguments.extend(words.iter().map(OsString::from));
    let descriptors: Vec<(BorrowedFd<'_>, i32)> =
        descriptors.iter().copied().zip(FIRST_FD..=TARGET_FD_MAX).collect();
    let spawn = Spawn {
        program: exe,
        arguments: &arguments,
        descriptors: &descriptors,
        pid_namespace: false,
        new_session: true,
        death_signal,
        cpus: &[],
        environment: Environment::Inherited,
    };
    Ok(spawn.start()?)
}

/// Removes a System V semaphore set when its maker ends, however it ends.
#[derive(Debug)]
pub(crate) struct Guardian {
    pid: Pid,
    /// Closed with this process, whatever happens to it.
    line: Option<PipeWriter>,
}

impl Guardian {
    /// Starts one for set `id`.
    ///
    /// # Errors
    /// The call that was refused.
    pub(crate) fn start(exe: &Path, id: i32) -> Result<Self, ProbeError> {
        let (reader, line) = std::io::pipe()
            .map_err(|e| SysError::code("pipe", "guardian", e.raw_os_error().unwrap_or(0)))?;
        let pid = spawn(exe, GUARDIAN.name, &[id.to_string()], &[reader.as_fd()], 0)?;
        Ok(Self { pid, line: Some(line) })
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        drop(self.line.take());
        process::wait(self.pid);
    }
}

fn guard_semaphores(words: &[String], descriptors: Vec<OwnedFd>) -> Result<(), SysError> {
    let id = number(words, 0)?;
    let Some(line) = descriptors.into_iter().next() else {
        return Err(SysError::code("peer", "no descriptor", 22));
    };
    // Nothing is ever written: what ends is the writer.
    while tailbound_sys::ipc::read(line.as_fd(), &mut [0u8; 8])
        .is_err_and(|e| e.kind() == std::io::ErrorKind::Interrupted)
    {}
    // Gone already is how it should be.
    drop(tailbound_sys::handover::remove_semaphores(id));
    Ok(())
}

/// Word `at` as a number.
pub(crate) fn number<T: std::str::FromStr>(words: &[String], at: usize) -> Result<T, SysError> {
    words
        .get(at)
        .and_then(|w| w.parse().ok())
        .ok_or_else(|| SysError::code("peer", format!("word {at} of {words:?}"), 22))
}
