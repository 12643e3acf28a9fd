// SPDX-License-Identifier: MIT OR Apache-2.0
//! The way to a shell on a machine: `sh` here, ssh(1) with the user's own configuration, or another program.
//!
//! Context: COLD. What is said to the shell is quoted here and nowhere else.

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::EngineError;

/// Seconds without an answer after which ssh asks, and how often it asks: then the machine is gone.
const ALIVE_EVERY_S: u32 = 15;
const ALIVE_MOST: u32 = 3;

/// `text` as one word of a shell.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// How a shell is started on a machine: a program of this one, and what it is told before `sh -c SCRIPT`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Way {
    /// None: the shell of this machine.
    words: Vec<String>,
    /// What it is told goes through a login shell there.
    login: bool,
}

impl Way {
    /// To this machine.
    pub(super) fn here() -> Self {
        Self::default()
    }

    /// By ssh(1), with `options` of it.
    pub(super) fn ssh(host: &str, config: Option<&Path>, options: &[String]) -> Self {
        let mut words = vec!["ssh".to_owned()];
        if let Some(config) = config {
            words.extend(["-F".to_owned(), config.display().to_string()]);
        }
        words.extend(options.iter().cloned());
        let alive = format!("ServerAliveInterval={ALIVE_EVERY_S}");
        let most = format!("ServerAliveCountMax={ALIVE_MOST}");
        for word in ["-T", "-o", "BatchMode=yes", "-o", &alive, "-o", &most, "--", host] {
            words.push(word.to_owned());
        }
        Self { words, login: true }
    }

    /// Is it this machine's own shell?
    pub(super) fn is_here(&self) -> bool {
        self.words.is_empty()
    }

    /// By a program that hands its words on as they are.
    pub(super) fn program(words: Vec<String>) -> Self {
        Self { words, login: false }
    }
}

/// A process that runs `script` there.
pub(super) fn command(way: &Way, script: &str) -> Command {
    // The login shell may be any: it starts sh, which all have.
    let script = if way.login {
        vec![format!("exec sh -c {}", quoted(script))]
    } else {
        vec!["sh".to_owned(), "-c".to_owned(), script.to_owned()]
    };
    started(way.words.iter().chain(&script))
}

/// A program of this machine with its words.
#[expect(
    clippy::disallowed_methods,
    reason = "no run depends on it: with its input closed it ends"
)]
pub(super) fn started<'a>(words: impl IntoIterator<Item = &'a String>) -> Command {
    let mut words = words.into_iter();
    let mut command = Command::new(words.next().map_or("sh", String::as_str));
    command.args(words);
    // Ctrl-C is for us alone: what runs there is ended in order, by the end of its input.
    command.process_group(0);
    command
}

/// Runs `script` there with `input`, and gives what it printed.
pub(super) fn ask(
    way: &Way,
    what: &'static str,
    script: &str,
    input: Option<File>,
) -> Result<String, EngineError> {
    answered(command(way, script), what, input)
}

/// Runs a program of this machine, and gives what it printed.
pub(super) fn tell(words: &[String], what: &'static str) -> Result<String, EngineError> {
    answered(started(words), what, None)
}

fn answered(
    mut command: Command,
    what: &'static str,
    input: Option<File>,
) -> Result<String, EngineError> {
    let input = input.map_or_else(Stdio::null, Stdio::from);
    let output = command.stdin(input).output();
    let Output { status, stdout, stderr } = output.map_err(|e| not_started(&command, what, &e))?;
    if !status.success() {
        let said = String::from_utf8_lossy(&stderr);
        let last = said.trim().lines().last().unwrap_or("it said nothing");
        let how = tailbound_sys::process::ended(status);
        return Err(EngineError::failed(what, format!("{last} ({how})")));
    }
    Ok(String::from_utf8_lossy(&stdout).into_owned())
}

/// Why a program of this machine did not start, with its name.
pub(super) fn not_started(command: &Command, what: &'static str, e: &io::Error) -> EngineError {
    EngineError::failed(what, format!("{}: {e}", command.get_program().display()))
}
