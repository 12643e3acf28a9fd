// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the lab's folder holds, whether it is what it was, and what goes first when it is too much.
//!
//! Units: bytes, s. What is made again by itself (snapshots, fetched packages, things
//! half made) is removed by age and size whenever the lab begins; kernels, sources and builds cost a
//! fetch or hours, and go only when somebody says so. While one tailbound works in the folder no other
//! removes anything but snapshots, which stay readable for who opened them.
//! Not here: looking at a snapshot before it is used (`snapshot`), at a kernel (`kernel::obtain`).

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tailbound_core::order;

use serde::Serialize;
use tailbound_sys::file_lock::FileLock;
use tailbound_sys::new_file;

use crate::build;
use crate::emulator;
use crate::error::{LabError, StoreError};
use crate::hash;
use crate::kernel;
use crate::snapshot::{self, Hashing};
use crate::store::Store;
use crate::symbols;

/// The most that snapshots and packages may take, where [`SIZE`] does not say.
const SIZE_MAX: u64 = 8 << 30;
/// How long one stays that nobody used, where [`AGE`] does not say.
const AGE_MAX: Duration = Duration::from_secs(30 * 24 * 3600);
/// The variable that says another size: `20G`.
pub const SIZE: &str = "TAILBOUND_LAB_SIZE";
/// The variable that says another age: `90d`.
pub const AGE: &str = "TAILBOUND_LAB_AGE";

/// Rooms, in the order of listing, and whether what is in them is made again by itself.
const ROOMS: [(&str, bool); 10] = [
    ("kernels", false),
    ("kernels/debs", true),
    ("qemu", false),
    ("builds", false),
    ("sources", false),
    ("work", false),
    ("snapshots", true),
    // Of versions before this one.
    ("initramfs", true),
    ("boots", true),
    ("apt", false),
];

/// What may be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// All together may be that large.
    pub bytes: u64,
    /// Each stays that long after it was last used.
    pub age: Duration,
}

/// A text that is no limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseLimitError {
    /// Of the size of all.
    #[error("`{0}` is no size such as 500M, 8G or 1T")]
    Size(String),
    /// Of the age of each.
    #[error("`{0}` is no age such as 30d or 12h")]
    Age(String),
}

impl Limits {
    /// Those of the environment, or the usual ones.
    ///
    /// # Errors
    /// Usage: a variable that is no size or age.
    pub fn of_environment() -> Result<Self, LabError> {
        let var = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
        let wrong = |variable, source| StoreError::Limit { variable, source };
        Ok(Self {
            bytes: var(SIZE)
                .map_or(Ok(SIZE_MAX), |t| parse_bytes(&t))
                .map_err(|e| wrong(SIZE, e))?,
            age: var(AGE).map_or(Ok(AGE_MAX), |t| parse_age(&t)).map_err(|e| wrong(AGE, e))?,
        })
    }

    /// These, with what `--max-size` and `--max-age` say.
    ///
    /// # Errors
    /// Usage: what is no size or age.
    pub fn with(mut self, size: Option<&str>, age: Option<&str>) -> Result<Self, LabError> {
        let wrong = |variable| move |source| StoreError::Limit { variable, source };
        if let Some(text) = size {
            self.bytes = parse_bytes(text).map_err(wrong("--max-size"))?;
        }
        if let Some(text) = age {
            self.age = parse_age(text).map_err(wrong("--max-age"))?;
        }
        Ok(self)
    }
}

/// `8G`
///
/// # Errors
/// What is wrong with it.
pub fn parse_bytes(text: &str) -> Result<u64, ParseLimitError> {
    let (number, factor) = match text.strip_suffix(['M', 'G', 'T']) {
        Some(number) if text.ends_with('M') => (number, 1u64 << 20),
        Some(number) if text.ends_with('G') => (number, 1 << 30),
        Some(number) => (number, 1 << 40),
        None => (text, if text == "0" { 1 } else { 0 }),
    };
    let bytes = number.parse::<u64>().ok().filter(|_| factor > 0);
    bytes.and_then(|n| n.checked_mul(factor)).ok_or_else(|| ParseLimitError::Size(text.to_owned()))
}

/// `30d`
///
/// # Errors
/// What is wrong with it.
pub fn parse_age(text: &str) -> Result<Duration, ParseLimitError> {
    let (number, seconds) = match (text.strip_suffix('d'), text.strip_suffix('h')) {
        (Some(number), _) => (number, 24 * 3600),
        (_, Some(number)) => (number, 3600),
        _ => ("", 0),
    };
    let found = number.parse::<u64>().ok().and_then(|n| n.checked_mul(seconds));
    found.map(Duration::from_secs).ok_or_else(|| ParseLimitError::Age(text.to_owned()))
}

/// One thing in the folder.
#[derive(Clone, Debug, Serialize)]
pub struct Item {
    /// What kind it is: the room it lies in.
    pub kind: &'static str,
    /// What people call it.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// Disk it takes.
    pub bytes: u64,
    /// Since it was last used, or made.
    pub unused_s: u64,
    /// Is it made again by itself when it is missing?
    pub remade: bool,
}

/// Everything there is.
///
/// # Errors
/// The folder cannot be read.
pub fn items(store: &Store) -> Result<Vec<Item>, LabError> {
    some(store, CacheScope::Everything)
}

/// Which items of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheScope {
    /// What is made again by itself: every run of the lab asks for that, and kernels and sources are tens of thousands
    /// of files.
    Remade,
    /// All.
    Everything,
}

fn some(store: &Store, scope: CacheScope) -> Result<Vec<Item>, LabError> {
    let names = match scope {
        CacheScope::Remade => BTreeMap::new(),
        CacheScope::Everything => names(store)?,
    };
    let mut all = Vec::new();
    for (kind, remade) in ROOMS {
        let room = store.folder().join(kind);
        let mut found: Vec<PathBuf> =
            fs::read_dir(&room).into_iter().flatten().flatten().map(|e| e.path()).collect();
        found.retain(|path| {
            let file = path.file_name().unwrap_or_default();
            file != ".lock" && !(kind == "kernels" && (file == "debs" || file == "names"))
        });
        order::by(&mut found, Ord::cmp);
        for path in found {
            let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let remade = remade || file.starts_with(crate::store::PART);
            if !remade && scope == CacheScope::Remade {
                continue;
            }
            all.push(Item {
                kind,
                name: names.get(&path).cloned().unwrap_or(file),
                bytes: bytes(&path),
                unused_s: unused(&path).as_secs(),
                remade,
                path,
            });
        }
    }
    Ok(all)
}

/// What kernels and builds are called.
fn names(store: &Store) -> Result<BTreeMap<PathBuf, String>, LabError> {
    let mut names = BTreeMap::new();
    for k in kernel::in_store(store)? {
        let name = format!("{} {} {}", k.package, k.version, k.architecture);
        names.insert(store.folder().join("kernels").join(k.deb_sha256), name);
    }
    Ok(names)
}

/// Disk that a file or folder takes; links are not followed.
fn bytes(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let taken = |m: &Metadata| m.blocks().saturating_mul(512);
    let mut sum = 0u64;
    let mut open = vec![path.to_owned()];
    while let Some(path) = open.pop() {
        let Ok(found) = fs::symlink_metadata(&path) else { continue };
        sum = sum.saturating_add(taken(&found));
        if found.is_dir() {
            open.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|e| e.path()));
        }
    }
    sum
}

/// How long nobody used it: what is used writes its mark anew.
fn unused(path: &Path) -> Duration {
    let marks = ["manifest.json", snapshot::CHECK].map(|mark| path.join(mark));
    let times = marks.iter().map(PathBuf::as_path).chain([path]);
    let last = times.filter_map(|p| fs::symlink_metadata(p).ok()?.modified().ok()).max();
    last.and_then(|t| SystemTime::now().duration_since(t).ok()).unwrap_or_default()
}

/// What is not what it was, a sentence each; reads everything that has a hash.
///
/// # Errors
/// The folder cannot be read.
pub fn damaged(store: &Store) -> Result<Vec<(PathBuf, String)>, LabError> {
    let mut found = Vec::new();
    for item in items(store)? {
        let file = item.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let same = |path: &Path, sha256: &str| match hash::of_file(path) {
            Ok(now) if now == sha256 => None,
            Ok(_) => {
                Some(format!("{} is not what it was (its SHA-256 is another)", path.display()))
            }
            Err(e) => Some(e.to_string()),
        };
        let why = match item.kind {
            "snapshots" if !item.remade || !file.starts_with(crate::store::PART) => {
                let state =
                    snapshot::usable(&item.path, Hashing::Always).err().map(|why| why.to_string());
                state.or_else(|| symbols::damage(&item.path))
            }
            "kernels/debs" => same(&item.path, file.trim_end_matches(".deb")),
            "kernels" => kernel::in_store(store)?
                .into_iter()
                .find(|k| k.deb_sha256 == file)
                .and_then(|k| same(&item.path.join(&k.image), &k.image_sha256)),
            "qemu" if !item.remade => emulator::damaged(&item.path),
            "builds" => build::builds(store)?
                .into_iter()
                .find(|b| b.name == file)
                .and_then(|b| same(&item.path.join(&b.image), &b.image_sha256)),
            _ => None,
        };
        // What another process removed meanwhile is not damaged.
        let why = why.filter(|_| item.path.exists());
        found.extend(why.map(|why| (item.path, why)));
    }
    Ok(found)
}

/// Removes what is in `scope` and beyond `limits`, what was unused the longest first. What was removed.
///
/// # Errors
/// Cannot: somebody works with kernels and builds.
pub fn prune(store: &Store, limits: Limits, scope: CacheScope) -> Result<Vec<Item>, LabError> {
    let all = scope == CacheScope::Everything;
    let _alone = if all { Some(alone(store)?) } else { None };
    let mut items: Vec<Item> =
        some(store, scope)?.into_iter().filter(|i| all || !in_use(i)).collect();
    order::by_key(&mut items, |i| std::cmp::Reverse(i.unused_s));
    let mut left: u64 = items.iter().map(|i| i.bytes).sum();
    let mut removed = Vec::new();
    for item in items {
        if left > limits.bytes || item.unused_s >= limits.age.as_secs() {
            left = left.saturating_sub(item.bytes);
            if remove(&item.path)? {
                removed.push(item);
            }
        }
    }
    Ok(removed)
}

/// Something half made by a process that lives.
fn in_use(item: &Item) -> bool {
    let file = item.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let owner = file.strip_prefix(crate::store::PART).and_then(|rest| rest.split('-').next());
    owner.is_some_and(|pid| Path::new("/proc").join(pid).exists())
}

/// Takes it away as a whole, so that nobody finds half of it; `false`: another process was faster, as every run of the lab prunes.
fn remove(path: &Path) -> Result<bool, LabError> {
    let failed = |e: io::Error| LabError::file(path, e);
    let gone = path.with_file_name(format!("{}{}", crate::store::PART, crate::store::unique()));
    match new_file::rename(path, &gone) {
        Ok(()) => {}
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(e) => return Err(failed(e)),
    }
    let is_folder = fs::symlink_metadata(&gone).is_ok_and(|found| found.is_dir());
    let done = if is_folder { fs::remove_dir_all(&gone) } else { fs::remove_file(&gone) };
    match done {
        // Whoever took the room's lock swept it out.
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(failed(e)),
        _ => Ok(true),
    }
}

/// The mark of everybody who works in the folder.
const USERS: &str = ".users";

/// Works in the folder until dropped.
#[derive(Debug)]
pub struct Working {
    _lock: FileLock,
}

/// Says that the caller works in the folder, among others.
///
/// # Errors
/// Somebody is removing things just now and does not end; the folder cannot be written.
pub fn working(store: &Store) -> Result<Working, LabError> {
    let file = mark(store)?;
    let lock = FileLock::shared(file);
    lock.map(|lock| Working { _lock: lock })
        .map_err(|e| LabError::file(&store.folder().join(USERS), e))
}

fn mark(store: &Store) -> Result<File, LabError> {
    let path = store.room("boots").map(|_| store.folder().join(USERS))?;
    new_file::open_lock(&path).map_err(|e| LabError::file(&path, e))
}

fn alone(store: &Store) -> Result<Working, LabError> {
    let file = mark(store)?;
    match FileLock::try_exclusive(file) {
        Ok(lock) => Ok(Working { _lock: lock }),
        Err(TryLockError::WouldBlock) => {
            Err(StoreError::InUse { folder: store.folder().to_owned() }.into())
        }
        Err(TryLockError::Error(e)) => Err(LabError::file(store.folder(), e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 24 * 3600;

    /// A snapshot, or whatever else `path` names, of this size that was not used for `days` days.
    fn thing(store: &Store, path: &str, kib: usize, days: u64) -> PathBuf {
        let folder = store.room(path).unwrap();
        let file = folder.join("state");
        fs::write(&file, vec![1u8; kib << 10]).unwrap();
        let then = SystemTime::now() - Duration::from_secs(days * DAY);
        File::open(&file).unwrap().set_modified(then).unwrap();
        File::open(&folder).unwrap().set_modified(then).unwrap();
        folder
    }

    #[test]
    fn what_was_unused_the_longest_goes_first_and_kernels_only_when_asked() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        let old = thing(&store, "snapshots/old", 64, 40);
        let middle = thing(&store, "snapshots/middle", 512, 20);
        let new = thing(&store, "snapshots/new", 512, 1);
        let kernel = thing(&store, "kernels/aa", 512, 400);
        let half = thing(&store, &format!("boots/.part-{}-0", std::process::id()), 64, 400);
        let limits = Limits { bytes: 1 << 30, age: Duration::from_secs(30 * DAY) };
        let names = |removed: Vec<Item>| removed.into_iter().map(|i| i.name).collect::<Vec<_>>();
        assert_eq!(names(prune(&store, limits, CacheScope::Remade).unwrap()), ["old"]);
        assert!(!old.exists() && middle.exists() && kernel.exists() && half.exists());
        let small = Limits { bytes: 700 << 10, ..limits };
        assert_eq!(names(prune(&store, small, CacheScope::Remade).unwrap()), ["middle"]);
        assert!(new.exists() && half.exists());
        // Everything, if nobody works there.
        let somebody = working(&store).unwrap();
        let e = prune(&store, Limits { bytes: 0, ..limits }, CacheScope::Everything).unwrap_err();
        assert!(e.to_string().contains("another tailbound works"), "{e}");
        assert!(kernel.exists());
        drop(somebody);
        prune(&store, Limits { bytes: 0, ..limits }, CacheScope::Everything).unwrap();
        assert!(items(&store).unwrap().is_empty());
    }

    /// Every run of the lab prunes, and several run at once.
    #[test]
    fn several_who_prune_at_once_remove_each_thing_once() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        let names: Vec<String> = (0..100).map(|n| format!("{n:03}")).collect();
        for name in &names {
            thing(&store, &format!("snapshots/{name}"), 1, 40);
        }
        let limits = Limits { bytes: 1 << 30, age: Duration::from_secs(30 * DAY) };
        let together = std::sync::Barrier::new(4);
        let one = || {
            together.wait();
            prune(&store, limits, CacheScope::Remade).unwrap()
        };
        let removed: Vec<Item> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..4).map(|_| scope.spawn(one)).collect();
            all.into_iter().flat_map(|one| one.join().unwrap()).collect()
        });
        let mut removed: Vec<String> = removed.into_iter().map(|i| i.name).collect();
        removed.sort();
        assert_eq!(removed, names);
        assert_eq!(fs::read_dir(folder.path().join("snapshots")).unwrap().count(), 0);
        // One that is gone since it was listed.
        assert!(!remove(&folder.path().join("snapshots/gone")).unwrap());
    }

    #[test]
    fn damage_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        assert!(damaged(&store).unwrap().is_empty());
        thing(&store, "snapshots/no-check", 1, 0);
        let debs = store.room("kernels/debs").unwrap();
        fs::write(debs.join(format!("{}.deb", hash::of_bytes(b"whole"))), "whole").unwrap();
        fs::write(debs.join(format!("{}.deb", hash::of_bytes(b"other"))), "whole").unwrap();
        let found = damaged(&store).unwrap();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found.iter().any(|(_, why)| why.contains("SHA-256 is another")), "{found:?}");
    }

    #[test]
    fn sizes_and_ages() {
        assert_eq!(parse_bytes("8G"), Ok(8 << 30));
        assert_eq!(parse_bytes("0"), Ok(0));
        assert_eq!(parse_age("30d"), Ok(Duration::from_secs(30 * DAY)));
        for wrong in ["", "G", "8", "-1G", "99999999999T", "8 G", "8g"] {
            assert!(parse_bytes(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "d", "30", "1w", "99999999999999999999d"] {
            assert!(parse_age(wrong).is_err(), "{wrong}");
        }
    }
}
