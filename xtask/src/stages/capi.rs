// SPDX-License-Identifier: MIT OR Apache-2.0
//! libtailbound as a user meets it: installed into a folder of its own, the examples in C and C++
//! built with make and pkg-config and with CMake, static and shared, run, and what they wrote
//! read by the tool.
//!
//! Durations are short: counts are checked, not latencies.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

use super::tally::Tally;
use crate::{elf, exec, root, schema};

/// How long each example measures, and its period.
const DURATION_S: f64 = 0.5;
const PERIOD_US: f64 = 500.0;

const LIMIT: Duration = Duration::from_secs(300);

/// What is needed, and the Debian package it is in.
const TOOLS: &[(&str, &str)] =
    &[("cmake", "cmake"), ("pkg-config", "pkg-config"), ("g++", "g++"), ("make", "make")];

struct Bench {
    project: PathBuf,
    dir: PathBuf,
    prefix: PathBuf,
    built: PathBuf,
    /// The tool, as the tests have it.
    tool: PathBuf,
}

/// `cargo xtask test capi`.
pub(crate) fn all(project: &Path) -> anyhow::Result<Tally> {
    let mut tally = Tally::default();
    if let Some((tool, package)) = TOOLS.iter().find(|(tool, _)| !exec::exists(tool)) {
        let why = format!("there is no {tool} (Debian package {package})");
        tally.skip("libtailbound", "cmake", &why);
        return Ok(tally);
    }
    let dir = root::target(project).join("xtask").join("capi");
    if dir.exists() {
        fs::remove_dir_all(&dir).with_context(|| dir.display().to_string())?;
    }
    fs::create_dir_all(&dir)?;
    let dir = dir.canonicalize()?;
    let bench = Bench {
        project: project.to_owned(),
        prefix: dir.join("prefix"),
        built: root::target(project).canonicalize()?.join("debug/deps"),
        tool: exec::tool(project)?,
        dir,
    };
    let installed = bench.install();
    let ready = installed.is_ok();
    tally.add("install", installed);
    if !ready {
        return Ok(tally);
    }
    tally.add("exported names", bench.exported());
    tally.add("headers are clean C99, C++11 and C++17", bench.headers());
    for language in ["c", "cpp"] {
        for linking in ["shared", "static"] {
            for builder in ["make", "cmake"] {
                let name = format!("{language}, {builder}, {linking}");
                tally.add(&name, bench.example(language, builder, linking == "static"));
            }
        }
    }
    Ok(tally)
}

impl Bench {
    fn install(&self) -> anyhow::Result<()> {
        exec::compiled_for(&self.project, "interface")?;
        let mut install = exec::command(self.project.join("scripts/install-lib"));
        install.arg(&self.built).env("PREFIX", &self.prefix).env_remove("DESTDIR");
        install.env_remove("LIBDIR");
        exec::succeed(&mut install)
    }

    /// The shared library exports what the header declares, and nothing else.
    fn exported(&self) -> anyhow::Result<()> {
        let header = fs::read_to_string(self.prefix.join("include/tailbound.h"))?;
        let declared: BTreeSet<String> = header
            .lines()
            .filter(|l| l.starts_with("TB_API"))
            .filter_map(|l| Some(l.split_once('(')?.0.rsplit([' ', '*']).next()?.to_owned()))
            .collect();
        let library = self.prefix.join("lib/libtailbound.so");
        let bytes = fs::read(&library).with_context(|| library.display().to_string())?;
        let exported: BTreeSet<String> = elf::dynamic_symbols(&bytes)?
            .into_iter()
            .filter(|s| s.defined)
            .map(|s| s.name)
            .collect();
        ensure!(
            declared == exported,
            "only in the header: {:?}; only in the library: {:?}",
            declared.difference(&exported).collect::<Vec<_>>(),
            exported.difference(&declared).collect::<Vec<_>>()
        );
        Ok(())
    }

    fn headers(&self) -> anyhow::Result<()> {
        for (compiler, standard, language, header) in [
            ("cc", "c99", "c", "tailbound.h"),
            ("g++", "c++11", "c++", "tailbound.h"),
            ("g++", "c++17", "c++", "tailbound.hpp"),
        ] {
            let source = self.dir.join(format!("only-{standard}"));
            fs::write(&source, format!("#include <{header}>\n"))?;
            let mut c = exec::command(compiler);
            c.arg(format!("-std={standard}"));
            c.args(["-pedantic-errors", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]);
            c.args(["-fsyntax-only", "-x", language]).arg(&source);
            c.arg("-I").arg(self.prefix.join("include"));
            exec::succeed(&mut c)?;
        }
        Ok(())
    }

    /// Builds one example in a copy of its folder, runs it and checks what it wrote.
    fn example(&self, language: &str, builder: &str, linked_in: bool) -> anyhow::Result<()> {
        let kind = if linked_in { "static" } else { "shared" };
        let dir = self.dir.join(format!("{language}-{builder}-{kind}"));
        fs::create_dir_all(&dir)?;
        for entry in fs::read_dir(self.project.join("examples").join(language))? {
            let entry = entry?;
            fs::copy(entry.path(), dir.join(entry.file_name()))?;
        }
        let flags = "-O1 -Wall -Wextra -Werror";
        let program = if builder == "make" {
            let mut make = exec::command("make");
            make.current_dir(&dir).args(["--no-print-directory", "--silent"]);
            make.args([format!("CFLAGS={flags}"), format!("CXXFLAGS={flags}")]);
            make.args(linked_in.then_some("STATIC=1"));
            make.env("PKG_CONFIG_PATH", self.prefix.join("lib/pkgconfig"));
            make.env_remove("MAKEFLAGS");
            self.logged(&mut make, &dir)?;
            dir.join("loop")
        } else {
            let mut cmake = exec::command("cmake");
            cmake.current_dir(&dir).args(["-B", "build", "-S", "."]);
            cmake.arg(format!("-DCMAKE_PREFIX_PATH={}", self.prefix.display()));
            cmake.arg(format!("-DSTATIC={}", if linked_in { "ON" } else { "OFF" }));
            cmake.args([format!("-DCMAKE_C_FLAGS={flags}"), format!("-DCMAKE_CXX_FLAGS={flags}")]);
            self.logged(&mut cmake, &dir)?;
            let mut build = exec::command("cmake");
            self.logged(build.current_dir(&dir).args(["--build", "build"]), &dir)?;
            dir.join("build/loop")
        };
        let run_file = dir.join("loop.tailbound.jsonl");
        let mut c = exec::command(&program);
        c.args(["--duration", &DURATION_S.to_string(), "--period-us", &PERIOD_US.to_string()]);
        c.arg("--out").arg(&run_file);
        if !linked_in {
            c.env("LD_LIBRARY_PATH", self.prefix.join("lib"));
        }
        self.logged(&mut c, &dir)?;
        self.check(&run_file)
    }

    /// Runs to the end; what it said is in the error if that was not success.
    fn logged(&self, c: &mut Command, dir: &Path) -> anyhow::Result<()> {
        let log = dir.join("output.txt");
        let line = exec::shown(c);
        match exec::limited(c, &log, LIMIT)? {
            Some(s) if s.success() => Ok(()),
            ended => {
                let how = ended.map_or("still ran at its time limit".to_owned(), |s| s.to_string());
                bail!("`{line}`: {how}\n{}", fs::read_to_string(&log).unwrap_or_default())
            }
        }
    }

    /// The tool reads the run, and its counts add up.
    fn check(&self, run_file: &Path) -> anyhow::Result<()> {
        schema::check_run(&self.project, run_file)?;
        let mut show = exec::command(&self.tool);
        let out = exec::output(show.arg("show").arg("--json").arg(run_file))?;
        ensure!(out.status.success(), "show: {}", String::from_utf8_lossy(&out.stderr));
        let report: Value = serde_json::from_slice(&out.stdout).context("show --json")?;
        let contexts: Vec<&str> = report["totals"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|t| t["context"].as_str())
            .collect();
        ensure!(contexts == ["start", "completion"], "contexts: {contexts:?}");
        ensure!(report["run"]["ended"] == "complete", "ended: {}", report["run"]["ended"]);
        let planned = report["plan"]["activations"].as_u64().unwrap_or(0);
        #[expect(clippy::cast_precision_loss, reason = "some thousands")]
        let most = (planned as f64) * PERIOD_US <= DURATION_S * 1e6;
        ensure!(planned > 0 && most, "{planned} activations");
        for total in report["totals"].as_array().into_iter().flatten() {
            ensure!(
                total["due"]["n"] == planned,
                "{}: {} due, {planned} fell due",
                total["context"],
                total["due"]["n"]
            );
            let (min, max) = (&total["due"]["min_ns"], &total["due"]["max_ns"]);
            ensure!(min.as_i64() <= max.as_i64() && min.is_i64(), "min {min}, max {max}");
        }
        Ok(())
    }
}
