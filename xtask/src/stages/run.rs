// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs stages in their order, shows progress, and sums up.
//!
//! Context: COLD. The cheap stages come first: a mistake is told within seconds. A stage that
//! fails does not stop the next ones; one run tells all.

use std::fs;
use std::path::Path;

use anyhow::bail;

use super::tally::Tally;
use super::times::Times;
use super::{ahead, capi, commands, disk, lab, libtest, lints, miri, product, python};
use crate::{bare, root};

type Work = fn(&Path) -> anyhow::Result<Tally>;

/// Name, what it checks, and how.
const STAGES: &[(&str, &str, Work)] = &[
    ("tidy", "the rules of CONTRIBUTING.md", lints::tidy),
    ("format", "rustfmt", lints::format),
    ("link-probe", "what the measuring loop can reach", lints::link_probe),
    ("clippy", "the lints of the workspace", lints::clippy),
    ("build", "the tests compile", libtest::build),
    ("tests", "unit, integration and documentation tests", libtest::all),
    ("miri", "what the loop and its reader share, by the rules of memory", miri::all),
    ("sanitizers", "unsafe code, watched while its tests run", miri::sanitizers),
    ("docs", "the documentation builds without warnings", lints::documentation),
    ("pages", "man pages and completions", lints::pages),
    ("fuzz", "damaged files of every kind; the fuzz targets compile", lints::fuzz),
    ("static", "the static program, alone in an empty root directory", product::static_binary),
    ("commands", "every command that README and docs show", commands::all),
    ("arm", "ARM programs under emulation", product::arm),
    ("capi", "libtailbound installed, and programs in C and C++ with it", capi::all),
    ("python", "the Python reader", python::all),
    ("lab", "real kernels in virtual time", lab::all),
    ("faults", "kills, stops and full disks at any instant", libtest::faults),
    ("bare", "the two commands where there is nothing but Rust, when scripts changed", bare::stage),
];

/// Characters of a failure in the list at the end.
const SHORT: usize = 400;

/// `cargo xtask test [--list | STAGE...]`.
pub(crate) fn command(words: &[&str]) -> anyhow::Result<()> {
    if words == ["--list"] {
        for (name, what, _) in STAGES {
            println!("{name:12} {what}");
        }
        return Ok(());
    }
    if let Some(unknown) = words.iter().find(|w| !STAGES.iter().any(|(name, ..)| name == *w)) {
        bail!("`{unknown}` is not a stage; `cargo xtask test --list` names them");
    }
    let chosen: Vec<_> =
        STAGES.iter().filter(|(name, ..)| words.is_empty() || words.contains(name)).collect();
    let project = root::project()?;
    let mut times = Times::new();
    let disk = if words.is_empty() { disk::too_small(&project) } else { None };
    if let Some(why) = &disk {
        println!("note: {why}");
    }
    let mut total = Tally::default();
    let mut ahead = None;
    for (i, (name, what, work)) in chosen.iter().enumerate() {
        println!("==> [{}/{}] {name}: {what}", i + 1, chosen.len());
        let beginning = Times::begin();
        if *name == "tests" {
            let names: Vec<&str> = chosen.iter().map(|(name, ..)| *name).collect();
            ahead = ahead::begin(&project, &names)?;
        }
        let tally = work(&project).unwrap_or_else(|e| Tally::one(name, Err(e)));
        for line in &tally.failed {
            println!("    failed: {line}");
        }
        println!("    {} ({})", tally.line(), times.end(name, &beginning));
        total.absorb(tally);
    }
    if let Some(ahead) = ahead {
        ahead.end()?;
    }
    print!("{}", times.table());
    let dir = root::target(&project).join("xtask");
    fs::create_dir_all(&dir)?;
    times.write(&dir.join("times.json"))?;
    if let Some(why) = disk.filter(|_| !total.failed.is_empty()) {
        println!("note, as at the beginning: {why}");
    }
    summary(&project, &total)
}

/// Says once more what did not pass, and ends with the sum.
fn summary(project: &Path, total: &Tally) -> anyhow::Result<()> {
    for line in &total.skipped {
        println!("skipped: {line}");
    }
    for line in &total.failed {
        // All of it stands where it failed.
        let first = line.lines().next().unwrap_or_default();
        let short: String = first.chars().take(SHORT).collect();
        println!("failed: {short}{}", if short.len() < first.len() { " …" } else { "" });
    }
    let mut closing = total.line();
    if !total.failed.is_empty() {
        // Whoever sees the last lines of a long output alone is told which it was.
        closing = format!("failed: {}\n{closing}", total.names());
    }
    let dir = root::target(project).join("xtask");
    fs::create_dir_all(&dir)?;
    fs::write(dir.join("closing-line"), format!("{closing}\n"))?;
    println!("{}", total.line());
    if !total.failed.is_empty() {
        bail!("{} failed: {}", total.failed.len(), total.names());
    }
    Ok(())
}
