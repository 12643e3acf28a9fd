// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the project is on this disk, and where its build products go.
//!
//! The place is asked for at run time: a checkout may be moved after it was built.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::{env, fs};

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

/// Was the tool never compiled incrementally here, as in a fresh clone? Asked once: the answer is the same to the end.
pub(crate) fn is_fresh(project: &Path) -> bool {
    static FRESH: OnceLock<bool> = OnceLock::new();
    *FRESH.get_or_init(|| !has_increments(&target(project)))
}

/// xtask itself is compiled before it can ask.
fn has_increments(target: &Path) -> bool {
    let crates = fs::read_dir(target.join("debug/incremental"));
    let mut crates = crates.into_iter().flatten().flatten();
    crates.any(|e| e.file_name().to_str().is_some_and(|name| name.starts_with("tailbound-")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_in_which_only_xtask_was_compiled_has_no_increments() {
        let dir = tempfile::tempdir().unwrap();
        let increments = dir.path().join("debug/incremental");
        assert!(!has_increments(dir.path()));
        for (name, then) in
            [("xtask-1a", false), ("tailbound_testing-2b", false), ("tailbound-3c", true)]
        {
            fs::create_dir_all(increments.join(name)).unwrap();
            assert_eq!(has_increments(dir.path()), then, "{name}");
        }
    }
}
