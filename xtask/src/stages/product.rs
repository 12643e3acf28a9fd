// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stages that try the finished program where a user would: alone in an empty root
//! directory, and as programs of boards under user-mode emulation.
//!
//! Emulation says nothing about latency; it shows that the program starts,
//! reads its files, makes its system calls and ends.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, bail};

use super::extent::Extent;
use super::tally::Tally;
use super::{budget, libtest};
use crate::cross::{self, Target};
use crate::{exec, root, schema};

/// Exit statuses of a run that did its work: met, not met, unfit, undecided.
const ANSWERS: &[i32] = &[0, 1, 3, 5];

/// The longest any of these short runs may take.
const LIMIT: Duration = Duration::from_secs(600);

const RUN_FILE: &str = "run.tailbound.jsonl";

/// The static program, alone in an empty root directory; the server where the longest tests, which start it, are run.
pub(super) fn static_binary(project: &Path, extent: Extent) -> anyhow::Result<Tally> {
    let target = extent.static_programs();
    let mut tally = Tally::default();
    if let Some(why) = target.missing() {
        tally.skip("static build", "static", &why);
        return Ok(tally);
    }
    let built = target.tried(project);
    let program = match built {
        Ok(program) => {
            tally.pass("static build");
            program
        }
        Err(e) => {
            tally.fail("static build", format!("{e:#}"));
            return Ok(tally);
        }
    };
    tally.absorb(budget::check(project, "static: tailbound", &program));
    let trial = fresh(project, "begin-cost")?;
    tally.absorb(budget::check_begin(project, "static: tailbound", &program, &trial));
    let mut programs = vec![program.clone()];
    if extent == Extent::Everything {
        let server = program.with_file_name("tailbound-server");
        tally.absorb(budget::check(project, "static: tailbound-server", &server));
        programs.push(server);
    }
    tally.add("it names no folder of this machine", names_none(project, &programs));
    let dir = fresh(project, "chroot")?;
    fs::copy(&program, dir.join("tailbound"))?;
    let Some(mut chroot) = enter(&dir)? else {
        let why = "neither root nor user namespaces can change the root directory";
        tally.skip("static program in an empty root directory", "root", why);
        return Ok(tally);
    };
    chroot.args(["/tailbound", "run", "--duration", "2s", "--out"]).arg(format!("/{RUN_FILE}"));
    tally.add("static program in an empty root directory", answers(&mut chroot, &dir, ANSWERS));
    tally.add("its run file", schema::check_run(project, &dir.join(RUN_FILE)).map(drop));
    tally.add("its report", report_exists(&dir));
    Ok(tally)
}

/// Programs for boards under emulation.
pub(crate) fn boards(project: &Path) -> anyhow::Result<Tally> {
    let mut tally = Tally::default();
    for (target, emulators) in [
        (Target::arm64(), ["qemu-aarch64-static", "qemu-aarch64"]),
        (Target::arm32(), ["qemu-arm-static", "qemu-arm"]),
        (Target::riscv64(), ["qemu-riscv64-static", "qemu-riscv64"]),
    ] {
        let name = target.name;
        if let Some(why) = target.missing() {
            tally.skip(&format!("{name} build"), name, &why);
            continue;
        }
        let program = match target.tried(project) {
            Ok(program) => program,
            Err(e) => {
                tally.fail(&format!("{name} build"), format!("{e:#}"));
                continue;
            }
        };
        tally.pass(&format!("{name} build"));
        tally.absorb(budget::check(project, &format!("{name}: tailbound"), &program));
        tally.add(
            &format!("{name}: it names no folder of this machine"),
            names_none(project, std::slice::from_ref(&program)),
        );
        let Some(emulator) = emulators.into_iter().find(|e| exec::exists(e)) else {
            let why = "there is no qemu user-mode emulator (Debian package qemu-user-static)";
            tally.skip(&format!("{name} program"), "qemu-user", why);
            continue;
        };
        tally.absorb(emulated(project, name, emulator, &program)?);
        if name == Target::arm32().name {
            let mut beyond_2038 = target.test(project, ("tailbound-sys", "time64"), emulator)?;
            tally.absorb(libtest::counted(&mut beyond_2038)?.of(name));
        }
    }
    Ok(tally)
}

/// What is built elsewhere from the same sources is to have the same bytes.
fn names_none(project: &Path, programs: &[PathBuf]) -> anyhow::Result<()> {
    for program in programs {
        if let Some(folder) = cross::named(project, program)? {
            bail!("{} names {}", program.display(), folder.display());
        }
    }
    Ok(())
}

fn emulated(project: &Path, name: &str, emulator: &str, program: &Path) -> anyhow::Result<Tally> {
    let mut tally = Tally::default();
    let dir = fresh(project, name)?;
    let mut check = |what: &str, words: &[&str], statuses: &[i32]| {
        let mut c = exec::command(emulator);
        c.current_dir(&dir).arg(program).args(words);
        let result = answers(&mut c, &dir, statuses);
        tally.add(&format!("{name}: {what}"), result);
    };
    check("--version", &["--version"], &[0]);
    check("no laboratory, and says so", &["lab", "run", "-k", "debian:6.12"], &[3]);
    let measure = ["measure", "cyclic", "--duration", "1s", "--policy", "other", "--out", RUN_FILE];
    check("measure", &measure, ANSWERS);
    check("show what it measured", &["show", RUN_FILE], ANSWERS);
    tally.add(
        &format!("{name}: its run file"),
        schema::check_run(project, &dir.join(RUN_FILE)).map(drop),
    );
    Ok(tally)
}

/// An empty directory of that name under the target directory.
fn fresh(project: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let dir = root::target(project).join("xtask").join(name);
    match fs::remove_dir_all(&dir) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            return Err(e).context(dir.display().to_string());
        }
        _ => {}
    }
    fs::create_dir_all(&dir)?;
    Ok(dir)
}

/// A command that runs its arguments with `dir` as root directory, if that can be done.
fn enter(dir: &Path) -> anyhow::Result<Option<Command>> {
    for words in [&["chroot"][..], &["unshare", "-r", "chroot"]] {
        let make = || {
            let mut c = exec::command(words[0]);
            c.args(&words[1..]).arg(dir);
            c
        };
        let tried = exec::output(make().args(["/tailbound", "--version"]));
        if tried.is_ok_and(|o| o.status.success()) {
            return Ok(Some(make()));
        }
    }
    Ok(None)
}

/// Runs and wants one of these exit statuses; what it said is shown when it gives another.
fn answers(c: &mut Command, dir: &Path, statuses: &[i32]) -> anyhow::Result<()> {
    let log = dir.join("output.txt");
    let line = exec::shown(c);
    let ended = exec::limited(c, &log, LIMIT)?;
    let said = || fs::read_to_string(&log).unwrap_or_default();
    match ended {
        None => bail!("`{line}` still ran after {} s:\n{}", LIMIT.as_secs(), said()),
        Some(s) if s.code().is_some_and(|code| statuses.contains(&code)) => Ok(()),
        Some(s) => bail!("`{line}`: {s}, expected one of {statuses:?}:\n{}", said()),
    }
}

fn report_exists(dir: &Path) -> anyhow::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "html") {
            let text = fs::read_to_string(&path)?;
            if !text.contains("<svg") {
                bail!("{} has no picture in it", path.display());
            }
            return Ok(());
        }
    }
    bail!("no .html file beside the run file");
}
