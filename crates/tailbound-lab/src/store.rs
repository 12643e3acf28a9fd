// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the lab keeps what is dear to make: kernels by hash, builds by name, snapshots by key.
//!
//! Context: COLD. Everything here may be deleted at any time and is made again.
//! Things appear whole or not at all: made in a folder beside, then renamed.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::LabError;

/// The lab's folder.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

impl Store {
    /// The store in `folder`.
    #[must_use]
    pub fn at(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// `$TAILBOUND_LAB`, or `tailbound/lab` in the user's cache (XDG base directories).
    ///
    /// # Errors
    /// There is neither a cache nor a home.
    pub fn of_user() -> Result<Self, LabError> {
        let var = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let folder = var("TAILBOUND_LAB")
            .or_else(|| var("XDG_CACHE_HOME").map(|p| p.join("tailbound/lab")))
            .or_else(|| var("HOME").map(|p| p.join(".cache/tailbound/lab")))
            .ok_or_else(|| {
                LabError::cannot("there is no HOME: set TAILBOUND_LAB to a folder for kernels")
            })?;
        Ok(Self { folder })
    }

    /// The folder itself.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A subfolder, made if missing.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn room(&self, name: &str) -> Result<PathBuf, LabError> {
        let path = self.folder.join(name);
        fs::create_dir_all(&path).map_err(|e| LabError::file(&path, &e))?;
        Ok(path)
    }
}
