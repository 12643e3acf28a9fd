// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles what later stages need while tests wait for time to pass.
//!
//! Context: COLD. The tests measure, and sleep, for half of their time. Nice, so that they have the CPUs first. A build that fails here
//! is said by the stage it is for, which builds it again.
//! Source: nice(1).

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Stdio};

use anyhow::Context as _;

use crate::{exec, root};

/// A stage, and the programs it builds.
const BUILDS: &[(&str, &[&str])] = &[("static", &["static"]), ("arm", &["arm64", "arm32"])];

/// Builds under way.
pub(super) struct Ahead(Child);

/// Begins to build for those of `stages` that build.
pub(super) fn begin(project: &Path, stages: &[&str]) -> anyhow::Result<Option<Ahead>> {
    let wanted = BUILDS.iter().filter(|(stage, _)| stages.contains(stage));
    let names: Vec<&str> = wanted.flat_map(|(_, names)| *names).copied().collect();
    if names.is_empty() || !exec::exists("nice") {
        return Ok(None);
    }
    let dir = root::target(project).join("xtask");
    fs::create_dir_all(&dir)?;
    let log = dir.join("ahead.txt");
    let log = File::create(&log).with_context(|| log.display().to_string())?;
    let mut nice = exec::command("nice");
    nice.args(["-n", "19"]).arg(std::env::current_exe()?).args(["build", "--trial"]).args(names);
    nice.current_dir(project).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    Ok(Some(Ahead(nice.spawn().context("cannot start `nice`")?)))
}

impl Ahead {
    /// Waits for them. The stages they are for have waited already, for cargo's lock.
    pub(super) fn end(mut self) -> anyhow::Result<()> {
        self.0.wait().map(drop).context("builds in the background")
    }
}
