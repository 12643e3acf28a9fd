// SPDX-License-Identifier: MIT OR Apache-2.0
//! The stage `packages`: what a release gives to others, tried where nothing of the project is.
//!
//! The programs are those of the stage `static`, which are built as tests need them.
//! Not here: how packages are made (`release`); how a bare root is made (`bare`).

mod booted;
mod checkers;
mod container;
mod debian;
mod redhat;
mod room;
mod testers;
mod wheel;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use super::tally::Tally;
use crate::cross::Target;
use crate::release::{self, Effort, Release};
use crate::{bare, exec, root};

/// The version that is upgraded from.
const BEFORE: &str = "0.0.1";

/// `cargo xtask test packages`.
pub(crate) fn all(project: &Path) -> anyhow::Result<Tally> {
    let mut tally = Tally::default();
    let target = Target::native();
    if let Some(why) = target.missing() {
        tally.skip("packages", "static", &why);
        return Ok(tally);
    }
    let folder = root::target(project).join("xtask/packages");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let programs = programs(project, &target, &folder.join("programs"))?;
    let now = trial(project, &programs, &folder.join("now"), None)?;
    let before = trial(project, &programs, &folder.join("before"), Some(BEFORE))?;
    for release in [&now, &before] {
        release::make(release)?;
    }
    tally.add("the sums of a release hold", sums_hold(&now.out));
    tally.add("two folders give the same bytes", repeated(project, &folder));
    checkers::all(project, &now, &mut tally)?;
    for suite in bare::SUITES {
        let name = format!("packages in a bare {suite}");
        match bare::missing() {
            Some(why) => tally.skip(&name, "bare-root", &why),
            None if std::env::var_os(bare::INSIDE).is_some() => {
                tally.skip(&name, "bare-outside", "this is one");
            }
            None => match room::BareRoot::of(project, suite, "deb") {
                Ok(room) => debian::all(suite, &room, [&before, &now], &mut tally),
                // No mirror answers.
                Err(e) => tally.skip(&name, "bare-root", &format!("{e:#}")),
            },
        }
    }
    booted::all(project, &now, &mut tally);
    testers::all(project, &now, &folder, &mut tally);
    redhat::all(project, [&before, &now], &mut tally);
    container::all(&now, &folder, &mut tally)?;
    wheel::all(&now, &folder, &mut tally)?;
    Ok(tally)
}

/// A folder of programs, man pages and completions, as `release --programs` takes it.
fn programs(project: &Path, target: &Target, folder: &Path) -> anyhow::Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let built = target.tried(project)?;
    for name in ["tailbound", "tailbound-server"] {
        let to = folder.join(name);
        fs::copy(built.with_file_name(name), &to).with_context(|| to.display().to_string())?;
    }
    // Those of the stage `pages`, which made them from these sources, are made again otherwise.
    for (kind, word) in
        [(crate::pages::Kind::Man, "man"), (crate::pages::Kind::Completions, "completions")]
    {
        let made = root::target(project).join("pages").join(word);
        if !made.is_dir() {
            crate::pages::command(kind, &[&made.to_string_lossy()])?;
        }
        exec::succeed(exec::command("cp").arg("-r").arg(&made).arg(folder.join(word)))?;
    }
    Ok(folder.to_owned())
}

/// A release that is quickly packed.
fn trial(
    project: &Path,
    programs: &Path,
    out: &Path,
    version: Option<&str>,
) -> anyhow::Result<Release> {
    let mut release = Release::of(project, programs, out)?;
    release.effort = Effort::Trial;
    if let Some(version) = version {
        version.clone_into(&mut release.version);
    }
    Ok(release)
}

fn sums_hold(out: &Path) -> anyhow::Result<()> {
    let mut check = exec::command("sha256sum");
    exec::succeed(check.current_dir(out).args(["--check", "--strict", "--quiet", "SHA256SUMS"]))
}

/// A release of small programs, made in two folders; how long it takes to pack large ones says nothing about order and times.
fn repeated(project: &Path, folder: &Path) -> anyhow::Result<()> {
    let mut sums = Vec::new();
    for name in ["one", "another"] {
        let folder = folder.join(name);
        let programs = folder.join("programs");
        for word in ["man", "completions"] {
            fs::create_dir_all(programs.join(word))?;
        }
        for name in ["tailbound", "tailbound-server"] {
            fs::write(programs.join(name), "#!/bin/sh\n")?;
        }
        fs::write(programs.join("man/tailbound.1"), ".TH x 1\n")?;
        for name in ["tailbound.bash", "_tailbound", "tailbound.fish"] {
            fs::write(programs.join("completions").join(name), "x\n")?;
        }
        let release = trial(project, &programs, &folder.join("out"), None)?;
        release::make(&release)?;
        sums.push(fs::read_to_string(folder.join("out/SHA256SUMS"))?);
    }
    let changed = sums[0].lines().zip(sums[1].lines()).find(|(a, b)| a != b);
    let Some((line, _)) = changed else { return Ok(()) };
    let name = line.split_whitespace().last().unwrap_or_default();
    let mut diffoscope = exec::command("diffoscope");
    diffoscope.args(["one", "another"].map(|f| folder.join(f).join("out").join(name)));
    let word = match exec::output(&mut diffoscope) {
        Ok(out) => String::from_utf8_lossy(&out.stdout).into_owned(),
        Err(_) => "diffoscope would say where (Debian package diffoscope-minimal)".into(),
    };
    bail!("{name} differs: {word}")
}
