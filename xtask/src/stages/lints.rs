// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stages that look at the source: tidy, format, clippy, documentation, the link probe, and
//! the pages made from the command line.

use std::path::Path;

use anyhow::{Context as _, bail};

use super::tally::Tally;
use super::{completed, libtest};
use crate::{exec, link_probe, pages, root, tidy};

pub(crate) fn tidy(_: &Path) -> anyhow::Result<Tally> {
    let mut tally = Tally::default();
    let found = tidy::check()?;
    for f in &found {
        println!("{f}");
    }
    match found.iter().filter(|f| !f.warning).count() {
        0 => tally.pass("tidy"),
        n => tally.fail("tidy", format!("{n} broken rules")),
    }
    Ok(tally)
}

pub(crate) fn format(project: &Path) -> anyhow::Result<Tally> {
    let mut tally = Tally::default();
    let mut fmt = exec::cargo(project);
    fmt.args(["fmt", "--all", "--check"]);
    tally.add("format", exec::succeed(&mut fmt));
    for beside in beside(project) {
        let mut cargo = exec::cargo(&project.join(beside));
        cargo.args(["fmt", "--check"]);
        tally.add(&format!("format of {beside}"), exec::succeed(&mut cargo));
    }
    Ok(tally)
}

pub(crate) fn clippy(project: &Path) -> anyhow::Result<Tally> {
    let mut cargo = exec::cargo(project);
    cargo.args(["clippy", "--quiet", "--workspace", "--all-targets", "--all-features"]);
    cargo.args(["--", "-D", "warnings"]);
    let mut tally = Tally::one("clippy", exec::succeed(&mut cargo));
    // What is left out for boards leaves nothing unused behind.
    let mut cargo = exec::cargo(project);
    cargo.args(["clippy", "--quiet", "-p", "tailbound", "--no-default-features"]);
    cargo.args(["--features", "board", "--", "-D", "warnings"]);
    tally.add("clippy, for boards", exec::succeed(&mut cargo));
    Ok(tally)
}

pub(crate) fn documentation(project: &Path) -> anyhow::Result<Tally> {
    let mut cargo = exec::cargo(project);
    cargo.args(["doc", "--quiet", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings");
    Ok(Tally::one("documentation", exec::succeed(&mut cargo)))
}

pub(crate) fn link_probe(_: &Path) -> anyhow::Result<Tally> {
    let checked = link_probe::check();
    for line in checked.iter().flatten() {
        println!("{line}");
    }
    Ok(Tally::one("link probe", checked.map(|_| ())))
}

/// Man pages and completions: there is one for each command, and none is empty.
pub(crate) fn pages(project: &Path) -> anyhow::Result<Tally> {
    let mut tally = Tally::default();
    let dir = root::target(project).join("pages");
    for (kind, word, marks) in [
        (pages::Kind::Man, "man", [".TH", "tailbound.1"]),
        (pages::Kind::Completions, "completions", ["tailbound", "_tailbound"]),
    ] {
        let dir = dir.join(word);
        let made = pages::command(kind, &[&dir.to_string_lossy()]);
        tally.add(word, made.and_then(|()| all_hold(&dir, marks)));
    }
    tally.absorb(completed::all(&dir.join("completions")));
    Ok(tally)
}

/// Every file holds the first mark, and one of them is named like the second.
fn all_hold(dir: &Path, [inside, name]: [&str; 2]) -> anyhow::Result<()> {
    let mut named = false;
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        if !text.contains(inside) {
            bail!("{} does not hold `{inside}`", path.display());
        }
        named |= path.file_name().is_some_and(|n| n == name);
    }
    if !named {
        bail!("{} has no {name}", dir.display());
    }
    Ok(())
}

/// Damaged files through their readers; then the parsers' fuzz targets, which are compiled, without a fuzzer.
pub(crate) fn fuzz(project: &Path) -> anyhow::Result<Tally> {
    let dir = project.join("fuzz");
    let mut tally = libtest::damaged(project)?;
    if !dir.join("Cargo.toml").is_file() {
        tally.fail("fuzz", "there is no fuzz/Cargo.toml");
        return Ok(tally);
    }
    if !exec::exists("c++") {
        tally.skip(
            "fuzz targets compile",
            "cxx",
            "libFuzzer needs a C++ compiler: there is no c++",
        );
        return Ok(tally);
    }
    let mut check = exec::cargo(&dir);
    check.args(["check", "--quiet", "--target-dir"]).arg(root::target(project).join("fuzz"));
    tally.add("fuzz targets compile", exec::succeed(&mut check));
    Ok(tally)
}

/// Crates outside the workspace.
fn beside(project: &Path) -> impl Iterator<Item = &'static str> {
    let known = [
        "crates/base/tailbound-rt/tests/link-probe",
        "crates/measure/tailbound-capi/tests/link-probe",
        "fuzz",
    ];
    let project = project.to_path_buf();
    known.into_iter().filter(move |dir| project.join(dir).join("Cargo.toml").is_file())
}
