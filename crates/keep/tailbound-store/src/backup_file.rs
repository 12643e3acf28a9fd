// SPDX-License-Identifier: MIT OR Apache-2.0
//! A backup under the name that is wanted: whole, or not there.
//!
//! SQLite writes into a file that has a name already, so it gets one in a folder of the caller alone, beside the
//! one that is wanted; what was found whole there is copied by the one function that writes files.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use tailbound_sys::new_file::{Existing, write_with};

use crate::error::StoreError;
use crate::store::Store;

/// A folder of the caller alone, for the time of a backup.
struct Scratch(PathBuf);

impl Scratch {
    fn beside(file: &Path) -> Result<Self, StoreError> {
        let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy();
        let folder = file.with_file_name(format!(".{name}.{}", std::process::id()));
        match DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => Ok(Self(folder)),
            Err(source) => Err(StoreError::File { path: folder, source }),
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What stays has a name that says whose it was.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Store {
    /// As [`Store::backup`], to the file `to`, which may be there if that is replaced.
    ///
    /// # Errors
    /// As [`Store::backup`]; the file cannot be written.
    pub fn backup_file(
        &mut self,
        to: &Path,
        existing: Existing,
        now: &str,
    ) -> Result<u64, StoreError> {
        let scratch = Scratch::beside(to)?;
        let whole = scratch.0.join("store");
        let runs = self.backup(&whole, now)?;
        let copied = File::open(&whole).and_then(|mut from| {
            write_with(to, existing, |new| io::copy(&mut from, new).map(|_| ()))
        });
        copied.map_err(|source| StoreError::File { path: to.to_owned(), source })?;
        Ok(runs)
    }
}
