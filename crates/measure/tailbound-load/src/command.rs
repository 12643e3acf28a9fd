// SPDX-License-Identifier: MIT OR Apache-2.0
//! A shell command as load.
//!
//! Units: runs.

use std::os::fd::BorrowedFd;
use std::path::Path;
use std::process::ExitStatus;

use tailbound_sys::environment::Environment;
use tailbound_sys::process::{self, Pid};

use crate::child::{Child, StandardOutput};
use crate::error::LoadError;
use crate::failure::Failure;
use crate::kind::{CPUS, Load, LoadKind, Note, Start, Started, Turn};
use crate::options::Reader;

pub(crate) static KIND: LoadKind = LoadKind {
    name: "cmd",
    unit: "runs",
    about: "a shell command",
    options: &[
        ("repeat", "yes: start it again when it ends (default no: its end is reported)"),
        CPUS,
        ("line", "the command line; comes last, takes the rest"),
    ],
    coarse: true,
    command: Some(|spec| Some(spec.option("line").unwrap_or_default().to_owned())),
    prepare: |r| Ok(Start::new(Options::read(r)?, start)),
};

/// Which command, and whether once.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Options {
    line: String,
    repeat: bool,
}

impl Options {
    fn read(r: &Reader<'_>) -> Result<Self, LoadError> {
        let line = r.spec.option("line").filter(|l| !l.trim().is_empty());
        let line = line.ok_or_else(|| {
            r.missing("line", "the command to run, for example cmd:line=make -j4")
        })?;
        Ok(Self { line: line.to_owned(), repeat: r.yes_no("repeat")?.unwrap_or(false) })
    }
}

struct Command {
    options: Options,
    child: Child,
    shell: Pid,
    runs: u64,
}

fn start(options: Options, _: Note<'_>) -> Started {
    if process::own_pid().0 == 1 {
        // Without it `ps` and friends see process numbers of another namespace; they can
        // live with that where it is not permitted.
        let _masked = process::own_proc();
    }
    let mut child = Child::new(StandardOutput::Dropped, Environment::Users)?;
    let shell = run(&mut child, &options.line)?;
    Ok(Box::new(Command { options, child, shell, runs: 1 }))
}

fn run(child: &mut Child, line: &str) -> Result<Pid, Failure> {
    child.run(Path::new("/bin/sh"), &["-c".into(), line.into()], None)
}

impl Load for Command {
    fn source(&self) -> Option<BorrowedFd<'_>> {
        Some(self.child.source())
    }

    fn count(&self) -> u64 {
        self.runs
    }

    fn turn(&mut self, ended: &[(Pid, ExitStatus)]) -> Result<Turn, Failure> {
        self.child.listen();
        let Some((_, status)) = ended.iter().find(|(pid, _)| *pid == self.shell) else {
            return Ok(Turn::Going);
        };
        let end = Failure::Ended { what: "the command".into(), how: self.child.end(*status) };
        if !status.success() {
            return Err(end);
        }
        if !self.options.repeat {
            return Ok(Turn::Ended(end.to_string()));
        }
        self.shell = run(&mut self.child, &self.options.line)?;
        self.runs += 1;
        Ok(Turn::Going)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::read;

    #[test]
    fn options_are_read() {
        let asked = read("cmd:repeat=yes,line=echo a,b=c", Options::read);
        assert_eq!(asked, Options { line: "echo a,b=c".into(), repeat: true });
        assert!(!read("cmd:line=true", Options::read).repeat);
    }
}
