// SPDX-License-Identifier: MIT OR Apache-2.0
//! A process that outlives a killed run and removes its trace instance: a tracer left on
//! would go on waking its threads at the highest priority.
//!
//! Context: SETUP, COLD. The guard reads a pipe: `PATH=VALUE` lines are shared settings to
//! put back, `done` means that nothing is left to do, and the end of the pipe that the
//! run is gone. Units: none.
//! Source: pipe(7).

use std::io::{BufRead, BufReader, PipeWriter, Write, pipe};
use std::os::fd::AsFd;
use std::path::Path;

use tailbound_sys::SysError;
use tailbound_sys::environment::Environment;
use tailbound_sys::process::{Pid, try_wait};
use tailbound_sys::spawn::Spawn;

use crate::root::Root;
use crate::tracefs::{Instance, NAME_PREFIX, Tracefs};

/// The running guard of one instance.
#[derive(Debug)]
pub struct Guard {
    pid: Pid,
    line: PipeWriter,
    notified: usize,
}

impl Guard {
    /// Starts `exe trace-guard NAME`.
    ///
    /// # Errors
    /// The call that was refused.
    pub fn start(exe: &Path, instance: &Instance) -> Result<Self, SysError> {
        let failed = |e: std::io::Error| {
            SysError::code("pipe", "trace guard", e.raw_os_error().unwrap_or(0))
        };
        let (read, line) = pipe().map_err(failed)?;
        let pid = Spawn {
            program: exe,
            arguments: &["trace-guard".into(), instance.name().into()],
            descriptors: &[(read.as_fd(), 0)],
            pid_namespace: false,
            new_session: true,
            death_signal: 0,
            cpus: &[],
            environment: Environment::Inherited,
        }
        .start()?;
        let mut guard = Self { pid, line, notified: 0 };
        guard.notify(instance);
        Ok(guard)
    }

    /// Notifies it of shared settings changed since.
    pub fn notify(&mut self, instance: &Instance) {
        for (path, value) in instance.before().iter().skip(self.notified) {
            // A guard that is gone guards nothing, which harms nobody who ends by himself.
            drop(writeln!(self.line, "{path}={value}"));
        }
        self.notified = instance.before().len();
    }

    /// Lets it go: the instance is removed.
    pub fn dismiss(mut self) {
        drop(writeln!(self.line, "done"));
        drop(self.line);
        // It ends at once; if not yet, whoever adopts it collects it.
        drop(try_wait(self.pid));
    }
}

/// The body of the hidden `trace-guard` verb: waits for the end of `input`, then removes
/// the instance `name`, unless it was told that there is nothing to do.
#[must_use]
pub fn guard_main(root: &Root, name: &str, input: impl std::io::Read) -> u8 {
    if !name.starts_with(NAME_PREFIX) || name.contains('/') {
        return 2;
    }
    let mut before = Vec::new();
    for text in BufReader::new(input).lines().map_while(Result::ok) {
        match text.split_once('=') {
            Some((path, value)) => before.push((path.to_owned(), value.to_owned())),
            None if text == "done" => return 0,
            None => {}
        }
    }
    let Ok(tracefs) = Tracefs::find(root) else { return 3 };
    let mut instance = Instance::adopt(tracefs, name.to_owned());
    for (path, value) in &before {
        instance.put_back_later(path, value);
    }
    if instance.remove().is_ok() { 0 } else { 3 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn removes_what_is_left_and_nothing_else() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        let tracing = dir.path().join("sys/kernel/tracing");
        let instance = tracing.join("instances/tailbound-1-2");
        fs::create_dir_all(&instance)?;
        fs::create_dir_all(tracing.join("osnoise"))?;
        fs::write(tracing.join("osnoise/cpus"), "1")?;
        let root = Root::at(dir.path());
        assert_eq!(guard_main(&root, "tailbound-1-2", &b"osnoise/cpus=0-3\ndone\n"[..]), 0);
        assert!(instance.exists(), "told that there is nothing to do");
        for other in ["../osnoise", "tailbound-/../x", "mine"] {
            assert_eq!(guard_main(&root, other, &b""[..]), 2);
        }
        assert_eq!(guard_main(&root, "tailbound-1-2", &b"osnoise/cpus=0-3\n"[..]), 0);
        assert!(!instance.exists());
        assert_eq!(fs::read_to_string(tracing.join("osnoise/cpus"))?, "0-3");
        Ok(())
    }
}
