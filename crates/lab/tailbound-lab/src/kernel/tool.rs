// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs another program to its end and keeps its output.
//!
//! For short-lived helpers (apt, dpkg, git, patch); they end by
//! themselves, or when a signal that this program blocks is pending: then with all that they started.
//! Not here: builds of minutes (`build::make`), QEMU. Units: bytes.

use std::ffi::OsStr;
use std::io::{BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

use tailbound_sys::environment::Environment;
use tailbound_sys::program::{self, Missing};
use tailbound_sys::{process, signal};

use crate::error::{LabError, ToolError};

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

/// The most that is kept of a helper's output; what follows is read and forgotten.
const OUTPUT_BYTES_MAX: u64 = 32 << 20;
/// The longest wait between two looks whether a helper has ended.
const LOOK_MAX: Duration = Duration::from_millis(50);

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
    /// It is not installed or cannot be started; interrupted.
    pub(crate) fn run(self) -> Result<ToolOutput, LabError> {
        let mut out = Vec::new();
        let (status, err) = self.read_by(&mut |stdout| {
            out = kept(stdout);
            Ok(())
        })?;
        Ok(ToolOutput { success: status.success(), out: text(&out), err })
    }

    /// Runs it while `read` reads its standard output.
    ///
    /// # Errors
    /// It is not installed or cannot be started, or failed: with the end of what it said; interrupted;
    /// what `read` says.
    pub(crate) fn reading(
        self,
        read: &mut (dyn FnMut(&mut BufReader<ChildStdout>) -> Result<(), LabError> + Send),
    ) -> Result<(), LabError> {
        let program = self.program.clone();
        let (status, err) = self.read_by(read)?;
        if status.success() {
            return Ok(());
        }
        let output = ToolOutput { success: false, out: String::new(), err };
        Err(ToolError::Failed { program, complaint: output.complaint() }.into())
    }

    /// How it ended, and its standard error.
    fn read_by(
        mut self,
        read: &mut (dyn FnMut(&mut BufReader<ChildStdout>) -> Result<(), LabError> + Send),
    ) -> Result<(ExitStatus, String), LabError> {
        if let Some(missing) = self.missing {
            return Err(ToolError::Missing(missing).into());
        }
        self.command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let failed = |source| ToolError::Start { program: self.program, source };
        let mut child = self.command.spawn().map_err(failed)?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        std::thread::scope(|scope| {
            let reading = scope.spawn(move || match stdout {
                Some(stdout) => read(&mut BufReader::new(stdout)),
                None => Ok(()),
            });
            let said = scope.spawn(move || stderr.map_or_else(Vec::new, |mut e| kept(&mut e)));
            let status = ended(&mut child, &|| reading.is_finished());
            let read = reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            let said = text(&said.join().unwrap_or_default());
            // A reader that gave up closed the pipe, of which the helper died: its reason comes first.
            let status = status?;
            read?;
            Ok((status, said))
        })
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
        Err(ToolError::Failed { program, complaint: output.complaint() }.into())
    }
}

/// Waits for a helper. Ends it, and what it started, when a signal is pending.
fn ended(child: &mut Child, is_read: &dyn Fn() -> bool) -> Result<ExitStatus, LabError> {
    let mut wait = Duration::from_micros(200);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) => {}
            Err(e) => return Err(ToolError::Wait(e).into()),
        }
        if signal::pending().is_some() {
            end_all(child);
            return Err(LabError::Interrupted);
        }
        // Its output is at its end: so is it, soon.
        wait = if is_read() { Duration::from_millis(1) } else { (wait * 2).min(LOOK_MAX) };
        std::thread::park_timeout(wait);
    }
}

/// Ends a helper with its descendants: asked first, and killed half a second later. They are remembered, because one
/// whose parent ended is a descendant no more, and may hold the pipe that is read.
fn end_all(child: &mut Child) {
    const PATIENCE_LOOKS: u32 = 25;
    let of_child = process::Pid(child.id().cast_signed());
    let mut left = process::descendants(of_child);
    for pid in left.iter().chain([&of_child]) {
        // Whoever ended by itself meanwhile needs no signal.
        let _gone = process::kill(*pid, process::SIGTERM);
    }
    let mut child_ended = false;
    for _ in 0..PATIENCE_LOOKS {
        child_ended |= matches!(child.try_wait(), Ok(Some(_)));
        left.retain(|pid| process::kill(*pid, 0).is_ok());
        if child_ended && left.is_empty() {
            return;
        }
        std::thread::park_timeout(Duration::from_millis(20));
    }
    left.extend(process::descendants(of_child));
    for pid in left {
        let _gone = process::kill(pid, process::SIGKILL);
    }
    let _gone = child.kill();
    let _collected = child.wait();
}

/// What a pipe holds until its end, up to a limit.
fn kept(pipe: &mut dyn Read) -> Vec<u8> {
    let mut all = Vec::new();
    // A pipe that breaks is at its end.
    let _end = pipe.take(OUTPUT_BYTES_MAX).read_to_end(&mut all);
    let _end = std::io::copy(pipe, &mut std::io::sink());
    all
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
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
