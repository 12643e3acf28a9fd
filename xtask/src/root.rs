// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the project is on this disk, and where its build products go.
//!
//! Context: COLD. The place is asked for at run time: a checkout may be moved after it was built.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

/// The folder with the workspace's `Cargo.toml`.
pub(crate) fn project() -> anyhow::Result<PathBuf> {
    let start = match env::var_os("CARGO_MANIFEST_DIR") {
        Some(dir) => PathBuf::from(dir),
        None => env::current_dir().context("the current directory is gone")?,
    };
    for dir in start.ancestors() {
        if dir.join("Cargo.toml").is_file() && dir.join("xtask").is_dir() {
            return Ok(dir.to_path_buf());
        }
    }
    bail!("{} is not inside a checkout of the project", start.display());
}

/// Cargo's target directory.
pub(crate) fn target(project: &Path) -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| project.join("target"), PathBuf::from)
}
