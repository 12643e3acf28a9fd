// SPDX-License-Identifier: MIT OR Apache-2.0
//! Snapshots of guests after their boot: kept whole, looked at before they are used.
//!
//! Units: bytes. `snapshots/<key>/` holds `state` and `check.json`, which says what
//! `state` is: its size and SHA-256. It is hashed once a boot of this host, and whenever its size,
//! time or inode is another. One that is not what it was is removed, and made again by whoever
//! needs it. Folders appear whole; who opened one may go on when it is removed.
//! Source: QEMU docs/devel/migration.rst; proc_sys_kernel(5) (`random/boot_id`).

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tailbound_sys::new_file::{self, Existing};

use crate::error::LabError;
use crate::hash;
use crate::kernel::package::json;
use crate::store::{Beside, Store};

const ROOM: &str = "snapshots";
const FILE: &str = "state";
pub(crate) const CHECK: &str = "check.json";
/// How long nothing may come before it is asked whether anything will.
const LOOK: Duration = Duration::from_millis(100);

/// What a snapshot is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Check {
    bytes: u64,
    sha256: String,
    /// When its hash was last compared.
    seen: Option<Seen>,
}

/// The file as it was then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Seen {
    boot: String,
    modified_ns: i64,
    inode: u64,
}

impl Seen {
    fn now(state: &File) -> io::Result<Self> {
        let m = state.metadata()?;
        let modified_ns = m.mtime().saturating_mul(1_000_000_000).saturating_add(m.mtime_nsec());
        Ok(Self { boot: boot(), modified_ns, inode: m.ino() })
    }
}

/// This boot of the host; unknown where /proc does not tell, and then the same as no other.
fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// A place for one snapshot.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    folder: PathBuf,
}

impl Place {
    /// That of the machine with this key.
    pub(crate) fn of(store: &Store, key: &str) -> Result<Self, LabError> {
        Ok(Self { folder: store.room(ROOM)?.join(key) })
    }

    /// Its folder, which need not be there.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// One in this folder, which is its maker's alone.
    pub(crate) fn within(folder: &Path) -> Self {
        Self { folder: folder.join(FILE) }
    }

    /// The snapshot, if there is one and it is what it was. One that is not is removed: `note` says so.
    pub(crate) fn open(&self, note: &mut dyn FnMut(String)) -> Option<File> {
        if !self.folder.exists() {
            return None;
        }
        match usable(&self.folder, Hashing::IfTouched) {
            Ok(file) => Some(file),
            Err(why) => {
                self.forget(&why.to_string(), note);
                None
            }
        }
    }

    /// Removes it, and says why.
    pub(crate) fn forget(&self, why: &str, note: &mut dyn FnMut(String)) {
        let left = match fs::remove_dir_all(&self.folder) {
            Ok(()) => "it was removed and is made again".to_owned(),
            Err(e) if e.kind() == io::ErrorKind::NotFound => return,
            Err(e) => format!("and cannot be removed: {e}"),
        };
        note(format!("snapshot {}: {why}; {left}", self.folder.display()));
    }

    /// A snapshot that is being made.
    pub(crate) fn begin(&self, store: &Store) -> Result<Making, LabError> {
        store.sweep(ROOM);
        let beside = store.beside(ROOM)?;
        let whole = beside.path().join("whole");
        fs::create_dir(&whole).map_err(|e| LabError::file(&whole, e))?;
        let path = whole.join(FILE);
        let file = File::create_new(&path).map_err(|e| LabError::file(&path, e))?;
        Ok(Making { _beside: beside, whole, file, to: self.folder.clone() })
    }
}

/// Why a snapshot is not used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unusable {
    /// What says what it is cannot be read.
    #[error("{CHECK}: {0}")]
    Check(io::Error),
    /// What says what it is was written by something else.
    #[error("{CHECK}: {0}")]
    Form(serde_json::Error),
    /// The state cannot be read.
    #[error(transparent)]
    State(#[from] io::Error),
    /// The state cannot be hashed.
    #[error(transparent)]
    Hash(#[from] LabError),
    /// Cut off, or added to.
    #[error("has {has} bytes instead of {wanted}")]
    Size { has: u64, wanted: u64 },
    /// Other content.
    #[error("is not what was written (its SHA-256 is another)")]
    Content,
}

/// When a snapshot is hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hashing {
    Always,
    /// Where its file may have changed since it was hashed last.
    IfTouched,
}

/// Is the snapshot in `folder` what it was? Its file, opened.
pub(crate) fn usable(folder: &Path, hashing: Hashing) -> Result<File, Unusable> {
    let path = folder.join(CHECK);
    let text = fs::read(&path).map_err(Unusable::Check)?;
    let check: Check = serde_json::from_slice(&text).map_err(Unusable::Form)?;
    let state = File::open(folder.join(FILE))?;
    let has = state.metadata()?.len();
    if has != check.bytes {
        return Err(Unusable::Size { has, wanted: check.bytes });
    }
    let now = Seen::now(&state)?;
    if hashing == Hashing::Always || now.boot.is_empty() || check.seen.as_ref() != Some(&now) {
        if hash::of_file(&folder.join(FILE))? != check.sha256 {
            return Err(Unusable::Content);
        }
        let check = Check { seen: Some(now), ..check };
        // Not to be written is no damage: it is hashed again the next time.
        let _unwritten = new_file::write(&path, Existing::Replace, &json(&check));
    }
    // When it was last used, for the one who looks for what was not.
    let _unknown = File::open(&path).and_then(|f| f.set_modified(SystemTime::now()));
    Ok(state)
}

/// A snapshot that is being written.
#[derive(Debug)]
pub(crate) struct Making {
    _beside: Beside,
    whole: PathBuf,
    file: File,
    to: PathBuf,
}

impl Making {
    /// Gives it its place. Where another process was faster, its snapshot stays.
    pub(crate) fn finish(self, received: &Received) -> Result<(), LabError> {
        let path = self.whole.join(CHECK);
        let failed = |e: io::Error| LabError::file(&path, e);
        let seen = Seen::now(&self.file).map_err(failed)?;
        let check =
            Check { bytes: received.bytes, sha256: received.sha256.clone(), seen: Some(seen) };
        new_file::write(&path, Existing::Keep, &json(&check)).map_err(failed)?;
        match fs::rename(&self.whole, &self.to) {
            Err(_) if self.to.is_dir() => Ok(()),
            done => done.map_err(|e| LabError::file(&self.to, e)),
        }
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }
}

/// What came through a socket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) bytes: u64,
    pub(crate) sha256: String,
}

/// Takes what QEMU sends, up to `most` bytes, into `to`; until `over` says that no more will come.
pub(crate) fn receive(
    from: &UnixListener,
    mut to: Option<&File>,
    most: u64,
    over: &AtomicBool,
) -> io::Result<Received> {
    let mut stream = accept(from, over)?;
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(LOOK))?;
    let mut sum = Sha256::new();
    let mut received = Received::default();
    let mut part = vec![0u8; 1 << 20];
    loop {
        let got = match stream.read(&mut part) {
            Ok(0) => break,
            Ok(got) => part.get(..got).unwrap_or_default(),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                if over.load(Ordering::Relaxed) {
                    break;
                }
                continue;
            }
            Err(e) => return Err(e),
        };
        received.bytes += got.len() as u64;
        if received.bytes > most {
            return Err(io::Error::other(format!("more than {most} bytes of state")));
        }
        if let Some(file) = &mut to {
            sum.update(got);
            file.write_all(got)?;
        }
    }
    received.sha256 = hash::hex(&sum.finalize());
    Ok(received)
}

fn accept(from: &UnixListener, over: &AtomicBool) -> io::Result<UnixStream> {
    from.set_nonblocking(true)?;
    loop {
        match from.accept() {
            Ok((stream, _)) => return Ok(stream),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                if over.load(Ordering::Relaxed) {
                    return Err(io::Error::other("QEMU sent no state"));
                }
                std::thread::park_timeout(Duration::from_millis(2));
            }
            Err(e) => return Err(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(store: &Store, key: &str, bytes: &[u8]) -> Place {
        let place = Place::of(store, key).unwrap();
        let making = place.begin(store).unwrap();
        making.file().write_all(bytes).unwrap();
        let received = Received { bytes: bytes.len() as u64, sha256: hash::of_bytes(bytes) };
        making.finish(&received).unwrap();
        place
    }

    fn opened(place: &Place) -> (bool, Vec<String>) {
        let mut notes = Vec::new();
        let file = place.open(&mut |note| notes.push(note));
        (file.is_some(), notes)
    }

    #[test]
    fn what_is_not_what_it_was_is_removed_and_that_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        type Damage = fn(&Path);
        let damages: [(&str, Damage); 5] = [
            ("bytes instead of", |f| fs::write(f.join(FILE), b"sta").unwrap()),
            ("SHA-256", |f| fs::write(f.join(FILE), b"stale").unwrap()),
            ("No such file", |f| fs::remove_file(f.join(FILE)).unwrap()),
            (CHECK, |f| fs::remove_file(f.join(CHECK)).unwrap()),
            (CHECK, |f| fs::write(f.join(CHECK), b"{").unwrap()),
        ];
        for (says, damage) in damages {
            let place = made(&store, "key", b"state");
            assert_eq!(opened(&place), (true, Vec::new()));
            damage(&place.folder);
            let (there, notes) = opened(&place);
            assert!(!there && notes.len() == 1 && notes[0].contains(says), "{says}: {notes:?}");
            assert!(!place.folder.exists());
        }
        // After another boot of the host it is hashed again, and then believed again.
        let place = made(&store, "key", b"state");
        let check = fs::read_to_string(place.folder.join(CHECK)).unwrap();
        let other = check.replace(&boot(), "another boot");
        fs::write(place.folder.join(CHECK), &other).unwrap();
        assert!(opened(&place).0);
        assert_eq!(fs::read_to_string(place.folder.join(CHECK)).unwrap(), check);
        fs::write(place.folder.join(CHECK), other.replace("sha256\": \"", "sha256\": \"0"))
            .unwrap();
        assert!(!opened(&place).0);
        let left = fs::read_dir(folder.path().join(ROOM)).unwrap().count();
        assert_eq!(left, 0, "something half made");
    }

    #[test]
    fn of_two_who_make_one_the_first_stays() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        let place = made(&store, "key", b"first");
        made(&store, "key", b"second");
        let mut text = String::new();
        place.open(&mut |_| {}).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "first");
    }

    #[test]
    fn state_is_taken_up_to_a_limit() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("socket");
        let take = |most, bytes: &[u8]| {
            let _old = fs::remove_file(&at);
            let listener = UnixListener::bind(&at).unwrap();
            UnixStream::connect(&at).unwrap().write_all(bytes).unwrap();
            let into = File::create(folder.path().join("into")).unwrap();
            receive(&listener, Some(&into), most, &AtomicBool::new(false))
        };
        let received = take(5, b"state").unwrap();
        assert_eq!((received.bytes, received.sha256), (5, hash::of_bytes(b"state")));
        assert_eq!(fs::read(folder.path().join("into")).unwrap(), b"state");
        assert!(take(4, b"state").is_err());
        let _old = fs::remove_file(&at);
        let nobody = UnixListener::bind(&at).unwrap();
        assert!(receive(&nobody, None, 5, &AtomicBool::new(true)).is_err());
    }
}
