// SPDX-License-Identifier: MIT OR Apache-2.0
//! The folder of the recorder's files: so many at most, the oldest go first, and the disk is never filled.
//!
//! Units: bytes. Files are numbered: the time of the day may be set back. Nothing but regular files with such names is
//! ever removed.

use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use tailbound_host::TracefsError;
use tailbound_sys::{new_file, scratch};

const BEGIN: &str = "late-";
const END: &str = ".dat";
/// Left for others on the disk.
const MARGIN_BYTES: u64 = 16 << 20;

/// Why a late wake-up has no file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoDump {
    /// The disk.
    #[error("disk full: {free_mib} MiB free, 16 MiB of them left for others")]
    Full { free_mib: u64 },
    /// Writing it.
    #[error(transparent)]
    File(#[from] io::Error),
    /// Reading the kernel's rings.
    #[error(transparent)]
    Tracefs(#[from] TracefsError),
}

/// See the module.
#[derive(Debug)]
pub(super) struct Dumps {
    folder: PathBuf,
    keep: usize,
    /// What one can have.
    most_bytes: u64,
}

impl Dumps {
    /// Makes the folder if it is missing.
    ///
    /// # Errors
    /// It cannot be made or read.
    pub(super) fn open(folder: &Path, keep: usize, most_bytes: u64) -> io::Result<Self> {
        match std::fs::DirBuilder::new().mode(0o750).create(folder) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
            _ => {}
        }
        let dumps = Self { folder: folder.to_owned(), keep, most_bytes };
        dumps.numbers().map(|_| dumps)
    }

    fn path(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{BEGIN}{number:06}{END}"))
    }

    /// The numbers of those that are there, the oldest first.
    fn numbers(&self) -> io::Result<Vec<u64>> {
        let mut numbers: Vec<u64> = std::fs::read_dir(&self.folder)?
            .filter_map(|entry| {
                let entry = entry.ok().filter(|e| e.file_type().is_ok_and(|t| t.is_file()))?;
                let name = entry.file_name();
                let number = name.to_str()?.strip_prefix(BEGIN)?.strip_suffix(END)?;
                number.parse().ok().filter(|n| self.path(*n) == entry.path())
            })
            .collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// The name of the next one, for which there is room: the oldest are removed.
    ///
    /// # Errors
    /// [`NoDump`].
    pub(super) fn next(&self) -> Result<PathBuf, NoDump> {
        let numbers = self.numbers()?;
        let over = numbers.len().saturating_add(1).saturating_sub(self.keep.max(1));
        for number in numbers.iter().take(over) {
            new_file::remove(&self.path(*number))?;
        }
        let free = scratch::free_bytes(&self.folder).ok().flatten();
        if let Some(free) = free.filter(|f| *f < self.most_bytes.saturating_add(MARGIN_BYTES)) {
            return Err(NoDump::Full { free_mib: free >> 20 });
        }
        Ok(self.path(numbers.last().map_or(1, |n| n.saturating_add(1))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn the_oldest_go_first_and_nothing_else_is_touched() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("dumps");
        let dumps = Dumps::open(&own, 2, 1).unwrap();
        for foreign in ["late-1.dat", "late-000001.dat.gz", "notes", "late-x.dat"] {
            std::fs::write(own.join(foreign), "").unwrap();
        }
        std::fs::create_dir(own.join("late-000000.dat")).unwrap();
        for _ in 0..3 {
            std::fs::write(dumps.next().unwrap(), "").unwrap();
        }
        let there = names(&own);
        assert!(
            there.contains(&"late-000002.dat".into()) && there.contains(&"late-000003.dat".into())
        );
        assert!(!there.contains(&"late-000001.dat".into()));
        assert_eq!(there.len(), 7, "{there:?}");
        // After a start with fewer: the numbers go on.
        let fewer = Dumps::open(&own, 1, 1).unwrap();
        assert_eq!(fewer.next().unwrap(), own.join("late-000004.dat"));
        assert_eq!(names(&own).len(), 5);
    }

    #[test]
    fn a_disk_without_room_is_not_filled() {
        let folder = tempfile::tempdir().unwrap();
        let dumps = Dumps::open(folder.path(), 2, u64::MAX).unwrap();
        let e = dumps.next().unwrap_err();
        assert!(matches!(e, NoDump::Full { .. }), "{e}");
        assert!(Dumps::open(&folder.path().join("no/such"), 2, 1).is_err());
    }
}
