// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs stages in their order, shows progress, and sums up.
//!
//! The cheap stages come first: a mistake is told within seconds. Then what the tool itself does, then what is
//! said of its source and what needs other languages. A stage that fails does not stop the next ones; one run tells all.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use super::extent::Extent;
use super::tally::Tally;
use super::times::Times;
use super::{
    background, capi, commands, deadline, disk, firmware, junit, lab, libtest, lints, miri,
    packages, product, programs, python, registry, site,
};
use crate::{bare, root};

/// How a stage is run.
#[derive(Clone, Copy)]
enum Work {
    /// As a whole.
    Whole(fn(&Path) -> anyhow::Result<Tally>),
    /// As a whole, with more or less of it.
    Extended(fn(&Path, Extent) -> anyhow::Result<Tally>),
    /// As a whole, or the checks whose name has a word in it; and the names.
    Parts(fn(&Path, &[&str]) -> anyhow::Result<Tally>, fn(&Path) -> Vec<&'static str>),
}

impl Work {
    fn run(self, project: &Path, parts: &[&str], extent: Extent) -> anyhow::Result<Tally> {
        match self {
            Self::Whole(work) => work(project),
            Self::Extended(work) => work(project, extent),
            Self::Parts(work, _) => work(project, parts),
        }
    }
}

use Work::{Extended, Parts, Whole};

/// Name, what it checks, and how.
const STAGES: &[(&str, &str, Work)] = &[
    ("tidy", "the rules of CONTRIBUTING.md", Whole(lints::tidy)),
    ("format", "rustfmt", Whole(lints::format)),
    ("link-probe", "what the measuring loop can reach", Whole(lints::link_probe)),
    ("build", "the tests compile", Whole(programs::build)),
    ("tests", "unit, integration and documentation tests", Whole(programs::all)),
    ("commands", "every command that README and docs show", Whole(commands::all)),
    (
        "static",
        "the static program, alone in an empty root directory",
        Extended(product::static_binary),
    ),
    ("clippy", "the lints of the workspace", Whole(lints::clippy)),
    ("docs", "the documentation builds without warnings", Whole(lints::documentation)),
    ("pages", "man pages and completions", Whole(lints::pages)),
    ("fuzz", "damaged files of every kind; the fuzz targets compile", Whole(lints::fuzz)),
    ("capi", "libtailbound installed, and programs in C and C++ with it", Whole(capi::all)),
    ("python", "the Python reader", Whole(python::all)),
    (
        "packages",
        "packages installed, upgraded, removed in bare roots; the container; the wheel",
        Whole(packages::all),
    ),
    ("site", "the documentation as pages for a browser: links, ids, search", Whole(site::all)),
    (
        "registry",
        "the library crates, packed as for a registry and compiled from that",
        Whole(registry::all),
    ),
    ("miri", "what the loop and its reader share, by the rules of memory", Whole(miri::all)),
    ("sanitizers", "unsafe code, watched while its tests run", Whole(miri::sanitizers)),
    ("boards", "ARM and RISC-V programs under emulation", Whole(product::boards)),
    ("firmware", "the box: both chips, in an emulator, the committed files", Whole(firmware::all)),
    ("lab", "real kernels in virtual time", Parts(lab::some, lab::names)),
    ("faults", "kills, stops and full disks at any instant", Whole(libtest::faults)),
    (
        "bare",
        "the two commands where there is nothing but Rust, when scripts changed",
        Whole(bare::stage),
    ),
];

/// What came of each check, for another xtask.
pub(super) const TALLY: &str = "tally.json";

/// Characters of a failure in the list at the end.
const SHORT: usize = 400;

/// `cargo xtask test [--list [STAGE] | [--into FOLDER] STAGE[:PART]...]`: `FOLDER` gets the records, `target/xtask` without it.
pub(crate) fn command(words: &[&str]) -> anyhow::Result<()> {
    let (folder, words) = match words {
        ["--into", folder, words @ ..] => (Some(PathBuf::from(folder)), words),
        words => (None, words),
    };
    if *words == ["--list"] {
        for (name, what, _) in STAGES {
            println!("{name:12} {what}");
        }
        return Ok(());
    }
    let project = root::project()?;
    if let ["--list", stage] = *words {
        let known = STAGES.iter().find(|(name, ..)| *name == stage);
        let Some((.., Parts(_, names))) = known else { bail!("`{stage}` has no parts") };
        for name in names(&project) {
            println!("{stage}:{name}");
        }
        return Ok(());
    }
    let folder = folder.unwrap_or_else(|| root::target(&project).join("xtask"));
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let parted = parted(&project, words)?;
    let asked = |stage: &str| -> Vec<&str> {
        parted.iter().filter(|(name, _)| *name == stage).map(|(_, part)| *part).collect()
    };
    let chosen: Vec<_> =
        STAGES.iter().filter(|(name, ..)| parted.is_empty() || !asked(name).is_empty()).collect();
    let mut times = Times::new();
    let extent = Extent::of(words);
    let disk = if words.is_empty() { disk::too_small(&project, extent) } else { None };
    if let Some(why) = &disk {
        println!("note: {why}");
    }
    let mut total = Tally::default();
    let mut beside = None;
    for (i, (name, what, work)) in chosen.iter().enumerate() {
        println!("==> [{}/{}] {name}: {what}{}", i + 1, chosen.len(), times.so_far());
        let beginning = Times::begin();
        if *name == "tests" {
            // Where only some checks were asked for, their stage does them.
            let whole = |name: &&str| asked(name).iter().all(|part| part.is_empty());
            let names = chosen.iter().map(|(name, ..)| *name).filter(whole);
            let names: Vec<&str> = names.filter(|name| !extent.leaves_out(name)).collect();
            beside = background::begin(&project, &names, extent)?;
        }
        let tally = match beside.take_if(|beside| beside.has_lab && *name == "lab") {
            Some(beside) => beside.lab(&project),
            None if extent.leaves_out(name) => Ok(Extent::stage(name)),
            None if deadline::is_over() => Ok(deadline::stage_left_out(name)),
            None if words.is_empty() && *name == "lab" => extent.whole_lab(&project),
            None => work.run(&project, &asked(name), extent),
        };
        let tally = tally.unwrap_or_else(|e| Tally::one(name, Err(e)));
        for (name, why) in tally.failed() {
            println!("    failed: {name}: {why}");
        }
        println!("    {} ({})", tally.line(), times.end(name, &beginning));
        total.absorb(tally.of(name));
    }
    if let Some(beside) = beside {
        beside.end()?;
    }
    print!("{}", times.table());
    times.write(&folder.join("times.json"))?;
    write(&folder, "junit.xml", &junit::document(&total))?;
    write(&folder, TALLY, &serde_json::to_string(&total)?)?;
    if let Some(why) = disk.filter(|_| total.has_failed()) {
        println!("note, as at the beginning: {why}");
    }
    summary(&folder, &total)
}

fn write(folder: &Path, name: &str, text: &str) -> anyhow::Result<()> {
    let file = folder.join(name);
    fs::write(&file, text).with_context(|| file.display().to_string())
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
            Whole(_) | Extended(_) if part.is_empty() => {}
            Whole(_) | Extended(_) => bail!("`{stage}` has no parts"),
        }
        all.push((stage, part));
    }
    Ok(all)
}

/// Says once more what did not pass, and ends with the sum.
fn summary(folder: &Path, total: &Tally) -> anyhow::Result<()> {
    for (name, why) in total.skipped() {
        println!("skipped: {name}: {why}");
    }
    for (name, why) in total.failed() {
        // All of it stands where it failed.
        let line = format!("{name}: {why}");
        let first = line.lines().next().unwrap_or_default();
        let short: String = first.chars().take(SHORT).collect();
        println!("failed: {short}{}", if short.len() < first.len() { " …" } else { "" });
    }
    let mut closing = total.line();
    if total.has_failed() {
        // Whoever sees the last lines of a long output alone is told which it was.
        closing = format!("failed: {}\n{closing}", total.names());
    }
    write(folder, "closing-line", &format!("{closing}\n"))?;
    println!("{}", total.line());
    if total.has_failed() {
        bail!("{} failed: {}", total.failed().count(), total.names());
    }
    Ok(())
}
