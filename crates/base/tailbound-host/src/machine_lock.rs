// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine's lock: a fleet or an agent has the machine for itself; persons' measurements share it, and keep those away.
//!
//! An flock(2) on the same file as `tailbound fleet` locks by a shell (tailbound-fleet, lease.rs): exclusive for fleets
//! and agents, shared for persons. What is run under it inherits the descriptor, so that the machine stays locked until that has
//! ended. Source: flock(2), proc(5) (`/proc/locks`, `/proc/PID/fdinfo`).

use std::fs::{self, File, Metadata, TryLockError};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tailbound_core::finding::{Finding, Impact};
use tailbound_core::printable;
use tailbound_sys::given;
use tailbound_sys::new_file;

use crate::root::Root;

/// Where the lock lies; a machine without this folder has it in the other one.
const PLACES: [&str; 2] = ["/run/lock", "/tmp"];
/// Names another folder.
const FOLDER: &str = "TAILBOUND_LOCK_FOLDER";
const LOCK: &str = "tailbound.machine";
const RESERVED: &str = "tailbound.reserved";
const RESERVED_BY_OWNER: &str = "/etc/tailbound/reserved";
/// What a person writes into the file is shown.
const WORDS_BYTES_MAX: u64 = 4096;
const COMMAND_CHARS: usize = 80;
/// From one look whether a fleet or an agent is done to the next.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// More generations than processes have.
const ANCESTORS_MAX: usize = 64;

/// The machine, held for as long as this lives.
#[derive(Debug)]
pub struct MachineGuard {
    file: File,
}

impl MachineGuard {
    /// What holds it, to be handed down.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }
}

/// A person's measurement, for as long as this lives.
#[derive(Debug)]
pub struct Shared {
    /// None: whoever started this has the machine, or there is no lock that could be taken.
    file: Option<File>,
    path: PathBuf,
}

/// Why the machine cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum NotFree {
    /// Somebody has it.
    #[error("{0}")]
    Held(String),
    /// The lock cannot be looked at.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

fn folder() -> PathBuf {
    let [usual, other] = PLACES.map(Path::new);
    match std::env::var_os(FOLDER).filter(|v| !v.is_empty()) {
        Some(named) => named.into(),
        None if usual.is_dir() => usual.to_owned(),
        None => other.to_owned(),
    }
}

/// The person's file, if there is one, and its first line.
#[must_use]
pub fn reserved() -> Option<String> {
    let places = [PathBuf::from(RESERVED_BY_OWNER), folder().join(RESERVED)];
    places.iter().find(|p| p.exists()).map(|path| {
        // That the file is there is what counts; its words are for people.
        let said = given::text(path, WORDS_BYTES_MAX).unwrap_or_default();
        format!("a person has it: {}: {}", path.display(), said.lines().next().unwrap_or_default())
    })
}

fn opened(path: &Path) -> io::Result<File> {
    // Only read where it is there: it may be another user's.
    match given::open(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => new_file::open_lock(path),
        opened => opened,
    }
}

/// Takes the machine for a fleet or an agent, if it is free.
///
/// # Errors
/// Who has it; or the lock cannot be opened.
pub fn take() -> Result<MachineGuard, NotFree> {
    let path = folder().join(LOCK);
    let cannot = |source| NotFree::File { path: path.clone(), source };
    let file = opened(&path).map_err(cannot)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let others = others(&path).join(", ");
            let which = if others.is_empty() { path.display().to_string() } else { others };
            // Where a share is to be had, only persons have it.
            let who = match file.try_lock_shared() {
                Ok(()) => "a person measures on it with tailbound",
                Err(_) => "something of tailbound measures on it",
            };
            return Err(NotFree::Held(format!("{who} ({which})")));
        }
        Err(TryLockError::Error(e)) => return Err(cannot(e)),
    }
    match reserved() {
        Some(who) => Err(NotFree::Held(who)),
        None => Ok(MachineGuard { file }),
    }
}

/// What a person's measurement does while a fleet or an agent has the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhileHeld {
    /// It is an error.
    Refuse,
    /// It is waited until that is over.
    Wait,
}

impl WhileHeld {
    /// Waits if that is wanted.
    #[must_use]
    pub fn wait_if(wanted: bool) -> Self {
        if wanted { Self::Wait } else { Self::Refuse }
    }
}

/// Why a person's measurement does not begin.
#[derive(Debug, thiserror::Error)]
#[error(
    "{0}: two measurements at the same time disturb each other; wait until that is over (`run` and `campaign run` do with --wait-for-machine)"
)]
pub struct NotShared(NotFree);

/// As [`share`], waiting for it where that is wanted; `note` is told once for whom.
///
/// # Errors
/// A fleet or an agent has the machine, and it is not waited.
pub fn share_when(while_held: WhileHeld, note: fn(&str)) -> Result<Shared, NotShared> {
    let mut is_told = false;
    loop {
        match share() {
            Err(NotFree::Held(who)) if while_held == WhileHeld::Wait => {
                if !is_told {
                    note(&format!("{who}: waits until that is over"));
                    is_told = true;
                }
                std::thread::park_timeout(LOOK_EVERY);
            }
            shared => return shared.map_err(NotShared),
        }
    }
}

/// A person measures: beside other persons, and never while a fleet or an agent does, unless that started this process.
///
/// # Errors
/// A fleet or an agent has the machine.
pub fn share() -> Result<Shared, NotFree> {
    let path = folder().join(LOCK);
    // A machine without a place for it, or where nobody may write there, has no fleet either.
    let Ok(file) = opened(&path) else { return Ok(Shared { file: None, path }) };
    match file.try_lock_shared() {
        Ok(()) => Ok(Shared { file: Some(file), path }),
        Err(TryLockError::WouldBlock) if is_handed_down(&file) => Ok(Shared { file: None, path }),
        Err(TryLockError::WouldBlock) => {
            let who = others(&path).join(", ");
            let which = if who.is_empty() { path.display().to_string() } else { who };
            let why =
                format!("a fleet or an agent of tailbound measures on this machine ({which})");
            Err(NotFree::Held(why))
        }
        // A file system without locks.
        Err(TryLockError::Error(_)) => Ok(Shared { file: None, path }),
    }
}

impl Shared {
    /// Whether other measurements share the machine at the begin. Where this one has its share from whoever started it, its own is given
    /// back: the same work is not told twice. For a look the kernel waits until all CPUs have been elsewhere, some milliseconds:
    /// whoever is in a hurry looks when it measures already.
    #[must_use]
    pub fn finding_at_begin(&mut self) -> Option<Finding> {
        // Mostly the only one, and then nobody can have handed it down: that is one file to read instead of all that is open above.
        if is_only_holder(&self.path) {
            return None;
        }
        self.file = self.file.take().filter(|file| !is_handed_down(file));
        self.finding()
    }

    /// Whether other measurements share the machine at this moment.
    #[must_use]
    pub fn finding(&self) -> Option<Finding> {
        let others = others(&self.path);
        let (first, rest) = others.split_first()?;
        let more =
            if rest.is_empty() { String::new() } else { format!(", and {} more", rest.len()) };
        let title = format!(
            "Tailbound measured something else on this machine at the same time: {first}{more}"
        );
        // No doubt: what is met beside more work is met.
        Some(Finding::listed("measured-beside", Impact::Notice, title))
    }
}

/// Is this process, which has the lock, certainly the only one? In a namespace of its own it may not see who else has it, and a
/// file system may give the kernel's list other numbers than stat(2).
fn is_only_holder(path: &Path) -> bool {
    let Ok(file) = fs::metadata(path) else { return false };
    let locks = locks();
    let own = std::process::id().to_string();
    holders(&locks, file.dev(), file.ino()) == [own.as_str()] && sees_every_process()
}

/// Source: `PROC_PID_INIT_INO` of the kernel's include/linux/proc_ns.h.
fn sees_every_process() -> bool {
    const FIRST: u64 = 0xEFFF_FFFC;
    // A kernel without such namespaces has no such file.
    fs::metadata("/proc/self/ns/pid").map_or(true, |m| m.ino() == FIRST)
}

/// Has this process beside `lock`, or one that it descends from, the lock already?
fn is_handed_down(lock: &File) -> bool {
    let Ok(file) = lock.metadata() else { return false };
    let own = std::process::id().to_string();
    let number = lock.as_raw_fd().to_string();
    line_of_descent().iter().any(|pid| has_lock(pid, &file, (*pid == own).then_some(&number)))
}

/// Has a process a descriptor of this very file that holds a lock, but for `except`?
fn has_lock(pid: &str, lock: &Metadata, except: Option<&String>) -> bool {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    open.map(|e| e.file_name()).any(|number| {
        let number = number.to_string_lossy();
        if except.is_some_and(|except| *except == number) {
            return false;
        }
        let is = fs::metadata(format!("/proc/{pid}/fd/{number}"))
            .is_ok_and(|f| (f.dev(), f.ino()) == (lock.dev(), lock.ino()));
        is && fs::read_to_string(format!("/proc/{pid}/fdinfo/{number}"))
            .is_ok_and(|said| said.contains("FLOCK"))
    })
}

/// This process, the one that started it, and so on.
fn line_of_descent() -> Vec<String> {
    let mut line = vec![std::process::id().to_string()];
    while let Some(parent) = line.last().and_then(|pid| parent(pid)) {
        if line.len() >= ANCESTORS_MAX {
            break;
        }
        line.push(parent);
    }
    line
}

fn parent(pid: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let parent = status.lines().find_map(|l| l.strip_prefix("PPid:"))?.trim();
    (parent != "0").then(|| parent.to_owned())
}

/// Processes that have the lock or a share of it, but for those that this one descends from, in words.
fn others(path: &Path) -> Vec<String> {
    let Ok(file) = fs::metadata(path) else { return Vec::new() };
    // Only names are lost with it: the lock itself decides who waits.
    let locks = locks();
    let mut holders = holders(&locks, file.dev(), file.ino());
    let itself = std::process::id().to_string();
    holders.retain(|pid| *pid != itself);
    if holders.is_empty() {
        return Vec::new();
    }
    let own = line_of_descent();
    holders.into_iter().filter(|pid| !own.iter().any(|o| o == pid)).filter_map(named).collect()
}

/// The kernel's list of locks; empty where it has none to show.
fn locks() -> String {
    Root::real().text("/proc/locks").unwrap_or_default()
}

/// Processes in the text of `/proc/locks` that have this file.
fn holders(locks: &str, device: u64, inode: u64) -> Vec<&str> {
    let major = (device >> 8 & 0xfff) | (device >> 32 & !0xfff);
    let minor = (device & 0xff) | (device >> 12 & !0xff);
    let file = format!("{major:02x}:{minor:02x}:{inode}");
    locks.lines().filter_map(|line| holder(line, &file)).collect()
}

fn holder<'a>(line: &'a str, file: &str) -> Option<&'a str> {
    // `1: FLOCK  ADVISORY  READ  4711 00:1a:42 0 EOF`; who waits has an arrow behind the number.
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, "FLOCK", _, _, pid, of, ..] = words.as_slice() else { return None };
    (*of == file).then_some(*pid)
}

/// `tailbound run -D 1h (process 4711)`; none: it has ended, and what it started has its descriptor.
fn named(pid: &str) -> Option<String> {
    let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words: Vec<_> = command.split(|b| *b == 0).map(String::from_utf8_lossy).collect();
    let command = words.join(" ");
    Some(format!("{} (process {pid})", printable::excerpt(command.trim(), COMMAND_CHARS)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holders_are_read_from_the_kernels_list() {
        let locks = "1: FLOCK  ADVISORY  WRITE 42 00:1a:7 0 EOF\n1: -> FLOCK  ADVISORY  READ 43 00:1a:7 0 EOF\n\
            2: POSIX  ADVISORY  WRITE 44 00:1a:7 0 EOF\n3: FLOCK  ADVISORY  READ 45 fd:100:7 0 EOF\n\
            4: FLOCK  ADVISORY  READ 46 00:1a:70 0 EOF\n";
        assert_eq!(holders(locks, 0x1a, 7), ["42"]);
        // Major 253, minor 256: makedev(3).
        assert_eq!(holders(locks, 253 << 8 | 256 << 12, 7), ["45"]);
    }

    #[test]
    fn a_lock_of_this_process_is_found_and_one_that_is_only_open_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(LOCK);
        let file = new_file::open_lock(&path).expect("a lock");
        let other = new_file::open_lock(&path).expect("a lock");
        assert!(!is_handed_down(&other));
        file.lock_shared().expect("a share");
        assert!(is_handed_down(&other) && !is_handed_down(&file));
        let is = path.metadata().expect("a lock");
        let locks = fs::read_to_string("/proc/locks").expect("the kernel's list");
        let is_listed = !holders(&locks, is.dev(), is.ino()).is_empty();
        assert_eq!(is_only_holder(&path), is_listed && sees_every_process());
        // The same process twice: who else has it is to be looked for.
        let again = new_file::open_lock(&path).expect("a lock");
        again.lock_shared().expect("a share");
        assert!(!is_only_holder(&path));
        // Its own is no other one.
        assert_eq!(others(&path), Vec::<String>::new());
    }
}
