// SPDX-License-Identifier: MIT OR Apache-2.0
//! The way to a shell on a machine: `sh` here, ssh(1) with the user's own configuration, or another program.
//!
//! What is said to the shell is quoted here and nowhere else.

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::EngineError;

/// Seconds without an answer after which ssh asks, and how often it asks: then the machine is gone.
const ALIVE_EVERY_S: u32 = 15;
const ALIVE_MOST: u32 = 3;

/// What is asked of a machine is answered in this time, or something there hangs.
const ANSWER_MOST_S: u32 = 600;
/// The same where something is sent.
const SENT_MOST_S: u32 = 3600;
/// How timeout(1) ends when the time was up.
const TIME_IS_UP: i32 = 124;

/// `text` as one word of a shell.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// How a shell is started on a machine: a program of this one, and what it is told before `sh -c SCRIPT`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ShellLauncher {
    /// None: the shell of this machine.
    words: Vec<String>,
    /// What it is told goes through a login shell there.
    login: bool,
}

impl ShellLauncher {
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
pub(super) fn command(way: &ShellLauncher, script: &str) -> Command {
    started(&words(way, script))
}

fn words(way: &ShellLauncher, script: &str) -> Vec<String> {
    let mut words = way.words.clone();
    // The login shell may be any: it starts sh, which all have.
    if way.login {
        words.push(format!("exec sh -c {}", quoted(script)));
    } else {
        words.extend(["sh".to_owned(), "-c".to_owned(), script.to_owned()]);
    }
    words
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
    way: &ShellLauncher,
    what: &'static str,
    script: &str,
    input: Option<File>,
) -> Result<String, EngineError> {
    let most_s = if input.is_some() { SENT_MOST_S } else { ANSWER_MOST_S };
    let limited = ["timeout".to_owned(), "-k".to_owned(), "10".to_owned(), most_s.to_string()];
    let all: Vec<String> = limited.into_iter().chain(words(way, script)).collect();
    answered(started(&all), what, input, Some(most_s))
}

/// Runs a program of this machine, and gives what it printed.
pub(super) fn tell(words: &[String], what: &'static str) -> Result<String, EngineError> {
    answered(started(words), what, None, None)
}

fn answered(
    mut command: Command,
    what: &'static str,
    input: Option<File>,
    most_s: Option<u32>,
) -> Result<String, EngineError> {
    let input = input.map_or_else(Stdio::null, Stdio::from);
    let output = command.stdin(input).output();
    let Output { status, stdout, stderr } = output.map_err(|e| not_started(&command, what, &e))?;
    if let Some(most_s) = most_s.filter(|_| status.code() == Some(TIME_IS_UP)) {
        let why = format!("no answer within {} minutes", most_s / 60);
        return Err(EngineError::failed(what, why));
    }
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
