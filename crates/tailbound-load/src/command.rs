// SPDX-License-Identifier: MIT OR Apache-2.0
//! A shell command as load.
//!
//! Context: COLD. Units: runs.

use std::os::fd::BorrowedFd;
use std::path::Path;
use std::process::ExitStatus;

use tailbound_sys::environment::Environment;
use tailbound_sys::process::{self, Pid};

use crate::child::Child;
use crate::worker::{Load, Turn};

struct Command {
    line: String,
    repeat: bool,
    child: Child,
    shell: Pid,
    runs: u64,
}

pub(crate) fn start(line: String, repeat: bool) -> Result<Box<dyn Load>, String> {
    if process::own_pid().0 == 1 {
        // Without it `ps` and friends see process numbers of another namespace; they can
        // live with that where it is not permitted.
        let _masked = process::own_proc();
    }
    let mut child = Child::new(false, Environment::Users)?;
    let shell = run(&mut child, &line)?;
    Ok(Box::new(Command { line, repeat, child, shell, runs: 1 }))
}

fn run(child: &mut Child, line: &str) -> Result<Pid, String> {
    child.run(Path::new("/bin/sh"), &["-c".into(), line.into()], None)
}

impl Load for Command {
    fn source(&self) -> Option<BorrowedFd<'_>> {
        Some(self.child.source())
    }

    fn count(&self) -> u64 {
        self.runs
    }

    fn turn(&mut self, ended: &[(Pid, ExitStatus)]) -> Result<Turn, String> {
        self.child.listen();
        let Some((_, status)) = ended.iter().find(|(pid, _)| *pid == self.shell) else {
            return Ok(Turn::Going);
        };
        let end = format!("the command ended with {}", self.child.end(*status));
        if !status.success() {
            return Err(end);
        }
        if !self.repeat {
            return Ok(Turn::Ended(end));
        }
        self.shell = run(&mut self.child, &self.line)?;
        self.runs += 1;
        Ok(Turn::Going)
    }
}
