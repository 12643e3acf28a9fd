// SPDX-License-Identifier: MIT OR Apache-2.0
//! The disk itself: files that are written, synced, forgotten by the page cache, read back
//! from the disk, and overwritten here and there with a sync after each.
//!
//! Context: the tasks are the load; SETUP elsewhere. Units: bytes; counts KiB written or read.
//! Bounded by `size` times `tasks`, in files without a name that the kernel frees however the
//! load ends. A folder in memory is refused: there is nothing behind it.
//! Not here: files for the page cache's sake, which may lie in memory (`file`).
//! Source: fsync(2), posix_fadvise(2) POSIX_FADV_DONTNEED, statfs(2).

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use tailbound_core::units;
use tailbound_sys::{SysError, scratch};

use crate::error::LoadError;
use crate::failure::{Explain, Failure};
use crate::file::{self, OTHER_BYTES};
use crate::kind::{CPUS, LoadKind, Note, Start, Started};
use crate::machine::Room;
use crate::options::Reader;
use crate::storm;

pub(crate) static KIND: LoadKind = LoadKind {
    name: "disk",
    unit: "KiB",
    about: "writes, syncs and reads back past the page cache, in order and at random: disk and its interrupts",
    options: &[
        (
            "path",
            "folder on a disk (default: the first of $TMPDIR, /var/tmp, /tmp, /home and / that is one)",
        ),
        ("size", "bytes of a file (default 64M, at most a quarter of what is free)"),
        ("tasks", "processes, each with a file (default 2)"),
        CPUS,
    ],
    coarse: false,
    command: None,
    prepare: |r| Ok(Start::new(Options::read(r)?, start)),
};

/// Bytes of one write or read in order.
const CHUNK_BYTES: usize = 256 << 10;
/// Bytes of one write or read at random.
const PAGE_BYTES: usize = 4096;
/// Writes at random, each synced, in a round.
const SCATTERED: u64 = 64;
const SIZE_DEFAULT_BYTES: usize = 64 << 20;
const TASKS_DEFAULT: usize = 2;
/// At most this part of what is free is used by default.
const FREE_PART: u64 = 4;
const FOLDERS: [&str; 4] = ["/var/tmp", "/tmp", "/home", "/"];

/// Where, and how much.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Options {
    path: Option<PathBuf>,
    size: Option<usize>,
    tasks: usize,
}

impl Options {
    fn read(r: &Reader<'_>) -> Result<Self, LoadError> {
        Ok(Self {
            path: r.folder("path")?,
            size: r.bytes("size")?,
            tasks: r.tasks("tasks")?.unwrap_or(TASKS_DEFAULT),
        })
    }
}

fn start(options: Options, note: Note<'_>) -> Started {
    let dir = match &options.path {
        Some(dir) => usable(dir)?,
        None => first_disk()?,
    };
    let room = Room::disk(&dir)?;
    let part = room.as_ref().map_or(u64::MAX, |r| r.part(FREE_PART)) / options.tasks as u64;
    let usual = SIZE_DEFAULT_BYTES.min(usize::try_from(part).unwrap_or(usize::MAX));
    let bytes = options.size.unwrap_or(usual).max(PAGE_BYTES);
    if let Some(room) = room {
        let wanted = (bytes as u64).saturating_mul(options.tasks as u64);
        let what = format!("{} files of {} bytes", options.tasks, units::grouped(bytes as u64));
        room.refuse(wanted, &what, "write a smaller size=, fewer tasks= or another path=")?;
    }
    note(format!(
        "files of {} bytes in {}{}, one in each of {} processes",
        units::grouped(bytes as u64),
        dir.display(),
        file::file_system(&dir).map(|k| format!(" ({k})")).unwrap_or_default(),
        options.tasks
    ));
    storm::start(options.tasks, |slot, count| {
        let file = file::make(&dir).on(dir.display())?.0;
        Rounds { file, bytes, slot, count }.go_on().on(dir.display())
    })
}

/// A folder that files can be made in, with a disk behind it.
fn usable(dir: &Path) -> Result<PathBuf, Failure> {
    let name = &dir.display();
    file::make(dir).on(name).remedy("write path= of a folder you may write to")?;
    if scratch::in_memory(dir)? {
        let instead = "write path= of a folder on a disk, or use the load `file`";
        return Err(Failure::Plain("lies in memory").on(name).remedy(instead));
    }
    Ok(dir.to_path_buf())
}

fn first_disk() -> Result<PathBuf, Failure> {
    let named = std::env::var_os("TMPDIR").map(PathBuf::from).filter(|p| p.is_absolute());
    let mut refused = Vec::new();
    for dir in named.into_iter().chain(FOLDERS.iter().map(PathBuf::from)) {
        match usable(&dir) {
            Ok(dir) => return Ok(dir),
            // The remedies are about a path= that somebody wrote.
            Err(Failure::Remedy { source, .. }) => refused.push(*source),
            Err(why) => refused.push(why),
        }
    }
    Err(Failure::NoFolder { wanted: "disk to write to", refused })
}

struct Rounds<'a> {
    file: File,
    bytes: usize,
    slot: usize,
    count: &'a dyn Fn(u64),
}

impl Rounds<'_> {
    fn go_on(&self) -> Result<(), Failure> {
        let mut chunk = vec![0u8; CHUNK_BYTES];
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(self.slot as u64 + 1) | 1;
        loop {
            // New bytes each round: disks that find equal ones write nothing.
            for word in chunk.chunks_exact_mut(8) {
                seed = next(seed);
                word.copy_from_slice(&seed.to_le_bytes());
            }
            for at in (0..self.bytes).step_by(CHUNK_BYTES) {
                let part = chunk.get(..CHUNK_BYTES.min(self.bytes - at)).unwrap_or(&chunk);
                self.file.write_all_at(part, at as u64)?;
                self.add_bytes(part.len());
            }
            self.file.sync_all()?;
            self.forget()?;
            let mut back = vec![0u8; CHUNK_BYTES];
            for at in (0..self.bytes).step_by(CHUNK_BYTES) {
                let n = CHUNK_BYTES.min(self.bytes - at);
                let Some(part) = back.get_mut(..n) else { continue };
                self.file.read_exact_at(part, at as u64)?;
                if chunk.get(..n) != Some(&*part) {
                    return Err(Failure::Plain(OTHER_BYTES));
                }
                self.add_bytes(n);
            }
            let pages = (self.bytes / PAGE_BYTES).max(1) as u64;
            for _ in 0..SCATTERED {
                seed = next(seed);
                let page = chunk.get(..PAGE_BYTES).unwrap_or_default();
                self.file.write_all_at(page, seed % pages * PAGE_BYTES as u64)?;
                self.file.sync_data()?;
                self.add_bytes(PAGE_BYTES);
            }
            self.forget()?;
        }
    }

    /// The next read is the disk's.
    fn forget(&self) -> Result<(), SysError> {
        scratch::drop_cache(&self.file)
    }

    fn add_bytes(&self, bytes: usize) {
        (self.count)(bytes as u64 >> 10);
    }
}

fn next(mut x: u64) -> u64 {
    x ^= x << 13;
    x ^= x >> 7;
    x ^ x << 17
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::read;

    #[test]
    fn options_are_read() {
        let asked = read("disk:path=/x,size=1M", Options::read);
        let wanted = Options { path: Some("/x".into()), size: Some(1 << 20), tasks: TASKS_DEFAULT };
        assert_eq!(asked, wanted);
        assert_eq!(read("disk:tasks=5", Options::read).tasks, 5);
    }
}
