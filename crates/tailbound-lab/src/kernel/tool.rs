// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs another program to its end and keeps its output.
//!
//! Context: COLD. For short-lived helpers (apt, dpkg, git, patch); they end by
//! themselves. Not here: builds of minutes (`build::make`), QEMU.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tailbound_sys::environment::Environment;
use tailbound_sys::program::{self, Missing};

use crate::error::LabError;

/// How apt and git reach the network from here. Everything else of the caller's environment stays
/// out: GIT_DIR of a hook, MAKEFLAGS of a make above.
const NETWORK: [&str; 14] = [
    "http_proxy",
    "https_proxy",
    "ftp_proxy",
    "all_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "SSH_AUTH_SOCK",
    "GIT_SSH_COMMAND",
    "XDG_CONFIG_HOME",
];

/// A helper program with its arguments.
#[derive(Debug)]
pub(crate) struct Tool {
    command: Command,
    program: String,
    missing: Option<Missing>,
}

/// What a helper left behind.
#[derive(Clone, Debug)]
pub(crate) struct ToolOutput {
    /// Did it end with status 0?
    pub(crate) success: bool,
    /// Its standard output.
    pub(crate) out: String,
    /// Its standard error.
    pub(crate) err: String,
}

impl Tool {
    /// `program`, looked for on PATH and where administrators' programs are; messages in
    /// English and without a terminal, so that they can be read here.
    pub(crate) fn new(name: &str) -> Self {
        let found = program::find(name);
        let program = found.as_deref().unwrap_or(Path::new("/nonexistent"));
        #[expect(
            clippy::disallowed_methods,
            reason = "a helper that is waited for and ends by itself; nothing is measured meanwhile"
        )]
        let mut command = Command::new(program);
        command.env_clear().envs(Environment::Clean.variables()).stdin(Stdio::null());
        command.envs(NETWORK.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        Self { command, program: name.to_owned(), missing: found.err() }
    }

    /// One argument more.
    pub(crate) fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    /// Several arguments more.
    pub(crate) fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.command.args(args);
        self
    }

    /// Where it runs.
    pub(crate) fn within(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// Runs it; whether it succeeded is in the answer.
    ///
    /// # Errors
    /// It is not installed or cannot be started.
    pub(crate) fn run(mut self) -> Result<ToolOutput, LabError> {
        if let Some(missing) = &self.missing {
            return Err(LabError::cannot(missing));
        }
        match self.command.output() {
            Ok(Output { status, stdout, stderr }) => Ok(ToolOutput {
                success: status.success(),
                out: String::from_utf8_lossy(&stdout).into_owned(),
                err: String::from_utf8_lossy(&stderr).into_owned(),
            }),
            Err(e) => {
                Err(LabError::cannot(format!("`{}` could not be started: {e}", self.program)))
            }
        }
    }

    /// Runs it; its standard output.
    ///
    /// # Errors
    /// It is not installed, or failed: with the end of its output.
    pub(crate) fn succeed(self) -> Result<String, LabError> {
        let program = self.program.clone();
        let output = self.run()?;
        if output.success {
            return Ok(output.out);
        }
        Err(LabError::cannot(format!("{program}: {}", output.complaint())))
    }
}

impl ToolOutput {
    /// The last few lines that say why, on one line.
    pub(crate) fn complaint(&self) -> String {
        let of = if self.err.trim().is_empty() { &self.out } else { &self.err };
        let lines: Vec<&str> = of.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
        let tail = lines.get(lines.len().saturating_sub(4)..).unwrap_or_default();
        if tail.is_empty() { "failed without a word".to_owned() } else { tail.join("; ") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_and_a_failure_are_told_apart() {
        let missing = Tool::new("no-such-program-here").run().unwrap_err().to_string();
        assert!(missing.contains("`no-such-program-here` is not installed"), "{missing}");
        let failed =
            Tool::new("sh").args(["-c", "echo why >&2; exit 7"]).succeed().unwrap_err().to_string();
        assert_eq!(failed, "sh: why");
        assert_eq!(
            Tool::new("sh").args(["-c", "pwd"]).within(Path::new("/")).succeed().unwrap(),
            "/\n"
        );
    }
}
