// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs `cargo test` and counts what its test programs say.
//!
//! A test that cannot run prints `skipped: why` and returns; the test program
//! counts it as passed, here it is counted as skipped. That needs `--show-output`, whose
//! noise is left out again, but for what failed.
//! A test program that says nothing for a long time is ended, with what it waited for told: CI's own limit ends everything, and tells
//! nothing.
//! Source: the rustc book, "Tests", default output format.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use super::stuck;
use super::tally::Tally;
use crate::exec::{self, Line};

/// No test takes as long, on a busy machine either.
pub(super) const SILENCE: Duration = Duration::from_secs(15 * 60);

/// The fault campaign: one test at a time, and nothing beside it, for it looks for what is left on
/// the machine.
pub(crate) fn faults(project: &Path) -> anyhow::Result<Tally> {
    let mut cargo = exec::cargo(project);
    cargo.args(["test", "--workspace", "--test", "faults", "--no-fail-fast"]);
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
pub(super) fn counted(cargo: &mut Command) -> anyhow::Result<Tally> {
    let mut reader = Reader::default();
    let (errors, written) = io::pipe()?;
    cargo.stderr(written);
    let errors = thread::spawn(move || causes(BufReader::new(errors)));
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
    // Else its end of the pipe stays open.
    cargo.stderr(Stdio::inherit());
    let causes = match errors.join() {
        Ok(causes) => causes?,
        Err(panic) => std::panic::resume_unwind(panic),
    };
    let mut tally = reader.finish();
    if !status.success() && !tally.has_failed() {
        let causes = causes.join("; ");
        tally.fail("cargo test", format!("a test program did not compile or died: {causes}"));
    }
    Ok(tally)
}

/// Shows the errors that cargo writes, and returns those that name a program and how it ended.
fn causes(errors: impl BufRead) -> io::Result<Vec<String>> {
    let mut causes = Vec::new();
    for line in errors.split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        eprintln!("{line}");
        let said = line.trim_start();
        let ended = said.strip_prefix("process didn't exit successfully: ");
        if ended.is_some() || said.starts_with("error: could not compile") {
            causes.push(ended.unwrap_or(said).to_owned());
        }
    }
    Ok(causes)
}

/// Follows the output of test programs: one after the other.
#[derive(Debug, Default)]
pub(super) struct Reader {
    tally: Tally,
    /// How many tests the program at hand has, and how many of them ended.
    pub(super) tests: usize,
    pub(super) ended: usize,
    /// Those of the program at hand that ended well, or were skipped.
    well: BTreeSet<String>,
    failed: BTreeSet<String>,
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
    pub(super) fn line(&mut self, line: &str) -> bool {
        if let Some(result) = line.strip_prefix("test result: ") {
            self.close(result);
            return true;
        }
        if let Some(rest) = line.strip_prefix("running ")
            && line.ends_with([' ', 's', 't'])
        {
            self.open(rest.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0));
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
        self.ended += usize::from(test_line(line).is_some());
        match test_line(line) {
            Some((name, "FAILED")) => {
                self.failed.insert(name.to_owned());
                return true;
            }
            Some((name, "ok")) => drop(self.well.insert(name.to_owned())),
            _ => {}
        }
        if let Some((name, state)) = test_line(line)
            && state.starts_with("ignored")
            // The inner half of a test that runs it in a process of its own: it does run.
            && !(state.contains("run by `") || state.contains("started by"))
        {
            self.tally.leave_out(name, state);
        }
        self.in_failures || !self.running
    }

    fn open(&mut self, tests: usize) {
        (self.tests, self.ended) = (tests, 0);
        self.running = true;
        self.in_failures = false;
        self.showing = None;
        self.slow.clear();
    }

    /// The test program at hand was ended.
    pub(super) fn hung(&mut self) {
        let tests = Vec::from_iter(std::mem::take(&mut self.slow)).join(", ");
        let limit_min = SILENCE.as_secs() / 60;
        self.tally.fail("a test program", format!("hung for {limit_min} minutes in: {tests}"));
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
        self.skipped.retain(|name, _| !self.failed.contains(name));
        for name in std::mem::take(&mut self.failed) {
            self.tally.fail(&format!("test {name}"), "see above");
        }
        // What a test's children write beside its name hides the name: the sum counts.
        let skipped = std::mem::take(&mut self.skipped);
        let well = std::mem::take(&mut self.well).into_iter();
        let nameless = (1..).map(|n| format!("a test ({n})"));
        let well = well.filter(|name| !skipped.contains_key(name)).chain(nameless);
        for name in well.take(passed.saturating_sub(skipped.len())) {
            self.tally.pass(&name);
        }
        for (name, why) in skipped {
            self.tally.leave_out(&name, why);
        }
        self.running = false;
        self.in_failures = false;
        self.showing = None;
    }

    pub(super) fn finish(mut self) -> Tally {
        if self.running {
            for name in std::mem::take(&mut self.failed) {
                self.tally.fail(&format!("test {name}"), "see above");
            }
            self.tally.fail("a test program", "died before its result");
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
        assert_eq!(Vec::from_iter(tally.failed()), [("test c", "see above")]);
        assert_eq!(Vec::from_iter(tally.skipped()), [("d", "ignored, slow"), ("b", "needs root")]);
        assert_eq!(
            Vec::from_iter(tally.checks().iter().map(|c| c.name.as_str())),
            ["d", "test c", "a", "e", "b"]
        );
        assert!(shown.contains("left != right") && shown.contains("skipped: needs root"));
        assert!(!shown.contains("hello") && !shown.contains("test a"));
    }

    #[test]
    fn reasons_written_past_the_capture_count_too() {
        let text = "running 2 tests\ntest a ... skipped: no qemu\nok\ntest b ... ok\n\
                    test result: ok. 2 passed; 0 failed; 0 ignored;\n";
        let (tally, _) = read(text);
        assert_eq!(Vec::from_iter(tally.skipped()), [("a", "no qemu")]);
        assert_eq!(tally.passed(), 1);
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
        let tally = reader.finish();
        assert_eq!(
            Vec::from_iter(tally.failed()),
            [("a test program", "hung for 15 minutes in: b")]
        );
    }

    #[test]
    fn cargo_names_the_program_that_died_and_what_did_not_compile() {
        let errors = "   Compiling a v1\nerror: could not compile `a` (lib test) due to 1 error\n\
            error: test failed, to rerun pass `-p b --test c`\n\nCaused by:\n  process didn't exit \
            successfully: `/deps/c-1` (signal: 6, SIGABRT: process abort signal)\n";
        assert_eq!(
            causes(errors.as_bytes()).unwrap(),
            [
                "error: could not compile `a` (lib test) due to 1 error",
                "`/deps/c-1` (signal: 6, SIGABRT: process abort signal)"
            ]
        );
    }

    #[test]
    fn a_program_that_died_is_a_failure() {
        let (tally, _) = read("running 2 tests\ntest a ... ok\n");
        assert_eq!(tally.failed().count(), 1);
    }
}
