// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that are made, written, synced, read back, shortened and thrown away: the page
//! cache, and the disk where the folder lies on one.
//!
//! Context: the tasks are the load; SETUP elsewhere. Units: bytes; counts KiB written or read.
//! The files have no name (where the file system cannot do that, they lose it the moment
//! they are open), so that the kernel frees them however the load ends.
//! What is read back is compared: a load that corrupts is worth knowing.
//! Source: open(2) O_TMPFILE, fsync(2), ftruncate(2).

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use tailbound_core::units;
use tailbound_sys::scratch;
use tailbound_sys::{process, sched};

use crate::error::LoadError;
use crate::failure::{Explain, Failure};
use crate::kind::{CPUS, LoadKind, Note, Start, Started};
use crate::machine::{self, Room};
use crate::options::Reader;
use crate::storm;

pub(crate) static KIND: LoadKind = LoadKind {
    name: "file",
    unit: "KiB",
    about: "makes a file, writes, syncs, reads back, shortens and drops it: page cache and file system",
    options: &[
        (
            "path",
            "folder (default: the first of /dev/shm, $TMPDIR, /tmp, /var/tmp, /run and / that can be written)",
        ),
        (
            "size",
            "bytes of a file (default 16M, at most what the folder and the memory have room for)",
        ),
        ("tasks", "processes, each with a file at a time (default: 1 per CPU)"),
        ("sync", "no: without fsync (default yes)"),
        ("loops", "files of each process, then end (default: until stopped)"),
        CPUS,
    ],
    coarse: false,
    command: None,
    prepare: |r| Ok(Start::new(Options::read(r)?, start)),
};

/// Bytes of one write or read.
const CHUNK_BYTES: usize = 64 << 10;
const FILE_DEFAULT_BYTES: usize = 16 << 20;
/// What a disk or a file system must never do.
pub(crate) const OTHER_BYTES: &str = "gave back other bytes than were written";
/// At most this part of what is free is used by default.
const FREE_PART: u64 = 4;
/// Folders that exist nearly everywhere, memory before disks: the load is the page cache.
const FOLDERS: [&str; 5] = ["/dev/shm", "/tmp", "/var/tmp", "/run", "/"];

/// Where, how much, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Options {
    path: Option<PathBuf>,
    size: Option<usize>,
    tasks: Option<usize>,
    sync: bool,
    loops: Option<u64>,
}

impl Options {
    fn read(r: &Reader<'_>) -> Result<Self, LoadError> {
        Ok(Self {
            path: r.folder("path")?,
            size: r.bytes("size")?,
            tasks: r.tasks("tasks")?,
            sync: r.yes_no("sync")?.unwrap_or(true),
            loops: r.loops()?,
        })
    }
}

fn start(options: Options, note: Note<'_>) -> Started {
    let cpus = sched::affinity(0)?.len().max(1);
    let tasks = options.tasks.unwrap_or(cpus);
    let dir = match &options.path {
        Some(path) => path.clone(),
        None => first_writable()?,
    };
    let (_, nameless) =
        make(&dir).on(dir.display()).remedy("write path= of a folder you may write to")?;
    let room = Room::disk(&dir)?;
    let part =
        room.as_ref().map(|r| usize::try_from(r.part(FREE_PART)).unwrap_or(usize::MAX) / tasks);
    let most = part.unwrap_or(usize::MAX).clamp(CHUNK_BYTES, FILE_DEFAULT_BYTES);
    let bytes = machine::block_bytes(options.size, most, tasks, note)?;
    if let Some(room) = room {
        let wanted = u64::try_from(bytes.saturating_mul(tasks)).unwrap_or(u64::MAX);
        let what = format!("{tasks} files of {} bytes", units::grouped(bytes as u64));
        room.refuse(wanted, &what, "write a smaller size=, fewer tasks= or another path=")?;
    }
    let kind = file_system(&dir).map(|k| format!(" ({k})")).unwrap_or_default();
    let files =
        if nameless { "files without a name" } else { "files that lose their name once open" };
    note(format!(
        "{files} of {} bytes in {}{kind}, one in each of {tasks} processes",
        units::grouped(bytes as u64),
        dir.display()
    ));
    storm::start(tasks, |slot, count| churn(&dir, bytes, &options, slot, count))
}

/// The first folder in which a file can be made: memory, what TMPDIR names, a disk.
pub(crate) fn first_writable() -> Result<PathBuf, Failure> {
    let named = std::env::var_os("TMPDIR").map(PathBuf::from).filter(|p| p.is_absolute());
    let mut folders: Vec<PathBuf> = FOLDERS.iter().map(PathBuf::from).collect();
    folders.splice(1..1, named);
    let mut refused = Vec::new();
    for dir in folders {
        match make(&dir) {
            Ok(_) => return Ok(dir),
            Err(e) => refused.push(Failure::from(e).on(dir.display())),
        }
    }
    Err(Failure::NoFolder { wanted: "folder to write in", refused })
}

/// A new file in `dir`, and whether it never had a name.
pub(crate) fn make(dir: &Path) -> io::Result<(File, bool)> {
    let error = match scratch::nameless(dir) {
        Ok(file) => return Ok((file, true)),
        Err(e) => e,
    };
    if !scratch::unsupported(&error) {
        return Err(io::Error::from_raw_os_error(error.errno));
    }
    let path = dir.join(format!(".tailbound-load-{}", process::own_pid()));
    // Two loads in PID namespaces of their own may have one number, and one that was killed
    // here may have left its file: whoever comes later takes the name away.
    let unlinked = || match fs::remove_file(&path) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    };
    unlinked()?;
    let file = File::options().read(true).write(true).create_new(true).open(&path)?;
    unlinked()?;
    Ok((file, false))
}

/// What kind of file system `dir` lies on, as the kernel calls it.
pub(crate) fn file_system(dir: &Path) -> Option<String> {
    let dir = dir.canonicalize().ok()?;
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    kind_of_mount(&mounts, &dir)
}

fn kind_of_mount(mounts: &str, dir: &Path) -> Option<String> {
    let mut best: Option<(usize, &str)> = None;
    for line in mounts.lines() {
        let mut fields = line.split(' ').skip(1);
        let (Some(at), Some(kind)) = (fields.next(), fields.next()) else { continue };
        // Of two mounts in one place the later one is seen.
        if dir.starts_with(at) && best.is_none_or(|b| at.len() >= b.0) {
            best = Some((at.len(), kind));
        }
    }
    best.map(|b| b.1.to_owned())
}

/// Bytes that differ from task to task and are the same in every run.
fn pattern(seed: usize) -> Vec<u8> {
    let mut x = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed as u64 + 1) | 1;
    let mut words = Vec::with_capacity(CHUNK_BYTES);
    while words.len() < CHUNK_BYTES {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        words.extend_from_slice(&x.to_le_bytes());
    }
    words
}

fn churn(
    dir: &Path,
    bytes: usize,
    options: &Options,
    slot: usize,
    count: &dyn Fn(u64),
) -> Result<(), Failure> {
    let failed = |what: &str, e: io::Error| {
        let full = matches!(e.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
        let failure = Failure::from(e).on(format_args!("{what} in {}", dir.display()));
        if full { failure.remedy("write a smaller size= or another path=") } else { failure }
    };
    let chunk = pattern(slot);
    let mut back = vec![0; CHUNK_BYTES];
    // KiB: sizes below one count together.
    let mut rest = 0;
    let mut tell = |n: usize| {
        rest += n;
        count(rest as u64 >> 10);
        rest &= 1023;
    };
    let mut left = options.loops;
    while left != Some(0) {
        left = left.map(|n| n - 1);
        let (file, _) = make(dir).map_err(|e| failed("open", e))?;
        for at in (0..bytes).step_by(CHUNK_BYTES) {
            let part = chunk.get(..CHUNK_BYTES.min(bytes - at)).unwrap_or(&chunk);
            file.write_all_at(part, at as u64).map_err(|e| failed("write", e))?;
            tell(part.len());
        }
        if options.sync {
            file.sync_all().map_err(|e| failed("fsync", e))?;
        }
        for at in (0..bytes).step_by(CHUNK_BYTES) {
            let n = CHUNK_BYTES.min(bytes - at);
            let Some(part) = back.get_mut(..n) else { continue };
            file.read_exact_at(part, at as u64).map_err(|e| failed("read", e))?;
            if chunk.get(..n) != Some(&*part) {
                return Err(Failure::Plain(OTHER_BYTES).on(dir.display()));
            }
            tell(n);
        }
        // The second half goes here, the first with the file.
        file.set_len(bytes as u64 / 2).map_err(|e| failed("ftruncate", e))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::read;

    #[test]
    fn options_are_read() {
        let asked = read("file:path=/x,size=1M,tasks=2,sync=no,loops=7", Options::read);
        let usual = read("file", Options::read);
        assert!(usual.sync && usual.path.is_none() && usual.loops.is_none());
        let wanted = Options {
            path: Some("/x".into()),
            size: Some(1 << 20),
            tasks: Some(2),
            sync: false,
            loops: Some(7),
        };
        assert_eq!(asked, wanted);
    }

    #[test]
    fn the_file_system_of_the_longest_mount() {
        let mounts =
            "/dev/sda1 / ext4 rw 0 0\ntmpfs /dev/shm tmpfs rw 0 0\nx /dev/shm ramfs rw 0 0\n";
        let kind = |dir: &str| kind_of_mount(mounts, Path::new(dir));
        assert_eq!(kind("/dev/shm/a").as_deref(), Some("ramfs"));
        assert_eq!(kind("/dev/shmem").as_deref(), Some("ext4"));
        assert_eq!(kind_of_mount("", Path::new("/")), None);
    }

    #[test]
    fn patterns_differ_from_task_to_task_alone() {
        assert_eq!(pattern(3), pattern(3));
        assert_ne!(pattern(0), pattern(1));
        assert_eq!(pattern(0).len(), CHUNK_BYTES);
    }
}
