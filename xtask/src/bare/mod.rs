// SPDX-License-Identifier: MIT OR Apache-2.0
//! The README's two commands on a machine that has nothing but Rust: `cargo xtask bare`.
//!
//! A run of everything takes an hour or two, so what was verified is noted in
//! `scripts/bare.verified`, a line for each case with a hash of what the case depends on: scripts,
//! Makefile, profiles, the README's words. While the hash is the same there is nothing to do. When
//! it is not, `make test` tries the steps before compiling in every root (minutes) and names the
//! cases that are due; it runs those too where `TAILBOUND_REQUIRE` has `bare`.
//! Not here: how a root is made and entered (`room`), what a case depends on (`inputs`).

mod inputs;
#[cfg(test)]
mod packages;
mod room;

pub(crate) use room::{base, missing, with_systemd};

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};

use crate::root;
use crate::stages::deadline;
use crate::stages::tally::Tally;

/// Debian's releases that are tried.
pub(crate) const SUITES: [&str; 2] = ["bookworm", "trixie"];
const USERS: [&str; 2] = ["root", "user"];
/// `deps`: what comes before compiling.
const COMMANDS: [&str; 3] = ["deps", "demo", "test"];

/// Set inside a bare root, where the stage must not begin another.
pub(crate) const INSIDE: &str = "TAILBOUND_BARE";

/// One command of one user in one root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Case {
    suite: &'static str,
    user: &'static str,
    command: &'static str,
}

impl Case {
    fn reach(self) -> inputs::Reach {
        match self.command {
            "deps" => inputs::Reach::BeforeCompiling,
            _ => inputs::Reach::Whole,
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.suite, self.user, self.command)
    }
}

fn cases() -> impl Iterator<Item = Case> {
    SUITES.into_iter().flat_map(|suite| {
        USERS.into_iter().flat_map(move |user| {
            COMMANDS.into_iter().map(move |command| Case { suite, user, command })
        })
    })
}

/// `cargo xtask bare [--suite S] [--user root|user] [--command deps|demo|test]`.
pub(crate) fn command(words: &[&str]) -> anyhow::Result<()> {
    let mut chosen: Vec<Case> = cases().collect();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let value = rest.next().with_context(|| format!("{word} needs a value"))?;
        chosen.retain(|c| match *word {
            "--suite" => c.suite == *value,
            "--user" => c.user == *value,
            "--command" => c.command == *value,
            _ => false,
        });
        if chosen.is_empty() {
            bail!(
                "`{word} {value}`: choose --suite {}, --user {}, --command {}",
                SUITES.join("|"),
                USERS.join("|"),
                COMMANDS.join("|")
            );
        }
    }
    let project = root::project()?;
    if let Some(why) = room::missing() {
        bail!("a bare root cannot be made here: {why}");
    }
    let mut failed = Vec::new();
    for case in chosen {
        println!("{case}: begins");
        match verify(&project, case) {
            Ok(seconds) => println!("{case}: passed in {seconds} s"),
            Err(e) => {
                println!("{case}: failed: {e:#}");
                failed.push(case.to_string());
            }
        }
    }
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}

/// The stage of `make test`.
pub(crate) fn stage(project: &Path) -> anyhow::Result<Tally> {
    let mut tally = Tally::default();
    if std::env::var_os(INSIDE).is_some() {
        tally.skip("a bare root", "bare-outside", "this is one");
        return Ok(tally);
    }
    let all = std::env::var("TAILBOUND_REQUIRE").unwrap_or_default();
    let all = all.split(',').any(|c| c.trim() == "bare");
    for case in cases() {
        let name = format!("on a bare machine: {case}");
        if verified(project, case)? {
            tally.pass(&name);
        } else if let Some(why) = room::missing() {
            tally.skip(&name, "bare", &format!("its scripts changed, and {why}"));
        } else if deadline::is_over() {
            tally.absorb(deadline::left_out(&name));
        } else if case.command == "deps" || all {
            tally.add(&name, verify(project, case).map(drop));
        } else {
            let Case { suite, user, command } = case;
            let how = format!("--suite {suite} --user {user} --command {command}");
            tally.skip(&name, "bare", &format!("its scripts changed: `cargo xtask bare {how}`"));
        }
    }
    Ok(tally)
}

/// Runs one case and notes that it passed; the seconds it took. What is cloned is what is committed:
/// nothing is noted for scripts that are not.
fn verify(project: &Path, case: Case) -> anyhow::Result<u64> {
    let begun = std::time::Instant::now();
    let (hash, committed) = (inputs::hash(project, case.reach())?, inputs::committed(project)?);
    room::Room::make(project, case)?.run(case)?;
    if committed {
        note(project, case, &hash)?;
    } else {
        println!("{case}: not noted, because scripts are changed and not committed");
    }
    Ok(begun.elapsed().as_secs())
}

fn notes(project: &Path) -> PathBuf {
    project.join("scripts/bare.verified")
}

/// `SUITE USER COMMAND HASH`, if this case passed with what it depends on now.
fn verified(project: &Path, case: Case) -> anyhow::Result<bool> {
    let wanted = format!("{case} {}", inputs::hash(project, case.reach())?);
    let text = fs::read_to_string(notes(project)).unwrap_or_default();
    Ok(text.lines().any(|l| l == wanted))
}

fn note(project: &Path, case: Case, hash: &str) -> anyhow::Result<()> {
    let path = notes(project);
    let text = fs::read_to_string(&path).unwrap_or_default();
    let mut lines: Vec<String> = text
        .lines()
        .filter(|l| !l.starts_with(&format!("{case} ")) && !l.starts_with('#') && !l.is_empty())
        .map(str::to_owned)
        .collect();
    lines.push(format!("{case} {hash}"));
    lines.sort();
    let head = "# Written by `cargo xtask bare`: what passed on a bare machine, and a hash of the scripts it ran.\n";
    fs::write(&path, format!("{head}{}\n", lines.join("\n")))
        .with_context(|| path.display().to_string())
}
