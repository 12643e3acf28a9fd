// SPDX-License-Identifier: MIT OR Apache-2.0
//! A process between the run and one command: it ends the command and all that the command started, when its time is
//! over, when it has ended itself, and when the run is gone.
//!
//! Context: COLD, in a process of its own with one thread.
//! Source: prctl(2), PR_SET_PDEATHSIG and PR_SET_CHILD_SUBREAPER.

use std::ffi::OsString;
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use tailbound_sys::environment::Environment;
use tailbound_sys::process::{self, ChildSignals, Pid, SIGKILL};
use tailbound_sys::spawn::Spawn;
use tailbound_sys::{SysError, ipc};

/// As timeout(1) ends.
pub(super) const TIME_IS_UP: u8 = 124;
/// The command could not be started.
const NOT_STARTED: u8 = 125;
/// Ended before the command did.
const CUT_OFF: u8 = 126;

/// Gives the command its variables, which are the words behind it: so nothing of them has to be quoted.
const SCRIPT: &str = r#"export "$@"; exec /bin/sh -c "$0""#;

/// Runs a command for at most `limit_ms`; `words` are the command and its variables as `NAME=VALUE`. The body of the
/// hidden `action-guard` subcommand: call it before the process starts any thread.
#[must_use]
pub fn guard_main(limit_ms: u64, words: &[OsString]) -> ExitCode {
    process::set_name("action-guard");
    let ended = guarded(Duration::from_millis(limit_ms), words);
    // Also what the command left behind.
    let left = process::kill_descendants();
    let say = |text: String| {
        // Without a reader nobody misses it.
        writeln!(std::io::stderr(), "tailbound: {text}").unwrap_or_default();
    };
    if left > 0 {
        say(format!("{left} processes of the command could not be ended"));
    }
    match ended {
        Ok(status) => ExitCode::from(status),
        Err(e) => {
            say(format!("the command was not started: {e}"));
            ExitCode::from(NOT_STARTED)
        }
    }
}

fn guarded(limit: Duration, words: &[OsString]) -> Result<u8, SysError> {
    let signals = ChildSignals::open()?;
    process::become_subreaper()?;
    let begun = Instant::now();
    let mut arguments = vec![OsString::from("-c"), SCRIPT.into()];
    arguments.extend(words.iter().cloned());
    let shell = Spawn {
        program: Path::new("/bin/sh"),
        arguments: &arguments,
        descriptors: &[],
        pid_namespace: false,
        new_session: false,
        death_signal: SIGKILL,
        cpus: &[],
        environment: Environment::Inherited,
    }
    .start()?;
    loop {
        let left = limit.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return Ok(TIME_IS_UP);
        }
        // One more: the wait is cut to whole ms.
        let ms = i32::try_from(left.as_millis()).unwrap_or(i32::MAX).saturating_add(1);
        ipc::wait_readable(&[signals.as_fd()], ms)?;
        let asked = signals.take();
        if let Some(status) = reaped(shell) {
            return Ok(shown(status));
        }
        if asked.is_some() {
            return Ok(CUT_OFF);
        }
    }
}

/// Collects what has ended; how `shell` did, if it has.
fn reaped(shell: Pid) -> Option<ExitStatus> {
    let mut of_shell = None;
    while let Some((pid, status)) = process::reap_any() {
        if pid == shell {
            of_shell = Some(status);
        }
    }
    of_shell
}

/// As a shell shows it.
fn shown(status: ExitStatus) -> u8 {
    let number = status.code().or(status.signal().map(|signal| signal.saturating_add(128)));
    number.and_then(|n| u8::try_from(n).ok()).unwrap_or(u8::MAX)
}
