// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stage `tests`: the test programs of the workspace, side by side, each with its lines kept together.
//!
//! Half of what they do is waiting. Those that change settings of the machine run one after the other, the others
//! beside them; at the end the examples of the documentation.
//! Not here: what a line of a test program means (`libtest`).
//! Source: the cargo book, "External tools", JSON messages.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
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
use crate::root;

/// Test programs that change settings of the machine and look whether they are put back.
const SETTINGS: &[&str] =
    &["tailbound::cli", "tailbound::knobs", "tailbound-tune (lib)", "tailbound-tune::it"];
/// What takes longest of the others, most of it waiting: begun first.
const LONG: &[&str] =
    &["tailbound::engines", "tailbound::agent", "tailbound-fleet::it", "tailbound-import::memory"];
/// So many of the others run at once.
const OTHERS: usize = 2;

/// A program that says nothing worth showing for so long says how far it is.
const PROGRESS: Duration = Duration::from_secs(30);

/// What it does with the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hold {
    /// Changes settings: one of these at a time.
    Settings,
    /// Leaves them alone.
    Nothing,
}

/// One test program that cargo built.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TestProgram {
    /// Package and target.
    name: String,
    hold: Hold,
    path: PathBuf,
    /// The folder of its package, in which cargo starts it.
    folder: PathBuf,
}

/// Compiles the test programs of the workspace, and the programs that they start.
fn compiling(project: &Path) -> Command {
    let mut cargo = exec::cargo(project);
    cargo.args(["test", "--workspace", "--no-run"]);
    cargo
}

/// The test programs of the workspace compile.
pub(crate) fn build(project: &Path) -> anyhow::Result<Tally> {
    Ok(Tally::one("the tests compile", exec::succeed(&mut compiling(project))))
}

/// The folder of `tailbound` and `tailbound-server`, as they are compiled for the tests.
pub(super) fn own(project: &Path) -> anyhow::Result<PathBuf> {
    exec::succeed(compiling(project).arg("--quiet"))?;
    Ok(root::target(project).join("debug"))
}

/// All of them, and the examples of the documentation.
pub(crate) fn all(project: &Path) -> anyhow::Result<Tally> {
    let (settings, mut others): (Vec<_>, Vec<_>) =
        built(project)?.into_iter().partition(|p| p.hold == Hold::Settings);
    others.sort_by_key(|p| !LONG.contains(&p.name.as_str()));
    let queues = [Mutex::new(settings.into_iter()), Mutex::new(others.into_iter())];
    let total = Mutex::new(Tally::default());
    let done = |tally: Tally| total.lock().unwrap_or_else(PoisonError::into_inner).absorb(tally);
    let [settings, others] = &queues;
    let take = |queue: &Mutex<std::vec::IntoIter<TestProgram>>| {
        queue.lock().unwrap_or_else(PoisonError::into_inner).next()
    };
    std::thread::scope(|scope| {
        for queue in [settings].into_iter().chain([others; OTHERS]) {
            scope.spawn(move || {
                while let Some(program) = take(queue) {
                    done(tried(&program).unwrap_or_else(|e| Tally::one(&program.name, Err(e))));
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
    let mut cargo = compiling(project);
    cargo.args(["--quiet", "--message-format=json-render-diagnostics"]);
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
    let target = message["target"]["name"].as_str()?;
    let name = match message["target"]["kind"][0].as_str()? {
        "test" => format!("{package}::{target}"),
        kind => format!("{package} ({kind})"),
    };
    let hold = if SETTINGS.contains(&name.as_str()) { Hold::Settings } else { Hold::Nothing };
    Some(TestProgram { name, hold, path, folder })
}

/// Runs one, and shows what is worth it when it has ended.
fn tried(program: &TestProgram) -> anyhow::Result<Tally> {
    let begun = Instant::now();
    let mut command: Command = exec::command(&program.path);
    command.arg("--show-output").current_dir(&program.folder);
    command.env("CARGO_MANIFEST_DIR", &program.folder);
    // Each takes the machine from its own programs alone: another test program measures beside it.
    let lock = tempfile::tempdir()?;
    // As /run/lock: some tests run as another user.
    fs::set_permissions(lock.path(), Permissions::from_mode(0o1777))?;
    command.env("TAILBOUND_LOCK_FOLDER", lock.path());
    let (mut reader, mut shown, mut said) = (Reader::default(), String::new(), Instant::now());
    let status = exec::lines(&mut command, SILENCE, |line| match line {
        Line::Said(line) => {
            // The sum is said below, of what was skipped as well.
            if reader.line(line) && !line.is_empty() && !line.starts_with("test result: ") {
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
    if !tally.checks().is_empty() {
        let (name, line) = (&program.name, tally.line());
        println!("{shown}    {name}: {line} ({} s)", begun.elapsed().as_secs());
    }
    Ok(tally.of(&program.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_cargo_names_a_test_program() {
        let message = |test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/p/crates/base/tailbound-sys/Cargo.toml","target":{{"kind":["test"],"name":"hot_path"}},"profile":{{"test":{test}}},"executable":{executable}}}"#
            )
        };
        let found = program(&message(true, "\"/p/target/debug/deps/hot_path-1\"")).unwrap();
        assert_eq!(found.name, "tailbound-sys::hot_path");
        assert_eq!(found.hold, Hold::Nothing);
        assert_eq!(found.folder, Path::new("/p/crates/base/tailbound-sys"));
        assert_eq!(program(&message(true, "null")), None);
        assert_eq!(program(&message(false, "\"/p/target/debug/tailbound\"")), None);
        assert_eq!(program("   Compiling"), None);
    }
}
