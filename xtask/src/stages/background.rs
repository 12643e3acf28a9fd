// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is done beside the other stages: the programs for other stages are compiled, then real kernels run in the lab.
//!
//! Tests measure, and sleep, for half of their time. The lab's figures are of virtual time, the same on a busy machine.
//! Nice, so that the tests have the CPUs first. A build that fails here is said by the stage it is for, which builds it again.
//! Source: nice(1).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use anyhow::Context as _;

use super::extent::Extent;
use super::lab;
use super::run::TALLY;
use super::tally::Tally;
use crate::{exec, root};

/// The programs that the stage `boards` builds.
const BOARDS: [&str; 3] = ["arm64", "arm32", "riscv64"];

/// Some of the CPUs, while others want both.
const NICE: &str = "10";

/// Its words: xtask, the programs to build, two files for what is said, xtask's words for the lab.
const SCRIPT: &str = r#"xtask=$1 builds=$2 built=$3 lab=$4; shift 4
"$xtask" build --trial $builds >"$built" 2>&1
[ $# -eq 0 ] || exec "$xtask" test "$@" >"$lab" 2>&1"#;

/// It runs.
pub(super) struct Background {
    child: Child,
    folder: PathBuf,
    /// The checks of the lab are part of it.
    pub(super) has_lab: bool,
    extent: Extent,
}

/// Begins, for those of `stages`, which are to be done as a whole, that build, and the lab if it is one of them.
pub(super) fn begin(
    project: &Path,
    stages: &[&str],
    extent: Extent,
) -> anyhow::Result<Option<Background>> {
    let own = [extent.static_programs().name];
    let builds = [("static", &own[..]), ("boards", &BOARDS)].into_iter();
    let wanted = builds.filter(|(stage, _)| stages.contains(stage));
    let names: Vec<&str> = wanted.flat_map(|(_, names)| names).copied().collect();
    if names.is_empty() || !exec::exists("nice") {
        return Ok(None);
    }
    let folder = root::target(project).join("xtask/background");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let mut nice = exec::command("nice");
    nice.args(["-n", NICE, "sh", "-c", SCRIPT, "sh"]).arg(std::env::current_exe()?);
    nice.arg(names.join(" ")).arg(folder.join("builds.txt")).arg(folder.join("lab.txt"));
    let has_lab = stages.contains(&"lab");
    if has_lab {
        nice.arg("--into").arg(&folder);
        let names = extent.lab(lab::beside_others(project));
        nice.args(names.iter().map(|name| format!("lab:{name}")));
    }
    nice.current_dir(project).stdin(Stdio::null());
    let child = nice.spawn().context("cannot start `nice`")?;
    Ok(Some(Background { child, folder, has_lab, extent }))
}

impl Background {
    /// Waits for it.
    pub(super) fn end(mut self) -> anyhow::Result<()> {
        self.child.wait().map(drop).context("builds in the background")
    }

    /// Waits for it; the stage `lab`: what came of its checks here, and those that want this machine for themselves.
    pub(super) fn lab(mut self, project: &Path) -> anyhow::Result<Tally> {
        self.child.wait().context("the lab in the background")?;
        let said = fs::read_to_string(self.folder.join("lab.txt")).unwrap_or_default();
        print!("{said}");
        let record = self.folder.join(TALLY);
        let text = fs::read_to_string(&record).with_context(|| {
            format!("{}: the lab in the background did not end", record.display())
        })?;
        let mut tally: Tally =
            serde_json::from_str(&text).with_context(|| record.display().to_string())?;
        tally.absorb(self.extent.lab_left_out());
        let on_this_machine = self.extent.lab(lab::ON_THIS_MACHINE.to_vec());
        // No names would be all of them.
        if !on_this_machine.is_empty() {
            tally.absorb(lab::some(project, &on_this_machine)?);
        }
        Ok(tally)
    }
}
