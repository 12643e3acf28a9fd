// SPDX-License-Identifier: MIT OR Apache-2.0
//! The run files of a folder, and what to do with a folder where a file was expected.
//!
//! At most some hundred names are looked at. Source: LTTng's layout of traces (`kernel/metadata`, `ust/uid/N/64-bit/metadata`).

use std::path::{Path, PathBuf};
use tailbound_core::order;

use tailbound_archive::plain_name;

use crate::error::FilesError;
use crate::named::name;

/// Folders of a trace lie so deep at most.
const DEPTH_MAX: usize = 5;
const NAMES_MAX: usize = 400;

/// Files as they are named, and of folders the runs in them.
///
/// # Errors
/// A folder cannot be read, or has none.
pub fn files(named: &[PathBuf]) -> Result<Vec<PathBuf>, FilesError> {
    let mut files = Vec::new();
    for path in named {
        if path.is_dir() {
            files.extend(in_folder(path)?);
        } else {
            files.push(path.clone());
        }
    }
    Ok(files)
}

/// The runs in a folder, by name.
///
/// # Errors
/// It cannot be read, or has none.
pub fn in_folder(folder: &Path) -> Result<Vec<PathBuf>, FilesError> {
    let failed = |e: std::io::Error| FilesError::of(folder, &e);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if plain_name(&name(&path)).ends_with(".tailbound.jsonl") {
            files.push(path);
        }
    }
    if files.is_empty() {
        return Err(FilesError::NoRuns(folder.to_owned()));
    }
    order::by(&mut files, Ord::cmp);
    Ok(files)
}

/// What `path` is, if it is a folder, as the end of a sentence that says so.
#[must_use]
pub fn advice(path: &Path) -> Option<&'static str> {
    if !path.is_dir() {
        return None;
    }
    let mut left = NAMES_MAX;
    if has_metadata(path, DEPTH_MAX, &mut left) {
        return Some(
            "; it holds a trace in the Common Trace Format (LTTng), which is binary: run `babeltrace2 FOLDER > FILE.txt`, and `tailbound blame FILE.txt`",
        );
    }
    Some("; name one file in it")
}

/// Is it a folder of a trace, or is one in it?
fn has_metadata(folder: &Path, depth: usize, left: &mut usize) -> bool {
    if folder.join("metadata").is_file() {
        return true;
    }
    let Some(depth) = depth.checked_sub(1) else { return false };
    let Ok(entries) = folder.read_dir() else { return false };
    let mut folders: Vec<PathBuf> = Vec::new();
    for entry in entries.flatten().take(*left) {
        *left = left.saturating_sub(1);
        // Links may lead in a circle.
        if entry.file_type().is_ok_and(|t| t.is_dir()) {
            folders.push(entry.path());
        }
    }
    folders.iter().any(|f| has_metadata(f, depth, left))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_a_trace_is_told_from_others() {
        let folder = tempfile::tempdir().expect("a folder");
        let said = |p: &Path| advice(p).unwrap_or_default();
        assert_eq!(said(folder.path()), "; name one file in it");
        let trace = folder.path().join("t/ust/uid/1000/64-bit");
        std::fs::create_dir_all(&trace).expect("a folder");
        std::fs::write(trace.join("metadata"), "x").expect("a file");
        assert!(said(folder.path()).contains("Common Trace Format"));
        assert_eq!(advice(&trace.join("metadata")), None);
    }
}
