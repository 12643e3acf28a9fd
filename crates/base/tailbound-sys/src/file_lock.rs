// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lock of an open file, given back when it is dropped.
//!
//! A child has the open file, and with it the lock, from fork(2) to execve(2): a close in that instant gives
//! nothing back, an unlock does. Not here: locks that a child is to keep (`tailbound-host`, `machine_lock`; the journal of
//! `tailbound-tune`). Source: flock(2).

use std::fs::{File, TryLockError};
use std::io;
use std::ops::Deref;

/// A file that is locked.
#[derive(Debug)]
pub struct FileLock(File);

impl FileLock {
    /// Locks the file for this one alone, unless somebody has it.
    ///
    /// # Errors
    /// Somebody has it; those of flock(2).
    pub fn try_exclusive(file: File) -> Result<Self, TryLockError> {
        file.try_lock()?;
        Ok(Self(file))
    }

    /// Waits until nobody else has it.
    ///
    /// # Errors
    /// Those of flock(2).
    pub fn exclusive(file: File) -> io::Result<Self> {
        file.lock()?;
        Ok(Self(file))
    }

    /// Locks it among others that share it, when nobody has it alone.
    ///
    /// # Errors
    /// Those of flock(2).
    pub fn shared(file: File) -> io::Result<Self> {
        file.lock_shared()?;
        Ok(Self(file))
    }
}

impl Deref for FileLock {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Where that fails it ends with the last who has it.
        drop(self.0.unlock());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::new_file;

    #[test]
    fn a_lock_ends_though_a_child_of_the_moment_has_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let open = || new_file::open_lock(&folder.path().join("lock")).unwrap();
        let lock = FileLock::try_exclusive(open()).unwrap();
        // As fork(2) has it.
        let child = lock.try_clone().unwrap();
        assert!(matches!(FileLock::try_exclusive(open()), Err(TryLockError::WouldBlock)));
        drop(lock);
        let next = FileLock::try_exclusive(open()).unwrap();
        drop((next, child));
        let share = FileLock::shared(open()).unwrap();
        let other = FileLock::shared(open()).unwrap();
        assert!(FileLock::try_exclusive(open()).is_err());
        drop((share, other));
        drop(FileLock::exclusive(open()).unwrap());
    }
}
