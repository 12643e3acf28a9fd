// SPDX-License-Identifier: MIT OR Apache-2.0
//! Run files that wait for a server, on disk: they survive this process, the server and the power.
//!
//! [`HandIn`] in a thread of its own, because a server may be slow. Units: bytes as packed. The disk is never filled:
//! beyond its most the oldest file goes, and is counted. One file is handed in after the other, the oldest first; the same file twice
//! is one run of the server's.
//!
//! ```text
//! SPOOL/lock                 one writer a spool
//! SPOOL/so-far               a run file that goes on; without its last line, as of a run that was cut off
//! SPOOL/run-000001.gz        one that waits
//! SPOOL/refused-000002.gz    one that the server does not take, for a person to look at
//! SPOOL/dropped              how many had to go
//! ```

use std::fs::{self, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tailbound_core::order;

use flate2::Compression;
use flate2::write::GzEncoder;
use tailbound_monitor::OutboxState;
use tailbound_sys::file_lock::FileLock;
use tailbound_sys::new_file::{self, Existing};
use tailbound_sys::{given, owner};

use crate::client::{Client, ClientError, Server, takeable};
use crate::spool::unbelieved;
use crate::wire::{Added, PLAIN_RUN_BYTES_MAX, SENT_RUN_BYTES_MAX};

const SO_FAR: &str = "so-far";
const DROPPED: &str = "dropped";
const WAITS: &str = "run-";
const REFUSED: &str = "refused-";
const END: &str = ".gz";
/// After a failure, and doubled with each further one.
const PAUSE: std::ops::RangeInclusive<u64> = 5..=600;
const STACK_BYTES: usize = 512 << 10;

/// Of the thread that hands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Runs,
    /// It is to end.
    Ends,
    Ended,
}

struct Shared {
    folder: PathBuf,
    bytes_max: u64,
    standing: Mutex<OutboxState>,
    /// A file came, or the stage is another one.
    changed: Condvar,
    stage: Mutex<Stage>,
    _lock: FileLock,
}

/// See the module.
#[derive(Clone)]
pub struct Outbox(Arc<Shared>);

impl std::fmt::Debug for Outbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outbox").field("folder", &self.0.folder).finish_non_exhaustive()
    }
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // Numbers and a word: right after each statement that changes them.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    packer.write_all(bytes)?;
    packer.finish()
}

/// One file of the folder.
struct Entry {
    number: u64,
    refused: bool,
    bytes: u64,
    path: PathBuf,
}

impl Outbox {
    /// Takes the folder, and makes it where it is not there; at most `bytes_max` of it wait. What a predecessor that was cut off had
    /// so far waits from now on, too.
    ///
    /// # Errors
    /// It cannot be made or read, or another process has it.
    pub fn open(folder: &Path, bytes_max: u64) -> io::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let folder = folder.canonicalize()?;
        // What is in it is handed in under this machine's name. It may have been open to others before.
        let foreign = owner::believed(&folder).err();
        let foreign = foreign.map_or_else(|| owner::of_others(&folder), |f| Ok(vec![f]))?;
        if let Some(foreign) = foreign.first() {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, unbelieved(foreign)));
        }
        let lock = match FileLock::try_exclusive(new_file::open_lock(&folder.join("lock"))?) {
            Ok(lock) => lock,
            Err(TryLockError::WouldBlock) => {
                return Err(io::Error::other("another process has this spool"));
            }
            Err(TryLockError::Error(e)) => return Err(e),
        };
        let dropped = given::text(&folder.join(DROPPED), 64).unwrap_or_default();
        let standing =
            OutboxState { dropped: dropped.trim().parse().unwrap_or(0), ..OutboxState::default() };
        let outbox = Self(Arc::new(Shared {
            folder,
            bytes_max,
            standing: Mutex::new(standing),
            changed: Condvar::new(),
            stage: Mutex::new(Stage::Runs),
            _lock: lock,
        }));
        let so_far = outbox.0.folder.join(SO_FAR);
        match given::read(&so_far, PLAIN_RUN_BYTES_MAX) {
            Ok(bytes) => outbox.put(&bytes)?,
            Err(e) if e.kind() == io::ErrorKind::NotFound => outbox.bound()?,
            Err(e) => return Err(e),
        }
        Ok(outbox)
    }

    /// Its own files, the oldest first.
    fn entries(&self) -> io::Result<Vec<Entry>> {
        let mut all = Vec::new();
        for entry in fs::read_dir(&self.0.folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let Some(name) = name.to_str().and_then(|n| n.strip_suffix(END)) else { continue };
            let (refused, number) = match (name.strip_prefix(WAITS), name.strip_prefix(REFUSED)) {
                (Some(number), _) => (false, number),
                (_, Some(number)) => (true, number),
                _ => continue,
            };
            let (Ok(number), Ok(meta)) = (number.parse(), entry.metadata()) else { continue };
            if meta.is_file() {
                all.push(Entry { number, refused, bytes: meta.len(), path: entry.path() });
            }
        }
        order::by_key(&mut all, |e| e.number);
        Ok(all)
    }

    fn path(&self, kind: &str, number: u64) -> PathBuf {
        self.0.folder.join(format!("{kind}{number:06}{END}"))
    }

    /// Keeps a file that goes on, in the place of what was kept so before.
    ///
    /// # Errors
    /// The disk.
    pub fn keep(&self, so_far: &[u8]) -> io::Result<()> {
        new_file::write(&self.0.folder.join(SO_FAR), Existing::Replace, so_far)
    }

    /// Takes a whole file; what was kept of it goes.
    ///
    /// # Errors
    /// The disk.
    pub fn put(&self, whole: &[u8]) -> io::Result<()> {
        let packed = gzip(whole)?;
        let next = self.entries()?.last().map_or(1, |e| e.number.saturating_add(1));
        new_file::write(&self.path(WAITS, next), Existing::Keep, &packed)?;
        match new_file::remove(&self.0.folder.join(SO_FAR)) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        self.bound()?;
        self.notify();
        Ok(())
    }

    /// Whoever is about to wait has seen what was changed before this, or waits already.
    fn notify(&self) {
        drop(locked(&self.0.stage));
        self.0.changed.notify_all();
    }

    /// Removes the oldest until no more are there than may be, and counts them; the newest stays, whatever its length.
    fn bound(&self) -> io::Result<()> {
        let mut all = self.entries()?;
        let sum = |all: &[Entry]| all.iter().fold(0u64, |n, e| n.saturating_add(e.bytes));
        let mut dropped = 0u64;
        while all.len() > 1 && sum(&all) > self.0.bytes_max {
            // Those that nobody takes go first.
            let at = all.iter().position(|e| e.refused).unwrap_or(0);
            new_file::remove(&all.remove(at).path)?;
            dropped = dropped.saturating_add(1);
        }
        let mut standing = locked(&self.0.standing);
        let waiting = || all.iter().filter(|e| !e.refused);
        standing.waiting = waiting().count() as u64;
        standing.waiting_bytes = waiting().fold(0, |n, e| n.saturating_add(e.bytes));
        standing.refused = all.iter().filter(|e| e.refused).count() as u64;
        standing.dropped = standing.dropped.saturating_add(dropped);
        let count = standing.dropped;
        drop(standing);
        if dropped > 0 {
            let path = self.0.folder.join(DROPPED);
            new_file::write(&path, Existing::Replace, format!("{count}\n").as_bytes())?;
        }
        Ok(())
    }

    /// How the files stand.
    #[must_use]
    pub fn standing(&self) -> OutboxState {
        *locked(&self.0.standing)
    }

    /// Hands in what waits, the oldest first; why it stopped.
    fn round(&self, server: &Server, note: &impl Fn(&str)) -> Result<(), HandInError> {
        let waiting = self.entries()?;
        let mut waiting = waiting.into_iter().filter(|e| !e.refused).peekable();
        if waiting.peek().is_none() {
            return Ok(());
        }
        // Opened each time: a new token is used at once, and between two hours nothing of it is in memory.
        let client = Client::open(server)?;
        for entry in waiting {
            let handed_in = match takeable(entry.bytes) {
                Ok(()) => match given::read(&entry.path, SENT_RUN_BYTES_MAX) {
                    Ok(packed) => client.hand_in::<Added>(&packed),
                    // It had to go meanwhile.
                    Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                    Err(e) => return Err(e.into()),
                },
                // Those behind it are handed in all the same.
                Err(too_large) => Err(too_large),
            };
            let done = match handed_in {
                Ok(_) => {
                    let mut standing = locked(&self.0.standing);
                    standing.sent = standing.sent.saturating_add(1);
                    drop(standing);
                    new_file::remove(&entry.path).map_err(HandInError::from)
                }
                Err(e) if e.may_pass() => Err(e.into()),
                Err(e) => {
                    self.refused(&entry, &e).map(|kept| note(&kept)).map_err(HandInError::from)
                }
            };
            self.bound()?;
            done?;
        }
        Ok(())
    }

    fn refused(&self, entry: &Entry, why: &ClientError) -> io::Result<String> {
        let to = self.path(REFUSED, entry.number);
        new_file::rename(&entry.path, &to)?;
        Ok(format!("the server does not take a run file, which is kept as {}: {why}", to.display()))
    }
}

/// Why what waits was not handed in.
#[derive(Debug, thiserror::Error)]
enum HandInError {
    /// A file of the outbox.
    #[error(transparent)]
    File(#[from] io::Error),
    /// The server.
    #[error(transparent)]
    Client(#[from] ClientError),
}

/// Hands in what comes, until it is told to end.
#[derive(Debug)]
pub struct HandIn {
    outbox: Outbox,
}

impl HandIn {
    /// Begins a thread that hands in what is in `outbox`. `note` gets why it cannot, once for each reason.
    ///
    /// # Errors
    /// What was given of the server cannot be used, or no thread can be made.
    pub fn begin(
        outbox: Outbox,
        server: Server,
        note: impl Fn(&str) + Send + 'static,
    ) -> Result<Self, ClientError> {
        // Nothing is asked yet: only whether it could be.
        drop(Client::open(&server)?);
        let own = outbox.clone();
        let run = move || own.hand_in(&server, &note);
        let thread = std::thread::Builder::new().name("upload".into()).stack_size(STACK_BYTES);
        thread.spawn(run).map_err(|e| ClientError::Given {
            what: "a thread for uploads".to_owned(),
            why: e.to_string(),
        })?;
        Ok(Self { outbox })
    }

    /// Lets it hand in once more, for `most` at most. What waits still stays where it is.
    pub fn end(self, most: Duration) -> OutboxState {
        let shared = &self.outbox.0;
        *locked(&shared.stage) = Stage::Ends;
        self.outbox.notify();
        let stage = locked(&shared.stage);
        drop(shared.changed.wait_timeout_while(stage, most, |stage| *stage != Stage::Ended));
        self.outbox.standing()
    }
}

impl Outbox {
    fn hand_in(&self, server: &Server, note: &impl Fn(&str)) {
        let (mut told, mut pause_s) = (String::new(), *PAUSE.start());
        loop {
            let ends = *locked(&self.0.stage) != Stage::Runs;
            let done = self.round(server, note);
            if ends {
                *locked(&self.0.stage) = Stage::Ended;
                return self.notify();
            }
            match done {
                Ok(()) => {
                    if !told.is_empty() {
                        told.clear();
                        note("run files are handed in again");
                    }
                    pause_s = *PAUSE.start();
                    let stage = locked(&self.0.stage);
                    let rests =
                        |stage: &mut Stage| *stage == Stage::Runs && self.standing().waiting == 0;
                    drop(self.0.changed.wait_while(stage, rests));
                }
                Err(why) => {
                    let why = why.to_string();
                    if why != told {
                        note(&why);
                        told = why;
                    }
                    let (stage, wait) = (locked(&self.0.stage), Duration::from_secs(pause_s));
                    let runs = |stage: &mut Stage| *stage == Stage::Runs;
                    drop(self.0.changed.wait_timeout_while(stage, wait, runs));
                    pause_s = pause_s.saturating_mul(2).min(*PAUSE.end());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::os::unix::fs::{PermissionsExt as _, chown};

    fn text(path: &Path) -> String {
        let mut text = String::new();
        let file = fs::File::open(path).unwrap();
        flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn what_was_cut_off_waits_and_a_second_writer_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("a/spool");
        let outbox = Outbox::open(&root, 1 << 20).unwrap();
        outbox.keep(b"half").unwrap();
        outbox.keep(b"more of it").unwrap();
        assert!(Outbox::open(&root, 1 << 20).unwrap_err().to_string().contains("another process"));
        assert_eq!(outbox.standing(), OutboxState::default());
        drop(outbox);
        let outbox = Outbox::open(&root, 1 << 20).unwrap();
        assert_eq!(outbox.standing().waiting, 1);
        outbox.put(b"whole").unwrap();
        assert_eq!(text(&root.join("run-000001.gz")), "more of it");
        assert_eq!(text(&root.join("run-000002.gz")), "whole");
        assert!(!root.join(SO_FAR).exists());
    }

    #[test]
    fn a_folder_that_others_may_change_is_refused_with_what_they_left() {
        let top = tempfile::tempdir().unwrap();
        let root = top.path().join("spool");
        let mode = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        let refused = || Outbox::open(&root, 60).unwrap_err().to_string();
        Outbox::open(&root, 60).unwrap().put(b"whole").unwrap();
        assert_eq!(fs::metadata(&root).unwrap().permissions().mode() & 0o777, 0o700);
        mode(&root, 0o777);
        assert!(refused().contains("may be written by everybody, and what is in a spool"));
        mode(&root, 0o700);
        Outbox::open(&root, 60).unwrap();
        let left = root.join("run-000002.gz");
        fs::write(&left, "somebody's").unwrap();
        mode(&left, 0o666);
        assert!(refused().contains("run-000002.gz may be written"), "{}", refused());
        mode(&left, 0o600);
        if owner::effective_user() == 0 {
            chown(&left, Some(65534), None).unwrap();
            assert!(refused().contains("run-000002.gz belongs to user 65534"), "{}", refused());
        }
    }

    #[test]
    fn the_oldest_go_are_counted_and_the_count_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let outbox = Outbox::open(folder.path(), 60).unwrap();
        std::fs::write(folder.path().join("run-mine.gz"), [0; 99]).unwrap();
        for n in 0..5 {
            outbox.put(format!("{n}").as_bytes()).unwrap();
        }
        // Each has some twenty bytes.
        let standing = outbox.standing();
        assert!(standing.waiting_bytes <= 60 && standing.waiting + standing.dropped == 5);
        assert!(standing.dropped >= 2 && !folder.path().join("run-000001.gz").exists());
        assert!(folder.path().join("run-000005.gz").exists());
        assert!(folder.path().join("run-mine.gz").exists());
        drop(outbox);
        assert_eq!(Outbox::open(folder.path(), 60).unwrap().standing().dropped, standing.dropped);
    }
}
