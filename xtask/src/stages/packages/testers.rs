// SPDX-License-Identifier: MIT OR Apache-2.0
//! Debian's own testers of packages, where this machine has them: what installing and purging leave behind, and the
//! test that a package brings.
//!
//! Both ask a mirror for Debian's lists. They mount within a root: in a namespace of their own, so that nothing stays mounted.
//! Source: piuparts(1), autopkgtest(1), README.running-tests of autopkgtest.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use anyhow::{Context as _, bail};

use super::debian;
use super::room::BareRoot;
use crate::release::Release;
use crate::stages::tally::Tally;
use crate::{bare, exec};

const SUITE: &str = "bookworm";
const LIMIT: Duration = Duration::from_secs(1800);
/// autopkgtest could not use the root, for one because no mirror answered.
const TESTBED_FAILED: i32 = 16;

/// Both.
pub(super) fn all(project: &Path, now: &Release, folder: &Path, tally: &mut Tally) {
    for (program, tried) in [
        ("piuparts", leaves_nothing as fn(&Path, &[PathBuf], &BareRoot) -> (Command, Passing)),
        ("autopkgtest", brings_its_test),
    ] {
        if !exec::exists(program) && !Path::new("/usr/sbin").join(program).is_file() {
            let why = format!("there is no {program} (Debian package {program})");
            tally.skip(program, program, &why);
        } else if let Some(why) = bare::missing() {
            tally.skip(program, "bare-root", &why);
        } else if std::env::var_os(bare::INSIDE).is_some() {
            tally.skip(program, "bare-outside", "this is a bare root");
        } else {
            let room = match BareRoot::with_systemd(project, SUITE, program) {
                Ok(room) => room,
                Err(e) => {
                    tally.skip(program, "bare-root", &format!("{e:#}"));
                    continue;
                }
            };
            let log = folder.join(format!("{program}.log"));
            let ended = debian::debs(now).and_then(|debs| {
                let (mut c, passing) = tried(project, &debs, &room);
                Ok((exec::limited(&mut c, &log, LIMIT)?, passing))
            });
            match ended {
                Ok((Some(status), passing)) if status.code() == passing.unusable => {
                    tally.skip(
                        program,
                        program,
                        &format!("the root could not be used: {}", end(&log)),
                    );
                }
                Ok((status, _)) => tally.add(program, passed(status, &log)),
                Err(e) => tally.fail(program, format!("{e:#}")),
            }
        }
    }
}

/// What its exit status means beside 0.
struct Passing {
    unusable: Option<i32>,
}

/// Installed and purged in a copy of the root, all that is left is a failure.
fn leaves_nothing(_: &Path, debs: &[PathBuf], room: &BareRoot) -> (Command, Passing) {
    let mut c = apart("piuparts");
    c.arg(format!("--existing-chroot={}", room.root.display()));
    c.args(["--distribution", SUITE, "--keep-sources-list", "--no-upgrade-test"]).args(debs);
    (c, Passing { unusable: None })
}

/// `packaging/deb/autopkgtest`, in the root itself.
fn brings_its_test(project: &Path, debs: &[PathBuf], room: &BareRoot) -> (Command, Passing) {
    let mut c = apart("autopkgtest");
    let is_tool =
        |p: &&PathBuf| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with("tailbound_"));
    c.args(debs.iter().find(is_tool)).arg(project.join("packaging/deb/autopkgtest/"));
    c.args(["--", "chroot"]).arg(&room.root);
    (c, Passing { unusable: Some(TESTBED_FAILED) })
}

/// A command whose mounts and processes end with it.
fn apart(program: &str) -> Command {
    let mut c = exec::command("unshare");
    c.args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]);
    c.args(["sh", "-euc", "PATH=$PATH:/usr/sbin exec \"$@\"", "sh", program]);
    c
}

fn passed(status: Option<ExitStatus>, log: &Path) -> anyhow::Result<()> {
    match status {
        Some(status) if status.success() => Ok(()),
        Some(status) => bail!("{status}; {}: {}", log.display(), end(log)),
        None => Err(anyhow::anyhow!("still ran after {} s", LIMIT.as_secs()))
            .with_context(|| log.display().to_string()),
    }
}

/// The last lines of a log.
fn end(log: &Path) -> String {
    let said = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = said.lines().collect();
    lines.get(lines.len().saturating_sub(25)..).unwrap_or_default().join("\n")
}
