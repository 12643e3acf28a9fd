// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the lab keeps what is dear to make: kernels by hash, builds by name, snapshots by key.
//!
//! Everything here may be deleted at any time and is made again.
//! Things appear whole or not at all: made in a folder beside, then renamed.

use std::fs::{self, DirBuilder, TryLockError};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use tailbound_sys::file_lock::FileLock;
use tailbound_sys::new_file::{self, Existing};
use tailbound_sys::owner;

use crate::error::{LabError, StoreError};

/// The lab's folder.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

impl Store {
    /// The store in `folder`.
    #[must_use]
    pub fn at(folder: &Path) -> Self {
        // apt, make and QEMU run in other folders. Without a working folder nothing relative is.
        Self { folder: std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned()) }
    }

    /// `$TAILBOUND_LAB`, or `tailbound/lab` in the user's cache (XDG base directories).
    ///
    /// # Errors
    /// There is neither a cache nor a home.
    pub fn of_user() -> Result<Self, LabError> {
        let var = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let folder = var("TAILBOUND_LAB")
            .or_else(|| var("XDG_CACHE_HOME").map(|p| p.join("tailbound/lab")))
            .or_else(|| owner::home().map(|p| p.join(".cache/tailbound/lab")))
            .ok_or(StoreError::NoHome)?;
        let store = Self::at(&folder);
        store.ours(&store.folder)?;
        Ok(store)
    }

    /// Is this level of the store in our hands alone? What lies in it (apt's configuration, kernels,
    /// snapshots, build trees) is executed or believed.
    fn ours(&self, path: &Path) -> Result<(), LabError> {
        owner::believed(path).map_err(|foreign| {
            let root = owner::effective_user() == 0;
            let remedy =
                if root { "root uses only what is root's" } else { "use a folder of your own" };
            StoreError::Foreign { folder: self.folder.clone(), foreign, remedy }.into()
        })
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
        if !Path::new(name).components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(StoreError::Name { name: name.to_owned() }.into());
        }
        let path = self.folder.join(name);
        fs::create_dir_all(&path).map_err(|e| LabError::file(&path, e))?;
        for level in path.ancestors().take_while(|level| level.starts_with(&self.folder)) {
            self.ours(level)?;
        }
        Ok(path)
    }

    /// Takes the lock of a room, waiting for whoever has it (said through `note`), and sweeps
    /// out what holders that were killed left half made. Given back when dropped.
    ///
    /// # Errors
    /// The file of the lock cannot be made.
    pub fn lock(&self, room: &str, note: &mut dyn FnMut(&str)) -> Result<Lock, LabError> {
        let folder = self.room(room)?;
        let path = folder.join(".lock");
        let failed = |e: io::Error| LabError::file(&path, e);
        let open = || new_file::open_lock(&path).map_err(failed);
        let lock = match FileLock::try_exclusive(open()?) {
            Ok(lock) => lock,
            Err(TryLockError::WouldBlock) => {
                note(&format!("waiting for another tailbound that works in {}", folder.display()));
                FileLock::exclusive(open()?).map_err(failed)?
            }
            Err(TryLockError::Error(e)) => return Err(failed(e)),
        };
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(PART) {
                // What cannot be removed is in nobody's way.
                let _left = fs::remove_dir_all(entry.path());
            }
        }
        Ok(Lock { _lock: lock })
    }

    /// An empty folder in a room to make something in, for its user alone; it is removed when dropped, or by the next
    /// holder of the room's lock, which its maker holds meanwhile.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn beside(&self, room: &str) -> Result<Beside, LabError> {
        let path = self.room(room)?.join(format!("{PART}{}", unique()));
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|e| LabError::file(&path, e))?;
        Ok(Beside { path })
    }

    /// Removes from a room that nobody locks what processes that are gone left half made.
    pub fn sweep(&self, room: &str) {
        let folder = self.folder.join(room);
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let owner = name.strip_prefix(PART).and_then(|rest| rest.split('-').next());
            let gone = owner.is_some_and(|pid| !Path::new("/proc").join(pid).exists());
            if gone {
                // What cannot be removed is in nobody's way.
                let _left = fs::remove_dir_all(entry.path());
            }
        }
    }

    /// Puts a finished folder where it belongs, in place of what was there.
    ///
    /// # Errors
    /// It cannot be moved.
    pub fn place(&self, finished: &Path, to: &Path) -> Result<(), LabError> {
        if to.exists() {
            fs::remove_dir_all(to).map_err(|e| LabError::file(to, e))?;
        }
        new_file::rename(finished, to).map_err(|e| LabError::file(to, e))
    }

    /// Writes a file whole or not at all.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write_whole(&self, path: &Path, bytes: &[u8]) -> Result<(), LabError> {
        new_file::write(path, Existing::Replace, bytes).map_err(|e| LabError::file(path, e))
    }
}

/// A name that nobody else has: neither another process nor another thread of this one.
pub(crate) fn unique() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Names of things half made.
pub(crate) const PART: &str = ".part-";

/// A room of the store, ours alone until dropped or this process ends.
#[derive(Debug)]
pub struct Lock {
    _lock: FileLock,
}

/// A folder to make something in.
#[derive(Debug)]
pub struct Beside {
    path: PathBuf,
}

impl Beside {
    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // Swept out by the next holder of the lock otherwise.
        let _left = fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, chown};

    use super::*;

    #[test]
    fn a_store_that_others_may_change_is_not_used() {
        let top = tempfile::tempdir().unwrap();
        let store = Store::at(&top.path().join("lab"));
        for outside in ["../x", "work/../../x", "/x"] {
            assert!(store.room(outside).is_err(), "{outside}");
        }
        assert_eq!(fs::read_dir(top.path()).unwrap().count(), 0, "nothing is made for them");
        let room = store.room("snapshots/x").unwrap();
        let mode = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        for level in [store.folder().to_owned(), store.folder().join("snapshots"), room] {
            mode(&level, 0o777);
            let e = store.room("snapshots/x").unwrap_err().to_string();
            assert!(
                e.contains("may be written by everybody") && e.contains("TAILBOUND_LAB"),
                "{e}"
            );
            mode(&level, 0o755);
        }
        if owner::effective_user() == 0 {
            for level in [top.path().to_owned(), store.folder().join("snapshots")] {
                chown(&level, Some(65534), None).unwrap();
                let e = store.room("snapshots/x").unwrap_err().to_string();
                assert!(e.contains("belongs to user 65534"), "{e}");
                chown(&level, Some(0), None).unwrap();
            }
        }
        store.room("snapshots/x").unwrap();
    }
}
