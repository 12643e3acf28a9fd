// SPDX-License-Identifier: MIT OR Apache-2.0
//! Starts other programs: cargo, git, rustup, and the tool itself in its tests.
//!
//! Every child is waited for; one with a time limit is killed at its end.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use crate::root;

/// A command that inherits this one's terminal.
#[expect(clippy::disallowed_methods, reason = "xtask's one launcher: every caller waits for it")]
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}

/// Cargo, the one that started this program.
pub(crate) fn cargo(project: &Path) -> Command {
    let mut c = command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    c.current_dir(project);
    // Set by the cargo that runs xtask: they would make the inner one rebuild what it need not.
    for name in ["CARGO_MANIFEST_DIR", "CARGO_MANIFEST_PATH", "CARGO_PKG_NAME"] {
        c.env_remove(name);
    }
    // What is needed to compile a part again is five of nine gigabytes. Who works on a part has it, or gets it by his own `cargo build`.
    if root::is_fresh(project) && std::env::var_os("CARGO_INCREMENTAL").is_none() {
        c.env("CARGO_INCREMENTAL", "0");
    }
    c
}

/// The tool in the profile of the tests, for stages to which its speed does not matter.
pub(crate) fn tool(project: &Path) -> anyhow::Result<PathBuf> {
    compiled_for(project, "knobs")?;
    let built = root::target(project).join("debug/tailbound");
    built.canonicalize().with_context(|| built.display().to_string())
}

/// Compiles an integration test and what it needs, which are programs and libraries of the same package.
///
/// Of the whole workspace, as the stage `build` does: `-p PACKAGE` would choose other features of shared dependencies, and then
/// two dozen crates are compiled once more.
pub(crate) fn compiled_for(project: &Path, test: &str) -> anyhow::Result<()> {
    succeed(cargo(project).args(["test", "--quiet", "--workspace", "--no-run", "--test", test]))
}

/// This program again, with the tool's own command line and catalogues compiled in (feature `pages`), and its words.
pub(crate) fn with_pages(project: &Path, words: &[&OsStr]) -> anyhow::Result<()> {
    let mut again = cargo(project);
    // The profile of the tests: they compile the same crates.
    again.args(["run", "--quiet", "--profile", "test", "-p", "xtask", "--features", "pages", "--"]);
    succeed(again.args(words))
}

/// A command line as a person would type it.
pub(crate) fn shown(c: &Command) -> String {
    let words = std::iter::once(c.get_program()).chain(c.get_args());
    words.map(|w| w.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

/// Runs to the end; an error if it could not be started.
pub(crate) fn status(c: &mut Command) -> anyhow::Result<ExitStatus> {
    let line = shown(c);
    c.status().with_context(|| format!("cannot start `{line}`"))
}

/// Runs to the end and gives what it wrote.
pub(crate) fn output(c: &mut Command) -> anyhow::Result<Output> {
    let line = shown(c);
    c.stdin(Stdio::null()).output().with_context(|| format!("cannot start `{line}`"))
}

/// Runs to the end; an error unless it succeeded.
pub(crate) fn succeed(c: &mut Command) -> anyhow::Result<()> {
    let status = status(c)?;
    if !status.success() {
        bail!("`{}` failed ({status})", shown(c));
    }
    Ok(())
}

/// Is there such a program on the path?
pub(crate) fn exists(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

/// Runs to the end and hands every line of standard output to `each`, which is also told whenever `limit` went by without one.
pub(crate) fn lines(
    c: &mut Command,
    limit: Duration,
    mut each: impl FnMut(Line<'_>),
) -> anyhow::Result<ExitStatus> {
    let line = shown(c);
    let mut child = c
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start `{line}`"))?;
    let out = child.stdout.take().context("its output is no pipe")?;
    let (sender, receiver) = mpsc::channel();
    // Ends with the pipe.
    let reader = thread::spawn(move || {
        let mut out = BufReader::new(out);
        let mut bytes = Vec::new();
        while out.read_until(b'\n', &mut bytes)? > 0 {
            if sender.send(std::mem::take(&mut bytes)).is_err() {
                break;
            }
        }
        std::io::Result::Ok(())
    });
    loop {
        match receiver.recv_timeout(limit) {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                each(Line::Said(text.trim_end_matches(['\n', '\r'])));
            }
            Err(RecvTimeoutError::Timeout) => each(Line::Silent(child.id())),
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    match reader.join() {
        Ok(read) => read?,
        Err(panic) => std::panic::resume_unwind(panic),
    }
    Ok(child.wait()?)
}

/// What came of waiting for a line.
pub(crate) enum Line<'a> {
    /// One, without its end.
    Said(&'a str),
    /// None within the limit, from this process.
    Silent(u32),
}

/// Runs with its output in `log`; `None` if it was still running at the end of `limit` and was
/// killed.
pub(crate) fn limited(
    c: &mut Command,
    log: &Path,
    limit: Duration,
) -> anyhow::Result<Option<ExitStatus>> {
    let line = shown(c);
    let file = std::fs::File::create(log).with_context(|| log.display().to_string())?;
    let mut child = c
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        .spawn()
        .with_context(|| format!("cannot start `{line}`"))?;
    wait_until(&mut child, Instant::now() + limit)
}

fn wait_until(child: &mut Child, end: Instant) -> anyhow::Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= end {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        pause();
    }
}

#[expect(clippy::disallowed_methods, reason = "a chore waiting for a child; Ctrl-C ends both")]
fn pause() {
    std::thread::sleep(Duration::from_millis(20));
}
