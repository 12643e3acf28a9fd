// SPDX-License-Identifier: MIT OR Apache-2.0
//! A backup under the name that is wanted: whole, or not there.
//!
//! SQLite writes into a file that has a name already, so it gets one in a folder of the caller alone, beside the
//! one that is wanted; what was found whole there is copied in the one way in which files are written.

use std::fs::{DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use tailbound_sys::new_file::{Existing, NewFile};

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

/// Copies what is whole. Hashes of tokens and the audit log are in it: for nobody else, whatever the umask and whatever was there.
fn copied(whole: &Path, to: &Path, existing: Existing) -> io::Result<()> {
    let mut from = File::open(whole)?;
    let new = NewFile::open(to, existing)?;
    if new.is_file() {
        new.file().set_permissions(Permissions::from_mode(0o600))?;
    }
    io::copy(&mut from, &mut new.file())?;
    new.finish()
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
        copied(&whole, to, existing)
            .map_err(|source| StoreError::File { path: to.to_owned(), source })?;
        Ok(runs)
    }
}
