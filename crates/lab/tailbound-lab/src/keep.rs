// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs of the lab as files: each with its console beside it, in folders of which none is taken from another.

use std::path::{Path, PathBuf};

use tailbound_core::Run;
use tailbound_sys::new_file::{self, Existing};

use crate::bench;
use crate::error::LabError;

/// The ending of a run's file.
const RUN_FILE: &str = ".tailbound.jsonl";

/// Writes a run and, beside it, its console.
///
/// # Errors
/// A file or its folder cannot be written.
pub fn keep(path: &Path, run: &Run, console: &[u8], existing: Existing) -> Result<(), LabError> {
    keep_run(path, run, existing)?;
    let console_file = console_file(path);
    new_file::write(&console_file, existing, console)
        .map_err(|e| LabError::unwritten(&console_file, e))
}

/// Writes a run alone, and its folder where there is none.
///
/// # Errors
/// As [`keep`].
pub fn keep_run(path: &Path, run: &Run, existing: Existing) -> Result<(), LabError> {
    let bytes = bench::bytes(run)?;
    if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(|e| LabError::file(folder, e))?;
    }
    new_file::write(path, existing, &bytes).map_err(|e| LabError::unwritten(path, e))
}

/// Writes a file of words beside runs, over an older one.
///
/// # Errors
/// As [`keep`].
pub fn write_text(path: &Path, text: &str) -> Result<(), LabError> {
    new_file::write(path, Existing::Replace, text.as_bytes())
        .map_err(|e| LabError::unwritten(path, e))
}

/// `run.tailbound.jsonl` → `run.console`.
fn console_file(run: &Path) -> PathBuf {
    let name = run.file_name().unwrap_or_default().to_string_lossy();
    let stem = name
        .strip_suffix(RUN_FILE)
        .or_else(|| name.rsplit_once('.').map(|(stem, _)| stem))
        .unwrap_or(&name);
    run.with_file_name(format!("{stem}.console"))
}

/// `matrix`, then `matrix-2`, `matrix-3`, …
pub fn folders(name: &str) -> impl Iterator<Item = PathBuf> {
    (1u32..).map(move |n| match n {
        1 => PathBuf::from(name),
        _ => PathBuf::from(format!("{name}-{n}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consoles_and_folders_are_named_after_what_they_are_of() {
        let console = |path: &str| console_file(Path::new(path)).display().to_string();
        assert_eq!(console("a/step-001.tailbound.jsonl"), "a/step-001.console");
        assert_eq!(console("worst.jsonl"), "worst.console");
        assert_eq!(console("run"), "run.console");
        let names: Vec<PathBuf> = folders("matrix").take(3).collect();
        assert_eq!(names, ["matrix", "matrix-2", "matrix-3"].map(PathBuf::from));
    }
}
