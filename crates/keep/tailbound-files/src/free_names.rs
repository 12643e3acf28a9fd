// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of files that nobody named: they never collide (a taken one gets a number).
//!
//! Not here: how a name gets its number (`tailbound_sys::free_name`).

use std::path::{Path, PathBuf};

use tailbound_sys::free_name::{is_free, numbered};
use tailbound_sys::new_file::Existing;

use crate::error::FilesError;
use crate::named::sibling;
use crate::write;

/// The first of them that is free, with the files of the same stem that would be written beside it
/// (`.html`, `.console`).
#[must_use]
pub fn free(path: &Path, beside: &[&str]) -> PathBuf {
    let free = |p: &PathBuf| is_free(p) && beside.iter().all(|suffix| is_free(&sibling(p, suffix)));
    numbered(path).find(free).unwrap_or_else(|| path.to_owned())
}

/// Writes under the first free name, and says which it was.
///
/// # Errors
/// It cannot be written.
pub fn write_free(path: &Path, text: &str) -> Result<PathBuf, FilesError> {
    loop {
        let free = free(path, &[]);
        match write::bytes(&free, text.as_bytes(), Existing::replaced_if(false)) {
            // Somebody else took it meanwhile.
            Err(e) if is_free(&free) => return Err(e),
            Err(_) => {}
            Ok(()) => return Ok(free),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taken_names_and_those_of_files_beside_them_are_passed_over() {
        let folder = std::env::temp_dir().join(format!("tailbound-names-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("r.tailbound.jsonl");
        std::fs::write(&path, "").unwrap();
        std::fs::write(folder.join("r-2.html"), "").unwrap();
        std::os::unix::fs::symlink("nowhere", folder.join("r-3.tailbound.jsonl")).unwrap();
        assert_eq!(free(&path, &[".html"]), folder.join("r-4.tailbound.jsonl"));
        assert_eq!(free(&path, &[]), folder.join("r-2.tailbound.jsonl"));
        let made = write_free(&path, "text").unwrap();
        assert_eq!(made, folder.join("r-2.tailbound.jsonl"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "", "nothing was overwritten");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
