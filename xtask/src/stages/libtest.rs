// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs `cargo test` and counts what its test programs say.
//!
//! Context: COLD. A test that cannot run prints `skipped: why` and returns; the test program
//! counts it as passed, here it is counted as skipped. That needs `--show-output`, whose
//! noise is left out again, but for what failed.
//! A test program that says nothing for a long time is ended, with what it waited for told: CI's own limit ends everything, and tells
//! nothing.
//! Source: the rustc book, "Tests", default output format.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use super::stuck;
use super::tally::Tally;
use crate::exec::{self, Line};

/// No test takes as long, on a busy machine either.
const SILENCE: Duration = Duration::from_secs(15 * 60);

/// The test programs of the workspace compile.
pub(crate) fn build(project: &Path) -> anyhow::Result<Tally> {
    let mut cargo = exec::cargo(project);
    cargo.args(["test", "--workspace", "--no-run"]);
    Ok(Tally::one("the tests compile", exec::succeed(&mut cargo)))
}

/// All tests of the workspace, documentation tests included.
pub(crate) fn all(project: &Path) -> anyhow::Result<Tally> {
    let mut cargo = exec::cargo(project);
    cargo.args(["test", "--workspace", "--no-fail-fast", "--", "--show-output"]);
    counted(&mut cargo)
}

/// The fault campaign: one test at a time, and nothing beside it, for it looks for what is left on
/// the machine.
pub(crate) fn faults(project: &Path) -> anyhow::Result<Tally> {
    let mut cargo = exec::cargo(project);
    cargo.args(["test", "-p", "tailbound", "--test", "faults", "--no-fail-fast"]);
    cargo.args(["--", "--show-output", "--test-threads=1"]);
    counted(&mut cargo)
}

/// Damaged files of every kind, ten times as many as among the other tests; of the same build.
pub(crate) fn damaged(project: &Path) -> anyhow::Result<Tally> {
    let mut cargo = exec::cargo(project);
    cargo.args(["test", "--workspace", "--test", "hostile", "--no-fail-fast"]);
    cargo.args(["--", "many::", "--show-output"]).env("TAILBOUND_MUTATIONS", "30000");
    counted(&mut cargo)
}

/// Runs one `cargo test` and counts.
pub(crate) fn counted(cargo: &mut std::process::Command) -> anyhow::Result<Tally> {
    let mut reader = Reader::default();
    let status = exec::lines(cargo, SILENCE, |line| match line {
        Line::Said(line) => {
            if reader.line(line) {
                println!("{line}");
            }
        }
        // It compiles, or it hangs.
        Line::Silent(cargo) if reader.running => {
            println!("{}", stuck::told_and_ended(cargo));
            reader.hung();
        }
        Line::Silent(_) => {}
    })?;
    let mut tally = reader.finish();
    if !status.success() && tally.failed.is_empty() {
        tally.failed.push("cargo test: a test program did not compile or died; see above".into());
    }
    Ok(tally)
}

/// Follows the output of test programs.
#[derive(Debug, Default)]
struct Reader {
    tally: Tally,
    /// The test whose output is being shown.
    showing: Option<String>,
    in_failures: bool,
    /// Why each test of the program at hand was skipped.
    skipped: BTreeMap<String, String>,
    /// Skips that no test was named for.
    nameless: usize,
    running: bool,
    /// Tests that run for over a minute.
    slow: BTreeSet<String>,
}

impl Reader {
    /// Takes one line; is it worth showing?
    fn line(&mut self, line: &str) -> bool {
        if let Some(result) = line.strip_prefix("test result: ") {
            self.close(result);
            return true;
        }
        if line.starts_with("running ") && line.ends_with([' ', 's', 't']) {
            self.open();
            return false;
        }
        if line == "failures:" || line == "successes:" {
            self.in_failures = line == "failures:";
            self.showing = None;
            return self.in_failures;
        }
        if let Some(name) = shown_test(line) {
            self.showing = Some(name.to_owned());
            return self.in_failures;
        }
        // Written past the capture, a reason stands behind the name of its test.
        let reason = line
            .split_once("skipped: ")
            .filter(|(before, _)| before.trim().is_empty() || before.trim_end().ends_with("..."));
        if let Some((before, why)) = reason {
            self.skip(before, why);
            return true;
        }
        if let Some(name) = slow_test(line) {
            self.slow.insert(name.to_owned());
        } else if let Some((name, _)) = test_line(line) {
            self.slow.remove(name);
        }
        if let Some((name, "FAILED")) = test_line(line) {
            self.tally.failed.push(format!("test {name}"));
            return true;
        }
        if let Some((name, state)) = test_line(line)
            && state.starts_with("ignored")
            // The inner half of a test that runs it in a process of its own: it does run.
            && !(state.contains("run by `") || state.contains("started by"))
        {
            self.tally.skipped.push(format!("{name}: {state}"));
        }
        self.in_failures || !self.running
    }

    fn open(&mut self) {
        self.running = true;
        self.in_failures = false;
        self.showing = None;
        self.slow.clear();
    }

    /// The test program at hand was ended.
    fn hung(&mut self) {
        let tests = Vec::from_iter(std::mem::take(&mut self.slow)).join(", ");
        let limit_min = SILENCE.as_secs() / 60;
        self.tally.failed.push(format!("a test program hung for {limit_min} minutes in: {tests}"));
        self.running = false;
    }

    fn skip(&mut self, before: &str, why: &str) {
        let named = test_line(before).map(|(name, _)| name.to_owned());
        match named.or_else(|| self.showing.clone()) {
            // A test that says several reasons is still one test.
            Some(name) => drop(self.skipped.entry(name).or_insert_with(|| why.to_owned())),
            None => {
                self.nameless += 1;
                self.skipped.insert(format!("a test ({})", self.nameless), why.to_owned());
            }
        }
    }

    /// One test program ended.
    fn close(&mut self, result: &str) {
        let passed = result
            .split([';', '.'])
            .find_map(|part| part.trim().strip_suffix(" passed"))
            .and_then(|n| n.trim().parse::<usize>().ok())
            .unwrap_or(0);
        // A test that failed after it said `skipped:` is a failure, not a skip.
        let failed = &self.tally.failed;
        self.skipped.retain(|name, _| !failed.contains(&format!("test {name}")));
        self.tally.passed += passed.saturating_sub(self.skipped.len());
        let skipped = std::mem::take(&mut self.skipped);
        self.tally.skipped.extend(skipped.into_iter().map(|(name, why)| format!("{name}: {why}")));
        self.running = false;
        self.in_failures = false;
        self.showing = None;
    }

    fn finish(mut self) -> Tally {
        if self.running {
            self.tally.failed.push("a test program died before its result".into());
        }
        self.tally
    }
}

/// `---- NAME stdout ----`
fn shown_test(line: &str) -> Option<&str> {
    line.strip_prefix("---- ")?.strip_suffix(" ----")?.strip_suffix(" stdout")
}

/// `test NAME ... STATE`
fn test_line(line: &str) -> Option<(&str, &str)> {
    let (name, state) = line.strip_prefix("test ")?.split_once(" ...")?;
    Some((name, state.trim()))
}

/// `test NAME has been running for over 60 seconds`
fn slow_test(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?.split_once(" has been running for over ").map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Tally, String) {
        let mut reader = Reader::default();
        let shown: Vec<&str> = text.lines().filter(|l| reader.line(l)).collect();
        let shown = shown.join("\n");
        (reader.finish(), shown)
    }

    const MIXED: &str = "

running 6 tests
test a ... ok
test b ... ok
test c ... FAILED
test d ... ignored, slow
test inner ... ignored, run by `a` in a process of its own
test e ... ok

successes:

---- a stdout ----
hello

---- b stdout ----
skipped: needs root
skipped: and a network

successes:
    a
    b

failures:

---- c stdout ----
thread 'c' panicked: left != right

failures:
    c

test result: FAILED. 3 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
";

    #[test]
    fn a_skipped_test_is_not_a_passed_one() {
        let (tally, shown) = read(MIXED);
        assert_eq!(tally.line(), "2 passed, 1 failed, 2 skipped");
        assert_eq!(tally.failed, ["test c"]);
        assert_eq!(tally.skipped, ["d: ignored, slow", "b: needs root"]);
        assert!(shown.contains("left != right") && shown.contains("skipped: needs root"));
        assert!(!shown.contains("hello") && !shown.contains("test a"));
    }

    #[test]
    fn reasons_written_past_the_capture_count_too() {
        let text = "running 2 tests\ntest a ... skipped: no qemu\nok\ntest b ... ok\n\
                    test result: ok. 2 passed; 0 failed; 0 ignored;\n";
        let (tally, _) = read(text);
        assert_eq!(tally.skipped, ["a: no qemu"]);
        assert_eq!(tally.passed, 1);
    }

    #[test]
    fn a_program_that_hangs_is_named_with_the_tests_that_had_not_ended() {
        let mut reader = Reader::default();
        for line in [
            "running 3 tests",
            "test a has been running for over 60 seconds",
            "test b has been running for over 60 seconds",
            "test a ... ok",
        ] {
            reader.line(line);
        }
        reader.hung();
        assert_eq!(reader.finish().failed, ["a test program hung for 15 minutes in: b"]);
    }

    #[test]
    fn a_program_that_died_is_a_failure() {
        let (tally, _) = read("running 2 tests\ntest a ... ok\n");
        assert_eq!(tally.failed.len(), 1);
    }
}
