// SPDX-License-Identifier: MIT OR Apache-2.0
//! The Python reader: its own tests, an installation, and a run that the tool made, whose totals
//! must be those the tool shows.
//!
//! An interpreter that has pandas is preferred: without it, its tests are skipped.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, ensure};

use super::tally::Tally;
use crate::release::wheel;
use crate::{exec, root};

/// The first interpreter that has pandas, else the first there is.
fn interpreter() -> Option<&'static str> {
    let all = ["python3", "/usr/bin/python3"];
    let runs = |python: &&str, code: &str| {
        exec::output(exec::command(python).args(["-c", code])).is_ok_and(|o| o.status.success())
    };
    let pandas = all.into_iter().find(|p| runs(p, "import pandas"));
    pandas.or_else(|| all.into_iter().find(|p| runs(p, "import sys")))
}

/// `cargo xtask test python`.
pub(crate) fn all(project: &Path) -> anyhow::Result<Tally> {
    let mut tally = Tally::default();
    let Some(python) = interpreter() else {
        tally.skip("Python reader", "python", "there is no python3 (Debian package python3)");
        return Ok(tally);
    };
    let dir = root::target(project).join("xtask").join("python");
    if dir.exists() {
        fs::remove_dir_all(&dir).with_context(|| dir.display().to_string())?;
    }
    fs::create_dir_all(&dir)?;
    unit_tests(project, python, &mut tally)?;
    tally.add("its totals are those of the tool", totals(project, python, &dir));
    install(project, python, &dir, &mut tally)?;
    Ok(tally)
}

/// Its own tests, counted one by one.
fn unit_tests(project: &Path, python: &str, tally: &mut Tally) -> anyhow::Result<()> {
    let mut tests = exec::command(python);
    tests.current_dir(project).env("PYTHONDONTWRITEBYTECODE", "1");
    tests.args(["-m", "unittest", "discover", "-v", "-s", "python/tests"]);
    let out = exec::output(&mut tests)?;
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    for line in said.lines() {
        let Some((name, result)) = line.split_once(" ... ") else { continue };
        let name = name.split(' ').next().unwrap_or(name);
        if result == "ok" {
            tally.pass(&format!("python {name}"));
        } else if let Some(why) = result.strip_prefix("skipped ") {
            // One of two tests is skipped whether pandas is there or not.
            if why.contains("pandas is installed") {
                continue;
            }
            tally.skip(&format!("python {name}"), "pandas", why.trim_matches(['\'', '"']));
        } else {
            tally.fail(&format!("python {name}"), result);
        }
    }
    if !out.status.success() {
        println!("{said}");
        if !tally.has_failed() {
            tally.fail("python tests", "they did not run; see above");
        }
    }
    Ok(())
}

/// A run made by the tool, read by both.
fn totals(project: &Path, python: &str, dir: &Path) -> anyhow::Result<()> {
    let tool = exec::tool(project)?;
    let run = dir.join("run.tailbound.jsonl");
    let mut measure = exec::command(&tool);
    measure.args(["measure", "cyclic", "--duration", "3s", "--policy", "other", "--raw"]);
    let out = exec::output(measure.arg("--out").arg(&run))?;
    let answered = out.status.code().is_some_and(|c| [0, 1, 3, 5].contains(&c));
    ensure!(answered, "measure: {}", String::from_utf8_lossy(&out.stderr));
    let shown = exec::output(exec::command(&tool).args(["show", "--json"]).arg(&run))?;
    ensure!(shown.status.success(), "show: {}", String::from_utf8_lossy(&shown.stderr));
    let json = dir.join("show.json");
    fs::write(&json, &shown.stdout)?;
    let mut compare = exec::command(python);
    compare
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .arg(project.join("python/tests/compare_with_show.py"));
    exec::succeed(compare.arg(&run).arg(&json))
}

/// Installs a copy into a folder of its own, without a network.
fn install(project: &Path, python: &str, dir: &Path, tally: &mut Tally) -> anyhow::Result<()> {
    let has = |code: &str| {
        exec::output(exec::command(python).args(["-c", code])).is_ok_and(|o| o.status.success())
    };
    if !has("import setuptools, wheel, pip") {
        let why = format!("{python} lacks pip, setuptools or wheel");
        tally.skip("pip install", "pip", &why);
        return Ok(());
    }
    let source = dir.join("source");
    wheel::sources(project, &source)?;
    let site = dir.join("site");
    let mut pip = exec::command(python);
    pip.args(["-m", "pip", "--quiet", "--disable-pip-version-check", "install", "--no-index"]);
    pip.args(["--no-build-isolation", "--no-deps", "--target"]).arg(&site).arg(&source);
    let installed = exec::succeed(&mut pip).and_then(|()| {
        let mut import = exec::command(python);
        import.current_dir(dir).env("PYTHONPATH", &site);
        exec::succeed(
            import
                .args(["-c", "import tailbound; tailbound.read('run.tailbound.jsonl').summary()"]),
        )
    });
    tally.add("pip install", installed);
    Ok(())
}
