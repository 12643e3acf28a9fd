// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands at a threshold: started beside a measurement, with what happened in their environment.
//!
//! Context: COLD, by the supervisor: on its CPUs, which are not measured ones where others are free, with an ordinary
//! policy. What a command prints goes to standard error: standard output is for the answer.
//! Not here: that nothing is left of it (`guard`).

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use tailbound_core::units::format_ns_i64;
use tailbound_sys::environment::Environment;
use tailbound_sys::process::{self, Pid, SIGKILL, SIGTERM};
use tailbound_sys::spawn::Spawn;
use tailbound_sys::{SysError, ipc};

use super::guard::TIME_IS_UP;

/// Longest time that a command may take.
pub(super) const LIMIT: Duration = Duration::from_secs(30);
/// Time that its guard has to end it.
const PATIENCE: Duration = Duration::from_secs(3);
/// Between two looks at a guard that is to end.
const LOOK_MS: i32 = 5;
/// As much of a command is shown.
const SHOWN_CHARS: usize = 60;

/// Variables of a command: `NAME=VALUE`.
pub(crate) type Variables = Vec<String>;

/// The variable `name` with a path that is right in any folder.
pub(crate) fn path_variable(name: &str, path: &Path) -> String {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    format!("{name}={}", whole.display())
}

/// Starts commands.
pub(crate) trait Shell {
    /// # Errors
    /// It could not be started.
    fn start(
        &mut self,
        line: &str,
        variables: &Variables,
    ) -> Result<Box<dyn RunningCommand>, SysError>;
}

/// A command at work. Dropped, it is ended.
pub(crate) trait RunningCommand {
    /// How it ended, once it has.
    fn ended(&mut self) -> Option<CommandEnd>;
    /// Ends it.
    fn end(&mut self) -> CommandEnd;
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommandEnd {
    /// In words: `exit status 0 after 12.3 ms`.
    pub(crate) how: String,
    /// With exit status 0.
    pub(crate) succeeded: bool,
}

/// `line` as it is shown.
pub(super) fn shown(line: &str) -> String {
    format!("`{}`", tailbound_core::printable::excerpt(line, SHOWN_CHARS))
}

/// Through /bin/sh, below a process of this program.
#[derive(Debug)]
pub(crate) struct GuardedShell {
    /// This program.
    pub(crate) exe: PathBuf,
}

impl Shell for GuardedShell {
    fn start(
        &mut self,
        line: &str,
        variables: &Variables,
    ) -> Result<Box<dyn RunningCommand>, SysError> {
        let null = File::options().read(true).write(true).open("/dev/null");
        let null = null.map_err(|e| {
            SysError::code("open", "/dev/null", e.raw_os_error().unwrap_or_default())
        })?;
        let errors = std::io::stderr();
        let mut arguments: Vec<OsString> =
            vec!["action-guard".into(), LIMIT.as_millis().to_string().into(), "--".into()];
        arguments.push(line.into());
        arguments.extend(variables.iter().map(OsString::from));
        let guard = Spawn {
            program: &self.exe,
            arguments: &arguments,
            descriptors: &[(null.as_fd(), 0), (errors.as_fd(), 1)],
            pid_namespace: false,
            // Ctrl-C is for the run alone, which ends its commands.
            new_session: true,
            // The guard must live to end what the command started.
            death_signal: SIGTERM,
            cpus: &[],
            environment: Environment::Users,
        }
        .start()?;
        Ok(Box::new(GuardedCommand { guard, begun: Instant::now(), collected: false }))
    }
}

struct GuardedCommand {
    guard: Pid,
    begun: Instant,
    collected: bool,
}

impl GuardedCommand {
    fn told(&mut self, status: ExitStatus) -> CommandEnd {
        self.collected = true;
        let took = self.begun.elapsed();
        let took_ns = i64::try_from(took.as_nanos()).unwrap_or(i64::MAX);
        let how = match status.code() {
            Some(code) if code == i32::from(TIME_IS_UP) && took >= LIMIT => {
                format!("ended, its {} s were over", LIMIT.as_secs())
            }
            _ => format!("{} after {}", process::ended(status), format_ns_i64(took_ns)),
        };
        CommandEnd { how, succeeded: status.success() }
    }

    fn collect(&mut self) -> Option<CommandEnd> {
        match process::try_wait(self.guard) {
            Ok(None) => None,
            Ok(Some(status)) => Some(self.told(status)),
            Err(e) => {
                self.collected = true;
                Some(CommandEnd { how: e.to_string(), succeeded: false })
            }
        }
    }
}

impl RunningCommand for GuardedCommand {
    fn ended(&mut self) -> Option<CommandEnd> {
        self.collect()
    }

    fn end(&mut self) -> CommandEnd {
        let asked = Instant::now();
        let mut signal = SIGTERM;
        loop {
            if let Some(end) = self.collect() {
                let how = format!("ended with the run, {}", end.how);
                return if end.succeeded { end } else { CommandEnd { how, ..end } };
            }
            // Gone already is what was wanted.
            process::kill(self.guard, signal).unwrap_or_default();
            if asked.elapsed() > PATIENCE {
                signal = SIGKILL;
            }
            // Nothing to wait for but time.
            ipc::wait_readable(&[], LOOK_MS).map(drop).unwrap_or_default();
        }
    }
}

impl Drop for GuardedCommand {
    fn drop(&mut self) {
        if !self.collected {
            self.end();
        }
    }
}
