// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an agent has taken and not handed in yet, on disk: it survives this process, the server and the power.
//!
//! One folder for each piece of work. Its files say how far it is; each is there whole or not at all.
//!
//! ```text
//! SPOOL/lock                 one agent a spool
//! SPOOL/ID/order.json        what was asked for, and under which lease
//! SPOOL/ID/campaign.toml     its campaign
//! SPOOL/ID/begun             the run was started: it is never started again
//! SPOOL/ID/out/SYSTEM/…      what `campaign run` wrote
//! SPOOL/ID/end.json          how it ended
//! SPOOL/ID/sent.json         which run files the server has
//! SPOOL/kept/ID/…            what the server did not take for good, for a person to look at
//! ```

use std::collections::BTreeMap;
use std::fs::{self, TryLockError};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use tailbound_core::order;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tailbound_core::limits::TEXT_BYTES_MAX;
use tailbound_sys::file_lock::FileLock;
use tailbound_sys::new_file::{self, Existing};
use tailbound_sys::{given, owner};

use crate::wire::Order;

const ORDER: &str = "order.json";
const CAMPAIGN: &str = "campaign.toml";
const BEGUN: &str = "begun";
const OUT: &str = "out";
const END: &str = "end.json";
const SENT: &str = "sent.json";
const KEPT: &str = "kept";
/// Of a folder that is being removed.
const GONE: &str = "gone";
const RUN_FILE: &str = ".tailbound.jsonl";

/// A file of the spool that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {source}")]
pub struct SpoolError {
    path: PathBuf,
    source: io::Error,
}

fn at<E: Into<io::Error>>(path: &Path) -> impl FnOnce(E) -> SpoolError {
    |source| SpoolError { path: path.to_owned(), source: source.into() }
}

/// Why something of a spool is not used.
pub(crate) fn unbelieved(foreign: &owner::Foreign) -> String {
    format!(
        "{foreign}, and what is in a spool is believed: give it to the agent's user alone (chown, chmod 700), or name another"
    )
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Over {
    pub(crate) complete: bool,
    pub(crate) reason: Option<String>,
}

/// What was asked for, and under which lease.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct OrderLease {
    pub(crate) order: Order,
    pub(crate) lease: String,
}

/// The folder of all.
#[derive(Debug)]
pub(crate) struct Spool {
    root: PathBuf,
    _lock: FileLock,
}

/// One piece of work in it.
#[derive(Debug)]
pub(crate) struct Piece {
    folder: PathBuf,
    pub(crate) taken: OrderLease,
}

impl Spool {
    /// Takes the folder, and makes it where it is not there.
    pub(crate) fn open(root: &Path) -> Result<Self, SpoolError> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(root).map_err(at(root))?;
        let root = root.canonicalize().map_err(at(root))?;
        // What is in it is run, and handed in under this machine's name.
        owner::believed(&root)
            .map_err(|foreign| at(&root)(io::Error::other(unbelieved(&foreign))))?;
        let path = root.join("lock");
        let lock = new_file::open_lock(&path).map_err(at(&path))?;
        match FileLock::try_exclusive(lock) {
            Ok(lock) => Ok(Self { root, _lock: lock }),
            Err(TryLockError::WouldBlock) => {
                let source = io::Error::other("another agent has this spool");
                Err(SpoolError { path, source })
            }
            Err(TryLockError::Error(source)) => Err(SpoolError { path, source }),
        }
    }

    /// All pieces, those that were begun before others. What cannot be read is put aside, and told.
    pub(crate) fn pieces(&self) -> Result<Vec<Result<Piece, SpoolError>>, SpoolError> {
        let mut folders = Vec::new();
        for entry in fs::read_dir(&self.root).map_err(at(&self.root))? {
            let path = entry.map_err(at(&self.root))?.path();
            if path.extension().is_some_and(|e| e == GONE) {
                fs::remove_dir_all(&path).map_err(at(&path))?;
            } else if path.is_dir() && path.file_name().is_none_or(|n| n != KEPT) {
                folders.push(path);
            }
        }
        order::by_key(&mut folders, |f| (!f.join(BEGUN).exists(), f.clone()));
        let strangers = owner::of_others(&self.root).map_err(at(&self.root))?;
        let own = |folder: &Path| match strangers.iter().find(|f| f.path == *folder) {
            Some(foreign) => Err(at(folder)(io::Error::other(unbelieved(foreign)))),
            None => match owner::of_others(folder).map_err(at(folder))?.first() {
                Some(foreign) => Err(at(folder)(io::Error::other(unbelieved(foreign)))),
                None => Ok(()),
            },
        };
        let piece = |folder: PathBuf| match own(&folder).and_then(|()| read(&folder.join(ORDER))) {
            Ok(taken) => Ok(Piece { folder, taken }),
            Err(e) => Err(aside(&folder).err().unwrap_or(e)),
        };
        // A folder without its first file was being made when the power went: nothing of it was told to anybody.
        let whole = folders.into_iter().filter(|f| f.join(ORDER).exists());
        Ok(whole.map(piece).collect())
    }

    /// Keeps what is to be taken. `id` is hexadecimal digits, as the caller has checked.
    pub(crate) fn add(&self, taken: OrderLease) -> Result<Piece, SpoolError> {
        let folder = self.root.join(&taken.order.id);
        fs::create_dir_all(&folder).map_err(at(&folder))?;
        let campaign = folder.join(CAMPAIGN);
        new_file::write(&campaign, Existing::Replace, taken.order.campaign.as_bytes())
            .map_err(at(&campaign))?;
        write(&folder.join(ORDER), &taken)?;
        Ok(Piece { folder, taken })
    }
}

impl Piece {
    pub(crate) fn id(&self) -> &str {
        &self.taken.order.id
    }

    pub(crate) fn campaign(&self) -> PathBuf {
        self.folder.join(CAMPAIGN)
    }

    pub(crate) fn out(&self) -> PathBuf {
        self.folder.join(OUT)
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.folder.join(BEGUN).exists()
    }

    pub(crate) fn begin(&self) -> Result<(), SpoolError> {
        let path = self.folder.join(BEGUN);
        new_file::write(&path, Existing::Replace, b"").map_err(at(&path))
    }

    pub(crate) fn over(&self) -> Result<Option<Over>, SpoolError> {
        let path = self.folder.join(END);
        if path.exists() { read(&path).map(Some) } else { Ok(None) }
    }

    pub(crate) fn end(&self, over: &Over) -> Result<(), SpoolError> {
        write(&self.folder.join(END), over)
    }

    /// Run files that came of it, by part.
    pub(crate) fn files(&self) -> BTreeMap<String, PathBuf> {
        let mut all = BTreeMap::new();
        for system in folders(&self.out()) {
            for entry in fs::read_dir(&system).into_iter().flatten().flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                if let Some(part) = name.strip_suffix(RUN_FILE) {
                    all.insert(part.to_owned(), entry.path());
                }
            }
        }
        all
    }

    /// Why a part could not be made, as `campaign run` noted it.
    pub(crate) fn failed(&self, part: &str) -> Option<String> {
        let notes = folders(&self.out()).into_iter().map(|s| s.join(format!("{part}.failed")));
        notes.into_iter().find_map(|n| given::text(&n, TEXT_BYTES_MAX).ok())
    }

    /// Which parts the server has, by the identity it gave.
    pub(crate) fn sent(&self) -> Result<BTreeMap<String, String>, SpoolError> {
        let path = self.folder.join(SENT);
        if path.exists() { read(&path) } else { Ok(BTreeMap::new()) }
    }

    pub(crate) fn keep_sent(&self, sent: &BTreeMap<String, String>) -> Result<(), SpoolError> {
        write(&self.folder.join(SENT), sent)
    }

    /// All of it is handed in.
    pub(crate) fn remove(self) -> Result<(), SpoolError> {
        // In one step: half of it must not be handed in once more.
        let gone = self.folder.with_extension(GONE);
        new_file::rename(&self.folder, &gone).map_err(at(&self.folder))?;
        fs::remove_dir_all(&gone).map_err(at(&gone))
    }

    /// The server does not take some of it, now or later: kept for a person. Where it is.
    pub(crate) fn put_aside(self) -> Result<PathBuf, SpoolError> {
        aside(&self.folder)
    }
}

fn aside(folder: &Path) -> Result<PathBuf, SpoolError> {
    let kept = folder.with_file_name(KEPT);
    fs::create_dir_all(&kept).map_err(at(&kept))?;
    let to = kept.join(folder.file_name().unwrap_or_default());
    new_file::rename(folder, &to).map_err(at(&to))?;
    Ok(to)
}

fn folders(of: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(of).into_iter().flatten().flatten();
    entries.map(|e| e.path()).filter(|p| p.is_dir() && !p.is_symlink()).collect()
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T, SpoolError> {
    let text = given::text(path, TEXT_BYTES_MAX).map_err(at(path))?;
    serde_json::from_str(&text).map_err(at(path))
}

fn write(path: &Path, what: &impl Serialize) -> Result<(), SpoolError> {
    let text = serde_json::to_vec(what).map_err(at(path))?;
    new_file::write(path, Existing::Replace, &text).map_err(at(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_spool_that_others_may_change_is_not_taken() {
        let top = tempfile::tempdir().unwrap();
        let root = top.path().join("a/spool");
        drop(Spool::open(&root).unwrap());
        for made in [&root, &top.path().join("a")] {
            assert_eq!(fs::metadata(made).unwrap().permissions().mode() & 0o777, 0o700);
        }
        mode(&root, 0o777);
        let why = Spool::open(&root).unwrap_err().to_string();
        assert!(why.contains("may be written by everybody") && why.contains("chmod 700"), "{why}");
        mode(&root, 0o755);
        drop(Spool::open(&root).unwrap());
    }

    #[test]
    fn work_that_somebody_else_left_is_put_aside_and_not_done() {
        let top = tempfile::tempdir().unwrap();
        let spool = Spool::open(top.path()).unwrap();
        for (name, of_folder, of_file) in [("aa", 0o777, 0o600), ("bb", 0o700, 0o666)] {
            let folder = top.path().join(name);
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join(ORDER), "{}").unwrap();
            mode(&folder.join(ORDER), of_file);
            mode(&folder, of_folder);
        }
        let told: Vec<String> =
            spool.pieces().unwrap().into_iter().map(|p| p.unwrap_err().to_string()).collect();
        assert_eq!(told.len(), 2);
        assert!(told.iter().all(|t| t.contains("may be written by everybody")), "{told:?}");
        assert!(top.path().join("kept/aa").exists() && top.path().join("kept/bb").exists());
    }
}
