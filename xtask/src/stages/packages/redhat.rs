// SPDX-License-Identifier: MIT OR Apache-2.0
//! The .rpm in a root: installed with `rpm --root`, measured with, refused and erased.
//!
//! The root is Debian's, because no archive of an rpm distribution can be asked here: what is shown is that files, modes
//! and scripts are right for rpm, not that a distribution's own packages suit them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use anyhow::ensure;

use super::room::BareRoot;
use crate::release::{Release, rpm};
use crate::stages::tally::Tally;
use crate::{bare, exec};

/// All of it.
pub(super) fn all(project: &Path, [before, now]: [&Release; 2], tally: &mut Tally) {
    let name = "rpm --root: install, upgrade, measure, erase";
    if let Some(why) = rpm::missing() {
        tally.skip(name, "rpm", why);
    } else if let Some(why) = bare::missing() {
        tally.skip(name, "bare-root", &why);
    } else if std::env::var_os(bare::INSIDE).is_some() {
        tally.skip(name, "bare-outside", "this is a bare root");
    } else {
        match BareRoot::of(project, "trixie", "rpm") {
            Ok(room) => tally.add(name, tried(&room, before, now)),
            Err(e) => tally.skip(name, "bare-root", &format!("{e:#}")),
        }
    }
}

fn tried(room: &BareRoot, before: &Release, now: &Release) -> anyhow::Result<()> {
    rpm(room, &["--initdb"], &[])?;
    let fresh = room.paths()?;
    // Debian's shell is no package of rpm's.
    accepted(&rpm(room, &["--install", "--nodeps", "--force-debian"], &rpms(before)?)?)?;
    let journal = room.root.join("var/lib/tailbound/tune/000001.jsonl");
    fs::create_dir_all(journal.parent().unwrap_or(&room.root))?;
    fs::write(&journal, "{\"begin\":{}}\n")?;
    accepted(&rpm(room, &["--upgrade", "--nodeps", "--force-debian"], &rpms(now)?)?)?;
    ensure!(journal.is_file(), "upgrading took the journal of a change in force");
    fs::remove_file(&journal)?;
    let said = room.run(
        "cd /tmp; tailbound run -D 2s || [ $? = 5 ]; tailbound-server --version; id -u tailbound",
    )?;
    ensure!(said.contains("Measured: ") && said.contains("tailbound-server"), "{said}");
    fs::write(&journal, "{\"begin\":{}}\n")?;
    let erase = ["--erase", "--force-debian", "tailbound", "tailbound-server"];
    let out = rpm(room, &erase, &[])?;
    let complaint = String::from_utf8_lossy(&out.stderr).into_owned();
    ensure!(room.root.join("usr/bin/tailbound").is_file(), "it was erased with a change in force");
    ensure!(complaint.contains("tailbound tune undo --all"), "{complaint}");
    fs::write(&journal, "{\"begin\":{}}\n{\"ended\":{}}\n")?;
    // The server went with the first attempt.
    let out = rpm(room, &["--erase", "--force-debian", "tailbound"], &[])?;
    accepted(&out)?;
    let now: BTreeSet<PathBuf> = room.paths()?;
    // Folders that others share belong to a distribution's own packages, which are not in this root.
    let is_shared = |path: &PathBuf| {
        room.root.join(path).is_dir() && !path.to_string_lossy().contains("tailbound")
    };
    let left: Vec<&PathBuf> = now.difference(&fresh).filter(|p| !is_shared(p)).collect();
    ensure!(left.is_empty(), "left: {left:?}");
    Ok(())
}

fn rpms(release: &Release) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(&release.out)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "rpm") {
            files.push(path);
        }
    }
    ensure!(files.len() == 2, "{}: {} packages, not 2", release.out.display(), files.len());
    Ok(files)
}

fn rpm(room: &BareRoot, words: &[&str], files: &[PathBuf]) -> anyhow::Result<Output> {
    let mut c = exec::command("rpm");
    exec::output(c.arg("--root").arg(&room.root).args(words).args(files))
}

fn accepted(out: &Output) -> anyhow::Result<()> {
    ensure!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    Ok(())
}
