// SPDX-License-Identifier: MIT OR Apache-2.0
//! The way to a shell on a machine: `sh` here, or ssh(1) with the user's own configuration.
//!
//! Context: COLD. What is said to the shell is quoted here and nowhere else.

use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Output, Stdio};

use super::EngineError;
use super::target::Reach;

/// Seconds without an answer after which ssh asks, and how often it asks: then the machine is gone.
const ALIVE_EVERY_S: u32 = 15;
const ALIVE_MOST: u32 = 3;

/// `text` as one word of a shell.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A process that runs `script` there.
#[expect(
    clippy::disallowed_methods,
    reason = "no run depends on it: with its input closed it ends"
)]
pub(super) fn command(reach: &Reach, script: &str) -> Command {
    let mut command = match reach {
        // An agent's machine is reached by nobody: its engine has no shell.
        Reach::Local | Reach::Lab { .. } | Reach::Agent { .. } => {
            let mut sh = Command::new("sh");
            sh.args(["-c", script]);
            sh
        }
        Reach::Ssh { host, config } => {
            let mut ssh = Command::new("ssh");
            if let Some(config) = config {
                ssh.arg("-F").arg(config);
            }
            let alive = format!("ServerAliveInterval={ALIVE_EVERY_S}");
            let most = format!("ServerAliveCountMax={ALIVE_MOST}");
            // The login shell may be any: it starts sh, which all have.
            let words = format!("exec sh -c {}", quoted(script));
            ssh.args(["-T", "-o", "BatchMode=yes", "-o", &alive, "-o", &most, "--", host, &words]);
            ssh
        }
    };
    // Ctrl-C is for us alone: what runs there is ended in order, by the end of its input.
    command.process_group(0);
    command
}

/// Runs `script` there with `input`, and gives what it printed.
pub(super) fn ask(
    reach: &Reach,
    what: &'static str,
    script: &str,
    input: Option<File>,
) -> Result<String, EngineError> {
    let input = input.map_or_else(Stdio::null, Stdio::from);
    let output = command(reach, script).stdin(input).output();
    let Output { status, stdout, stderr } = output.map_err(|e| EngineError::failed(what, e))?;
    if !status.success() {
        let said = String::from_utf8_lossy(&stderr);
        let last = said.trim().lines().last().unwrap_or("it said nothing");
        let how = tailbound_sys::process::ended(status);
        return Err(EngineError::failed(what, format!("{last} ({how})")));
    }
    Ok(String::from_utf8_lossy(&stdout).into_owned())
}
