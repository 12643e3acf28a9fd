// SPDX-License-Identifier: MIT OR Apache-2.0
//! Machines that others share out: a campaign on nodes of Slurm and places of labgrid, and the examples for LAVA and Kubernetes.
//! Of its own, as each measures this machine: cargo runs it alone.
//!
//! ```text
//! slurm.rs    real daemons on loopback        labgrid.rs the same
//! examples.rs what their files say is what the program does
//! ```
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::disallowed_methods, reason = "children and pauses of tests")]

mod examples;
mod labgrid;
mod slurm;
#[expect(dead_code, reason = "its other user needs more")]
#[path = "../../../tailbound-fleet/tests/sshd/mod.rs"]
mod sshd;

use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tailbound_sys::process::{Pid, kill};

/// How long a test waits for what must come: no statement about this machine, however busy it is.
const PATIENCE: Duration = Duration::from_secs(180);

/// One run on one CPU, of 200 loops.
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

fn status(output: &Output) -> i32 {
    output.status.code().unwrap_or(-1)
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
