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

/// How a stage is run.
#[derive(Clone, Copy)]
enum Work {
    /// As a whole.
    Whole(fn(&Path) -> anyhow::Result<Tally>),
    /// As a whole, or the checks whose name has a word in it; and the names.
    Parts(fn(&Path, &[&str]) -> anyhow::Result<Tally>, fn(&Path) -> Vec<&'static str>),
}

impl Work {
    fn run(self, project: &Path, parts: &[&str]) -> anyhow::Result<Tally> {
        match self {
            Self::Whole(work) => work(project),
            Self::Parts(work, _) => work(project, parts),
        }
    }
}

use Work::{Parts, Whole};

/// Name, what it checks, and how.
const STAGES: &[(&str, &str, Work)] = &[
    ("tidy", "the rules of CONTRIBUTING.md", Whole(lints::tidy)),
    ("format", "rustfmt", Whole(lints::format)),
    ("link-probe", "what the measuring loop can reach", Whole(lints::link_probe)),
    ("clippy", "the lints of the workspace", Whole(lints::clippy)),
    ("build", "the tests compile", Whole(libtest::build)),
    ("tests", "unit, integration and documentation tests", Whole(libtest::all)),
    ("miri", "what the loop and its reader share, by the rules of memory", Whole(miri::all)),
    ("sanitizers", "unsafe code, watched while its tests run", Whole(miri::sanitizers)),
    ("docs", "the documentation builds without warnings", Whole(lints::documentation)),
    ("pages", "man pages and completions", Whole(lints::pages)),
    ("fuzz", "damaged files of every kind; the fuzz targets compile", Whole(lints::fuzz)),
    (
        "static",
        "the static program, alone in an empty root directory",
        Whole(product::static_binary),
    ),
    ("commands", "every command that README and docs show", Whole(commands::all)),
    ("arm", "ARM programs under emulation", Whole(product::arm)),
    ("capi", "libtailbound installed, and programs in C and C++ with it", Whole(capi::all)),
    ("python", "the Python reader", Whole(python::all)),
    ("lab", "real kernels in virtual time", Parts(lab::some, lab::names)),
    ("faults", "kills, stops and full disks at any instant", Whole(libtest::faults)),
    (
        "bare",
        "the two commands where there is nothing but Rust, when scripts changed",
        Whole(bare::stage),
    ),
];

/// Characters of a failure in the list at the end.
const SHORT: usize = 400;

/// `cargo xtask test [--list [STAGE] | STAGE[:PART]...]`.
pub(crate) fn command(words: &[&str]) -> anyhow::Result<()> {
    if words == ["--list"] {
        for (name, what, _) in STAGES {
            println!("{name:12} {what}");
        }
        return Ok(());
    }
    let project = root::project()?;
    if let ["--list", stage] = words {
        let known = STAGES.iter().find(|(name, ..)| name == stage);
        let Some((.., Parts(_, names))) = known else { bail!("`{stage}` has no parts") };
        for name in names(&project) {
            println!("{stage}:{name}");
        }
        return Ok(());
    }
    let parted = parted(&project, words)?;
    let asked = |stage: &str| -> Vec<&str> {
        parted.iter().filter(|(name, _)| *name == stage).map(|(_, part)| *part).collect()
    };
    let chosen: Vec<_> =
        STAGES.iter().filter(|(name, ..)| parted.is_empty() || !asked(name).is_empty()).collect();
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
        let tally = work.run(&project, &asked(name)).unwrap_or_else(|e| Tally::one(name, Err(e)));
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

/// Stages and the words that choose among their checks: `lab:theory`; no words are all of them.
fn parted<'a>(project: &Path, words: &[&'a str]) -> anyhow::Result<Vec<(&'a str, &'a str)>> {
    let mut all = Vec::new();
    for word in words {
        let (stage, part) = word.split_once(':').unwrap_or((word, ""));
        let Some((.., work)) = STAGES.iter().find(|(name, ..)| *name == stage) else {
            bail!("`{stage}` is not a stage; `cargo xtask test --list` names them");
        };
        match work {
            Parts(_, names) if names(project).iter().any(|name| name.contains(part)) => {}
            Parts(..) => bail!(
                "no check of `{stage}` has `{part}` in its name; `cargo xtask test --list {stage}` names them"
            ),
            Whole(_) if part.is_empty() => {}
            Whole(_) => bail!("`{stage}` has no parts"),
        }
        all.push((stage, part));
    }
    Ok(all)
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
