// SPDX-License-Identifier: MIT OR Apache-2.0
//! A program that a load starts, over and over where it wants: its output goes nowhere, but the
//! last of what it said is kept for the day it fails.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::ExitStatus;
use std::time::Instant;

use tailbound_core::units;
use tailbound_sys::environment::Environment;
use tailbound_sys::ipc;
use tailbound_sys::process::{self, Pid};
use tailbound_sys::spawn::Spawn;

use crate::failure::{Explain, Failure};

/// As much of what was said as is kept.
const LAST_WORDS_BYTES: usize = 2048;

/// What becomes of a program's standard output; its errors are always kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StandardOutput {
    Dropped,
    Kept,
}

/// Starts programs and listens to them.
pub(crate) struct Child {
    null: File,
    messages: PipeReader,
    messages_writer: OwnedFd,
    last_words: Vec<u8>,
    output: StandardOutput,
    environment: Environment,
    since: Instant,
}

impl Child {
    pub(crate) fn new(output: StandardOutput, environment: Environment) -> Result<Self, Failure> {
        let null = File::options().read(true).write(true).open("/dev/null");
        let (messages, writer) = io::pipe().on("pipe")?;
        Ok(Self {
            null: null.on("/dev/null")?,
            messages,
            messages_writer: writer.into(),
            last_words: Vec::new(),
            output,
            environment,
            since: Instant::now(),
        })
    }

    /// Starts `program`, which finds `more` at descriptor 3 if it is given.
    pub(crate) fn run(
        &mut self,
        program: &Path,
        arguments: &[OsString],
        more: Option<BorrowedFd<'_>>,
    ) -> Result<Pid, Failure> {
        let (null, messages) = (self.null.as_fd(), self.messages_writer.as_fd());
        let out = match self.output {
            StandardOutput::Dropped => null,
            StandardOutput::Kept => messages,
        };
        let mut descriptors = vec![(null, 0), (out, 1), (messages, 2)];
        descriptors.extend(more.map(|fd| (fd, 3)));
        self.since = Instant::now();
        self.last_words.clear();
        Ok(Spawn {
            program,
            arguments,
            descriptors: &descriptors,
            pid_namespace: false,
            new_session: false,
            death_signal: process::SIGKILL,
            cpus: &[],
            environment: self.environment,
        }
        .start()?)
    }

    /// Readable when something was said.
    pub(crate) fn source(&self) -> BorrowedFd<'_> {
        self.messages.as_fd()
    }

    /// Takes what was said, so that the program never waits for a reader.
    pub(crate) fn listen(&mut self) {
        let mut buffer = [0; 4096];
        while ipc::wait_readable(&[self.messages.as_fd()], 0)
            .is_ok_and(|r| r.first() == Some(&true))
        {
            let Ok(n) = self.messages.read(&mut buffer) else { break };
            self.last_words.extend_from_slice(buffer.get(..n).unwrap_or_default());
            let extra = self.last_words.len().saturating_sub(LAST_WORDS_BYTES);
            self.last_words.drain(..extra);
        }
    }

    /// The last of what was said.
    pub(crate) fn last_words(&self) -> String {
        String::from_utf8_lossy(&self.last_words).trim().to_owned()
    }

    /// `exit status 127 after 3 ms: sh: foo: not found`
    pub(crate) fn end(&self, status: ExitStatus) -> String {
        let ns = i64::try_from(self.since.elapsed().as_nanos()).unwrap_or(i64::MAX);
        let how = format!("{} after {}", process::ended(status), units::format_ns_i64(ns));
        match self.last_words().lines().last() {
            Some(last) => format!("{how}: {last}"),
            None => how,
        }
    }
}
