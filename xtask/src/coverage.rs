// SPDX-License-Identifier: MIT OR Apache-2.0
//! The coverage study of the worst-case bound, and its table in docs/results/bound.md.
//!
//! Context: COLD, minutes. The study itself is an example of `tailbound-stats`, so that this
//! program needs none of the statistics.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, bail};

use crate::{exec, root};

const PAGE: &str = "docs/results/bound.md";
const BEGIN: &str = "<!-- coverage: begin -->\n";
const END: &str = "<!-- coverage: end -->\n";

/// `cargo xtask coverage [--repetitions N] [--seed N] [--extrapolate H] [--json] [--write]`
pub(crate) fn command(words: &[&str]) -> anyhow::Result<()> {
    let project = root::project()?;
    let write = words.contains(&"--write");
    let rest: Vec<&str> = words.iter().copied().filter(|w| *w != "--write").collect();
    if write && rest.contains(&"--json") {
        bail!("--write puts the table into {PAGE}; it goes without --json");
    }
    let mut cargo = exec::cargo(&project);
    cargo.args(["run", "--quiet", "--release", "-p", "tailbound-stats", "--example", "coverage"]);
    cargo.arg("--").args(&rest).stderr(Stdio::inherit());
    let out = cargo.stdout(Stdio::piped()).output().context("cargo run")?;
    let text = String::from_utf8(out.stdout).context("the study's answer")?;
    print!("{text}");
    if write && !text.is_empty() {
        put(&project, &text, &rest)?;
    }
    match out.status.code() {
        Some(0) => Ok(()),
        Some(1) => bail!("a target of the study is missed: see the table"),
        _ => bail!("the study did not run: {}", out.status),
    }
}

fn put(project: &Path, table: &str, words: &[&str]) -> anyhow::Result<()> {
    let path = project.join(PAGE);
    let page = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let (before, rest) =
        page.split_once(BEGIN).with_context(|| format!("no `{BEGIN}` in {PAGE}"))?;
    let (_, after) = rest.split_once(END).with_context(|| format!("no `{END}` in {PAGE}"))?;
    let command = ["cargo xtask coverage --write"].iter().chain(words).copied();
    let command = command.collect::<Vec<_>>().join(" ");
    let page = format!("{before}{BEGIN}Written by `{command}`:\n\n{table}{END}{after}");
    std::fs::write(&path, page).with_context(|| path.display().to_string())
}
