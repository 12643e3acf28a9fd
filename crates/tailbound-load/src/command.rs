// SPDX-License-Identifier: MIT OR Apache-2.0
//! A shell command as load. Its output goes nowhere, but the last of what it said on
//! standard error is kept for the day it fails.
//!
//! Context: COLD. Units: runs.

use std::fs::File;
use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::ExitStatus;
use std::time::Instant;

use tailbound_core::units;
use tailbound_sys::ipc;
use tailbound_sys::process::{self, Pid};
use tailbound_sys::spawn::Spawn;

use crate::worker::{Load, Turn};

/// As much of standard error as is kept.
const LAST_WORDS_BYTES: usize = 2048;

struct Command {
    line: String,
    repeat: bool,
    null: File,
    shell: Pid,
    stderr: PipeReader,
    stderr_writer: OwnedFd,
    last_words: Vec<u8>,
    runs: u64,
    since: Instant,
}

pub(crate) fn start(line: String, repeat: bool) -> Result<Box<dyn Load>, String> {
    if process::own_pid().0 == 1 {
        // Without it `ps` and friends see process numbers of another namespace; they can
        // live with that where it is not permitted.
        let _masked = process::own_proc();
    }
    let null = File::options().read(true).write(true).open("/dev/null");
    let null = null.map_err(|e| format!("/dev/null: {e}"))?;
    let (stderr, writer) = io::pipe().map_err(|e| format!("pipe: {e}"))?;
    let stderr_writer = OwnedFd::from(writer);
    let shell = run(&line, &null, &stderr_writer)?;
    Ok(Box::new(Command {
        line,
        repeat,
        null,
        shell,
        stderr,
        stderr_writer,
        last_words: Vec::new(),
        runs: 1,
        since: Instant::now(),
    }))
}

fn run(line: &str, null: &File, stderr: &OwnedFd) -> Result<Pid, String> {
    Spawn {
        program: Path::new("/bin/sh"),
        arguments: &["-c".into(), line.into()],
        descriptors: &[(null.as_fd(), 0), (null.as_fd(), 1), (stderr.as_fd(), 2)],
        pid_namespace: false,
        new_session: false,
        death_signal: process::SIGKILL,
        cpus: &[],
    }
    .start()
    .map_err(|e| e.to_string())
}

impl Command {
    /// Takes what was said, so that the command never waits for a reader.
    fn listen(&mut self) {
        let mut buffer = [0; 4096];
        while ipc::wait_readable(&[self.stderr.as_fd()], 0).is_ok_and(|r| r.first() == Some(&true))
        {
            let Ok(n) = self.stderr.read(&mut buffer) else { break };
            self.last_words.extend_from_slice(buffer.get(..n).unwrap_or_default());
            let extra = self.last_words.len().saturating_sub(LAST_WORDS_BYTES);
            self.last_words.drain(..extra);
        }
    }

    /// `exit status 127 after 3 ms: sh: foo: not found`
    fn end(&self, status: ExitStatus) -> String {
        let ns = i64::try_from(self.since.elapsed().as_nanos()).unwrap_or(i64::MAX);
        let how = format!("{} after {}", process::ended(status), units::format_ns_i64(ns));
        let words = String::from_utf8_lossy(&self.last_words);
        match words.trim().lines().last() {
            Some(last) => format!("{how}: {last}"),
            None => how,
        }
    }
}

impl Load for Command {
    fn source(&self) -> Option<BorrowedFd<'_>> {
        Some(self.stderr.as_fd())
    }

    fn count(&self) -> u64 {
        self.runs
    }

    fn turn(&mut self, ended: &[(Pid, ExitStatus)]) -> Result<Turn, String> {
        self.listen();
        let Some((_, status)) = ended.iter().find(|(pid, _)| *pid == self.shell) else {
            return Ok(Turn::Going);
        };
        if !status.success() {
            return Err(format!("the command ended with {}", self.end(*status)));
        }
        if !self.repeat {
            return Ok(Turn::Ended(format!("the command ended with {}", self.end(*status))));
        }
        self.shell = run(&self.line, &self.null, &self.stderr_writer)?;
        self.runs += 1;
        self.since = Instant::now();
        Ok(Turn::Going)
    }
}
