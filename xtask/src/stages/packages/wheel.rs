// SPDX-License-Identifier: MIT OR Apache-2.0
//! The wheel in a new virtual environment, without a network.

use std::fs;
use std::path::Path;

use anyhow::Context as _;

use crate::exec;
use crate::release::{Release, wheel};
use crate::stages::tally::Tally;

/// Installs it and reads a run of this program's.
pub(super) fn all(now: &Release, folder: &Path, tally: &mut Tally) -> anyhow::Result<()> {
    let name = "the wheel in a new virtual environment";
    let Some(python) = wheel::builder() else {
        tally.skip(name, "pip", "no python3 has pip, setuptools and wheel");
        return Ok(());
    };
    let environment = folder.join("venv");
    let mut venv = exec::command(python);
    let made = exec::output(venv.args(["-m", "venv"]).arg(&environment))?;
    if !made.status.success() {
        tally.skip(
            name,
            "venv",
            "python3 makes no virtual environment (Debian package python3-venv)",
        );
        return Ok(());
    }
    tally.add(name, read(now, folder, &environment.join("bin")));
    Ok(())
}

fn read(now: &Release, folder: &Path, bin: &Path) -> anyhow::Result<()> {
    let entries = fs::read_dir(&now.out)?.collect::<Result<Vec<_>, _>>()?;
    let wheels = entries.iter().map(fs::DirEntry::path);
    let wheel = wheels.into_iter().find(|p| p.extension().is_some_and(|e| e == "whl"));
    let mut pip = exec::command(bin.join("pip"));
    pip.args(["install", "--quiet", "--disable-pip-version-check", "--no-index"]);
    exec::succeed(pip.arg(wheel.context("the release has no wheel")?))?;
    let run = folder.join("wheel.tailbound.jsonl");
    let mut measure = exec::command(now.programs.join("tailbound"));
    measure.args([
        "measure",
        "cyclic",
        "--duration",
        "1s",
        "--policy",
        "other",
        "--quiet",
        "--out",
    ]);
    exec::output(measure.arg(&run))?;
    let mut python = exec::command(bin.join("python"));
    let code = "import sys, tailbound; print(tailbound.read(sys.argv[1]).summary())";
    let said = exec::output(python.args(["-c", code]).arg(&run).current_dir(folder))?;
    anyhow::ensure!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    Ok(())
}
