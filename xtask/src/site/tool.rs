// SPDX-License-Identifier: MIT OR Apache-2.0
//! mdBook: where it is, and how it is started.
//!
//! `scripts/deps site` compiles it once, in this version, into the folder of build products; no other is taken, so that
//! the same sources give the same site.

use std::path::{Path, PathBuf};

use crate::{exec, root};

/// What to say where there is none.
pub(crate) const MISSING: &str = "there is no mdBook below target/tools: `scripts/deps site` compiles it (142 s of one CPU, November 2026)";

/// It, if it is there.
pub(crate) fn find(project: &Path) -> Option<PathBuf> {
    let program = root::target(project).join("tools/bin/mdbook");
    program.is_file().then_some(program)
}

/// Makes the site in `folder` of the book in `source`.
pub(super) fn run(tool: &Path, source: &Path, folder: &Path) -> anyhow::Result<()> {
    let mut build = exec::command(tool);
    build.arg("build").arg(source).arg("--dest-dir").arg(folder).env("MDBOOK_LOG", "warn");
    exec::succeed(&mut build)
}
