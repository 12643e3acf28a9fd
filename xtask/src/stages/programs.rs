// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stage `tests`: the test programs of the workspace, side by side, each with its lines kept together.
//!
//! Context: COLD. Half of what they do is waiting. Those that start real-time work, or look at the machine as a whole, run one
//! after the other; beside them run those that only compute, and at their end the examples of the documentation.
//! Not here: what a line of a test program means (`libtest`).
//! Source: the cargo book, "External tools", JSON messages.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::libtest::{self, Reader, SILENCE};
use super::stuck;
use super::tally::Tally;
use crate::exec::{self, Line};

/// Packages whose tests start real-time work, change settings, or look at the machine as a whole.
const MACHINE: &[&str] = &[
    "tailbound",
    "tailbound-capi",
    "tailbound-guest",
    "tailbound-host",
    "tailbound-load",
    "tailbound-monitor",
    "tailbound-probe",
    "tailbound-rt",
    "tailbound-run",
    "tailbound-sys",
    "tailbound-trace",
    "tailbound-tune",
];

/// A program that says nothing worth showing for so long says how far it is.
const PROGRESS: Duration = Duration::from_secs(30);

/// What may run beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Company {
    /// Any that does not want the machine.
    Computes,
    /// No other of these.
    WantsMachine,
}

/// One test program that cargo built.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TestProgram {
    /// Package and target.
    name: String,
    company: Company,
    path: PathBuf,
    /// The folder of its package, in which cargo starts it.
    folder: PathBuf,
}

/// The test programs of the workspace compile.
pub(crate) fn build(project: &Path) -> anyhow::Result<Tally> {
    let mut cargo = exec::cargo(project);
    cargo.args(["test", "--workspace", "--no-run"]);
    Ok(Tally::one("the tests compile", exec::succeed(&mut cargo)))
}

/// All of them, and the examples of the documentation.
pub(crate) fn all(project: &Path) -> anyhow::Result<Tally> {
    let programs = built(project)?;
    let (machine, computing): (VecDeque<_>, VecDeque<_>) =
        programs.into_iter().partition(|p| p.company == Company::WantsMachine);
    let total = Mutex::new(Tally::default());
    let done = |tally: Tally| total.lock().unwrap_or_else(PoisonError::into_inner).absorb(tally);
    std::thread::scope(|scope| {
        for queue in [&machine, &computing] {
            scope.spawn(move || {
                for program in queue {
                    done(tried(program).unwrap_or_else(|e| Tally::one(&program.name, Err(e))));
                }
            });
        }
    });
    let mut documentation = exec::cargo(project);
    documentation.args(["test", "--workspace", "--doc", "--no-fail-fast", "--", "--show-output"]);
    done(libtest::counted(&mut documentation)?.of("documentation"));
    Ok(total.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// What cargo built, from its messages.
fn built(project: &Path) -> anyhow::Result<Vec<TestProgram>> {
    let mut cargo = exec::cargo(project);
    cargo.args(["test", "--workspace", "--no-run", "--quiet"]);
    cargo.arg("--message-format=json-render-diagnostics");
    let out = exec::output(&mut cargo)?;
    ensure!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8_lossy(&out.stdout);
    let programs: Vec<TestProgram> = text.lines().filter_map(program).collect();
    ensure!(!programs.is_empty(), "cargo named no test program");
    Ok(programs)
}

/// The test program that a message of cargo names, if it names one.
fn program(message: &str) -> Option<TestProgram> {
    let message: Value = serde_json::from_str(message).ok()?;
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let path = PathBuf::from(message["executable"].as_str()?);
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
    let package = folder.file_name()?.to_str()?.to_owned();
    let company = match MACHINE.contains(&package.as_str()) {
        true => Company::WantsMachine,
        false => Company::Computes,
    };
    let target = message["target"]["name"].as_str()?;
    let name = match message["target"]["kind"][0].as_str()? {
        "test" => format!("{package}::{target}"),
        kind => format!("{package} ({kind})"),
    };
    Some(TestProgram { name, company, path, folder })
}

/// Runs one, and shows what is worth it when it has ended.
fn tried(program: &TestProgram) -> anyhow::Result<Tally> {
    let begun = Instant::now();
    let mut command: Command = exec::command(&program.path);
    command.arg("--show-output").current_dir(&program.folder);
    command.env("CARGO_MANIFEST_DIR", &program.folder);
    let (mut reader, mut shown, mut said) = (Reader::default(), String::new(), Instant::now());
    let status = exec::lines(&mut command, SILENCE, |line| match line {
        Line::Said(line) => {
            if reader.line(line) {
                shown.push_str(&format!("{line}\n"));
            }
            if said.elapsed() >= PROGRESS {
                println!("    {}: {} of {} tests", program.name, reader.ended, reader.tests);
                said = Instant::now();
            }
        }
        Line::Silent(process) => {
            shown.push_str(&format!("{}\n", stuck::told_and_ended(process)));
            reader.hung();
        }
    })
    .with_context(|| program.name.clone())?;
    let mut tally = reader.finish();
    if !status.success() && !tally.has_failed() {
        tally.fail(&program.name, format!("the test program died: {status}"));
    }
    let (name, line) = (&program.name, tally.line());
    println!("{shown}    {name}: {line} ({} s)", begun.elapsed().as_secs());
    Ok(tally.of(&program.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_cargo_names_a_test_program() {
        let message = |test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/p/crates/tailbound-sys/Cargo.toml","target":{{"kind":["test"],"name":"hot_path"}},"profile":{{"test":{test}}},"executable":{executable}}}"#
            )
        };
        let found = program(&message(true, "\"/p/target/debug/deps/hot_path-1\"")).unwrap();
        assert_eq!(found.name, "tailbound-sys::hot_path");
        assert_eq!(found.company, Company::WantsMachine);
        assert_eq!(found.folder, Path::new("/p/crates/tailbound-sys"));
        assert_eq!(program(&message(true, "null")), None);
        assert_eq!(program(&message(false, "\"/p/target/debug/tailbound\"")), None);
        assert_eq!(program("   Compiling"), None);
    }
}
