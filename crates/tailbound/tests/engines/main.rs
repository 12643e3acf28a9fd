// SPDX-License-Identifier: MIT OR Apache-2.0
//! Machines that others share out: a campaign on nodes of Slurm and places of labgrid, the examples for LAVA and Kubernetes, and the steps for pipelines.
//! Of its own, as each measures this machine: cargo runs it alone.
//!
//! ```text
//! slurm.rs    real daemons on loopback        labgrid.rs the same
//! examples.rs what their files say is what the program does
//! pipelines.rs the steps for GitHub, GitLab and Jenkins
//! ```
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::disallowed_methods, reason = "children and pauses of tests")]

mod examples;
mod labgrid;
mod pipelines;
mod slurm;
#[expect(dead_code, reason = "its other user needs more")]
#[path = "../../../keep/tailbound-fleet/tests/sshd/mod.rs"]
mod sshd;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tailbound_sys::process::{Pid, kill};

/// How long a test waits for what must come: no statement about this machine, however busy it is.
const PATIENCE: Duration = Duration::from_secs(180);

/// One run on one CPU, of 200 loops. Without a load: what is tested beside it needs the machine.
const CAMPAIGN: &str = r#"
name = "short"
[text]
title = "A short one"
authors = ["Nobody"]
year = 2026
published = "nowhere"
machine = "any"
about = "One short run."
[[system]]
id = "any"
name = "any"
kind = "stock"
[[step]]
id = "short"
title = "Short"
told = "short"
ours = "the same"
[step.run]
loops = 200
interval = "1ms"
load = ["none"]
"#;

/// This machine is measured by one fleet at a time: so it is by one test.
fn machine() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The program under test. Who runs tests in the background has Ctrl-C ignored, which children inherit.
fn tailbound() -> Command {
    let mut command = Command::new("env");
    command.args(["--default-signal=INT", env!("CARGO_BIN_EXE_tailbound")]).env("NO_COLOR", "1");
    command
}

/// Sends a signal. By the call: not every machine has kill(1).
fn send(process: u32, signal: &str) {
    let number = match signal {
        "INT" => 2,
        "KILL" => 9,
        "TERM" => 15,
        other => panic!("which signal is {other}?"),
    };
    kill(Pid(process.try_into().unwrap()), number).unwrap();
}

/// What the processes of a test said: the ends of files of logs and of progress, and which processes were started in its folder.
fn logs(folder: &Path) -> String {
    let mut told = String::new();
    for file in fs::read_dir(folder).unwrap().flatten().map(|f| f.path()) {
        if file.extension().is_some_and(|e| e == "log" || e == "said") {
            let text = fs::read(&file).unwrap_or_default();
            let end = text.get(text.len().saturating_sub(2000)..).unwrap_or(&text);
            told += &format!("--- {}\n{}\n", file.display(), String::from_utf8_lossy(end));
        }
    }
    for process in fs::read_dir("/proc").unwrap().flatten().map(|p| p.path()) {
        if fs::read_link(process.join("cwd")).is_ok_and(|at| at.starts_with(folder)) {
            let read = |name: &str| fs::read(process.join(name)).unwrap_or_default();
            let [words, wchan] =
                ["cmdline", "wchan"].map(|f| String::from_utf8_lossy(&read(f)).replace('\0', " "));
            let words: String = words.chars().take(300).collect();
            told += &format!("{}: {words} ({wchan})\n", process.display());
        }
    }
    told
}

fn status(output: &Output) -> i32 {
    output.status.code().unwrap_or(-1)
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
