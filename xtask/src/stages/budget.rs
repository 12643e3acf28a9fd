// SPDX-License-Identifier: MIT OR Apache-2.0
//! How large each program may be, and what it may cost until it measures: `budgets.json`, and what grew when one is larger.
//!
//! Not here: how the start is counted (`begin_cost`). The programs are those that stages build anyway (profile `quick`): what makes them larger makes every other build
//! larger. A budget is exceeded at a tenth above it. Another compiler makes programs of another size: then nothing is compared, and that is
//! said. What grew is told by crate, by the size of the compiled library, which has descriptions for the compiler in it too.
//! Units: bytes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use serde::{Deserialize, Serialize};

use super::begin_cost::{self, BeginCost};
use super::tally::Tally;
use crate::exec;

/// Where the budgets are.
const FILE: &str = "xtask/src/stages/budgets.json";
/// A program may be larger than its budget by this share.
const TOLERANCE_PERCENT: u64 = 10;
/// Crates that are named where a program has grown.
const NAMED: usize = 5;
const WRITE: &str =
    "If it is worth it, `TAILBOUND_BUDGETS=write` before the same command writes what is now";

/// The sizes that were agreed on, of one compiler.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Budgets {
    rustc: String,
    programs: BTreeMap<String, Budget>,
    /// What they cost until they measure.
    #[serde(default)]
    begin: BTreeMap<String, BeginCost>,
}

/// One program, and our crates below it.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Budget {
    bytes: u64,
    crates: BTreeMap<String, u64>,
}

/// Compares `program`, which is called `name`, with its budget. With `TAILBOUND_BUDGETS=write` the size is written instead.
pub(super) fn check(project: &Path, name: &str, program: &Path) -> Tally {
    let now = || measured(program);
    let held = |budgets: &Budgets, now: &Budget| {
        let budget = budgets.programs.get(name);
        within(budget.with_context(|| format!("{FILE} has no `{name}`"))?, now).map(|()| None)
    };
    let put = |budgets: &mut Budgets, now| {
        budgets.programs.insert(name.to_owned(), now);
    };
    tallied(&format!("size of {name}"), compared(project, now, held, put))
}

/// The same for what it costs until it measures, tried in `folder`.
pub(super) fn check_begin(project: &Path, name: &str, program: &Path, folder: &Path) -> Tally {
    let title = format!("begin of {name}");
    if let Some(why) = begin_cost::missing() {
        let mut tally = Tally::default();
        tally.skip(&title, "strace", why);
        return tally;
    }
    let now = || begin_cost::measured(program, folder);
    // The begin reads the machine: another one has other files and CPUs.
    let name = &format!("{name}, {}", machine());
    let held = |budgets: &Budgets, now: &BeginCost| {
        let Some(budget) = budgets.begin.get(name) else {
            return Ok(Some(format!("{FILE} has no `{name}`. {WRITE}")));
        };
        let beyond = now.beyond(budget);
        ensure!(beyond.is_empty(), "{} ({FILE}). {WRITE}", beyond.join("; "));
        Ok(None)
    };
    let put = |budgets: &mut Budgets, now| {
        budgets.begin.insert(name.to_owned(), now);
    };
    tallied(&title, compared(project, now, held, put))
}

/// The first PID namespace (`PROC_PID_INIT_INO` of the kernel's proc_ns.h).
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// Kernel, number of CPUs, and whether other processes are visible: in a PID namespace more is asked about who has a lock.
fn machine() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let first = fs::read_link("/proc/self/ns/pid")
        .is_ok_and(|namespace| namespace.as_os_str() == FIRST_PID_NAMESPACE);
    let within = if first { "" } else { ", in a PID namespace" };
    format!("Linux {}, {cpus} CPUs{within}", release.trim())
}

fn tallied(title: &str, result: anyhow::Result<Option<String>>) -> Tally {
    let mut tally = Tally::default();
    match result {
        Ok(None) => tally.pass(title),
        Ok(Some(why)) => tally.skip(title, "budget", &why),
        Err(e) => tally.fail(title, format!("{e:#}")),
    }
    tally
}

/// Why nothing was compared; nothing where it was, and is within the budget.
fn compared<T>(
    project: &Path,
    now: impl FnOnce() -> anyhow::Result<T>,
    held: impl FnOnce(&Budgets, &T) -> anyhow::Result<Option<String>>,
    put: impl FnOnce(&mut Budgets, T),
) -> anyhow::Result<Option<String>> {
    let path = project.join(FILE);
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let mut budgets: Budgets = serde_json::from_str(&text).context(FILE)?;
    let version = exec::output(exec::command("rustc").arg("--version"))?;
    let rustc = String::from_utf8_lossy(&version.stdout).trim().to_owned();
    let now = now()?;
    if std::env::var("TAILBOUND_BUDGETS").is_ok_and(|v| v == "write") {
        budgets.rustc = rustc;
        put(&mut budgets, now);
        let text = format!("{}\n", serde_json::to_string_pretty(&budgets)?);
        fs::write(&path, text).with_context(|| path.display().to_string())?;
        return Ok(None);
    }
    if budgets.rustc != rustc {
        return Ok(Some(format!("the budgets are of {}, this is {rustc}", budgets.rustc)));
    }
    held(&budgets, &now)
}

/// The program, and what compiling it had to write. CPU seconds are another matter on each machine and in each minute, so that a tenth of
/// them says nothing: they are told (the table of stages), and the sum of the compiled libraries, which is the same everywhere, is held.
fn within(budget: &Budget, now: &Budget) -> anyhow::Result<()> {
    let compiled = |of: &Budget| of.crates.values().sum();
    for (what, now_bytes, bytes) in [
        ("the program", now.bytes, budget.bytes),
        ("all compiled crates", compiled(now), compiled(budget)),
    ] {
        let most = bytes + bytes * TOLERANCE_PERCENT / 100;
        ensure!(
            now_bytes <= most,
            "{what}: {} kB, and {} kB at most: {} kB and a tenth ({FILE}). By compiled crate: {}. {WRITE}",
            now_bytes / 1000,
            most / 1000,
            bytes / 1000,
            grown(budget, now)
        );
    }
    Ok(())
}

/// The crates that grew most, with by how much.
fn grown(budget: &Budget, now: &Budget) -> String {
    let mut grown: Vec<(i64, &String)> = now
        .crates
        .iter()
        .map(|(name, bytes)| {
            let before = budget.crates.get(name).copied().unwrap_or(0);
            (bytes.cast_signed() - before.cast_signed(), name)
        })
        .filter(|(more, _)| *more > 0)
        .collect();
    grown.sort_by_key(|(more, _)| -*more);
    let named: Vec<String> = grown
        .iter()
        .take(NAMED)
        .map(|(more, name)| format!("{name} +{} kB", more / 1000))
        .collect();
    if named.is_empty() { "none of ours grew".to_owned() } else { named.join(", ") }
}

/// The size of the program and of our libraries beside it: of several of one name the newest.
fn measured(program: &Path) -> anyhow::Result<Budget> {
    let bytes = fs::metadata(program).with_context(|| program.display().to_string())?.len();
    let folder = program.with_file_name("deps");
    let mut newest: BTreeMap<String, (std::time::SystemTime, PathBuf)> = BTreeMap::new();
    for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let Some(name) = crate_name(&path) else { continue };
        let at = fs::metadata(&path)?.modified()?;
        if newest.get(&name).is_none_or(|(before, _)| *before < at) {
            newest.insert(name, (at, path));
        }
    }
    let mut crates = BTreeMap::new();
    for (name, (_, path)) in newest {
        crates.insert(name, fs::metadata(path)?.len());
    }
    Ok(Budget { bytes, crates })
}

/// `tailbound-core` of `libtailbound_core-0123456789abcdef.rlib`.
fn crate_name(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?.strip_prefix("lib")?.strip_suffix(".rlib")?;
    let (name, _) = name.rsplit_once('-')?;
    name.starts_with("tailbound").then(|| name.replace('_', "-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sized(bytes: u64, core: u64, lab: u64) -> Budget {
        let crates = [("tailbound-core".to_owned(), core), ("tailbound-lab".to_owned(), lab)];
        Budget { bytes, crates: crates.into() }
    }

    #[test]
    fn a_tenth_more_is_too_much_and_what_grew_is_named() {
        let budget = sized(10_000_000, 20_000_000, 10_000_000);
        within(&budget, &sized(11_000_000, 33_000_000, 0)).unwrap();
        let told = within(&budget, &sized(11_000_001, 21_000_000, 10_000_000)).unwrap_err();
        let told = told.to_string();
        assert!(told.contains("the program: 11000 kB"), "{told}");
        assert!(told.contains("tailbound-core +1000 kB") && !told.contains("-lab"), "{told}");
        // A smaller program of which more is compiled.
        let told = within(&budget, &sized(9_000_000, 23_000_001, 10_000_000)).unwrap_err();
        let told = told.to_string();
        assert!(
            told.contains("all compiled crates: 33000 kB") && told.contains("core +3000 kB"),
            "{told}"
        );
    }

    #[test]
    fn a_compiled_library_has_the_name_of_its_crate() {
        let path = Path::new("deps/libtailbound_core-0123456789abcdef.rlib");
        assert_eq!(crate_name(path).as_deref(), Some("tailbound-core"));
        assert_eq!(crate_name(Path::new("deps/libserde-01.rlib")), None);
    }

    #[test]
    fn another_compiler_is_said_and_nothing_is_compared() {
        let project = tempfile::tempdir().unwrap();
        let file = project.path().join(FILE);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, r#"{"rustc": "rustc 0.9", "programs": {}}"#).unwrap();
        fs::create_dir(project.path().join("deps")).unwrap();
        let program = project.path().join("tailbound");
        fs::write(&program, "x").unwrap();
        let now = || measured(&program);
        let why = compared(project.path(), now, |_, _| Ok(None), |_, _| {}).unwrap().unwrap();
        assert!(why.contains("rustc 0.9"), "{why}");
    }
}
