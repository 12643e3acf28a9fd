// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine's lock, which fleets take as well, and a person, who goes first.
//!
//! Context: COLD. flock(2) on the same file as `tailbound fleet` uses by a shell (tailbound-fleet, lease.rs). What is run
//! under it inherits the descriptor, so that the machine stays locked until that has ended, whatever ends this process.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use tailbound_sys::given;
use tailbound_sys::new_file;

/// Where the lock lies; a machine without this folder has it in the other one.
const PLACES: [&str; 2] = ["/run/lock", "/tmp"];
const LOCK: &str = "tailbound.machine";
const RESERVED: &str = "tailbound.reserved";
const RESERVED_BY_OWNER: &str = "/etc/tailbound/reserved";
/// What a person writes into the file is shown.
const WORDS_BYTES_MAX: u64 = 4096;

/// The machine, held for as long as this lives.
#[derive(Debug)]
pub struct Held {
    file: File,
}

impl Held {
    /// What holds it, to be handed down.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }
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

fn folder() -> &'static Path {
    let [usual, other] = PLACES;
    if Path::new(usual).is_dir() { Path::new(usual) } else { Path::new(other) }
}

/// The person's file, if there is one, and its first line.
#[must_use]
pub fn reserved() -> Option<String> {
    let places = [PathBuf::from(RESERVED_BY_OWNER), folder().join(RESERVED)];
    places.iter().find(|p| p.exists()).map(|path| {
        let said = given::text(path, WORDS_BYTES_MAX).unwrap_or_default();
        format!("a person has it: {}: {}", path.display(), said.lines().next().unwrap_or_default())
    })
}

/// Takes the machine, if it is free.
///
/// # Errors
/// Who has it; or the lock cannot be opened.
pub fn take() -> Result<Held, NotFree> {
    let path = folder().join(LOCK);
    let cannot = |source| NotFree::File { path: path.clone(), source };
    // Only read where it is there: it may be another user's.
    let file = match given::open(&path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            new_file::open_lock(&path).map_err(cannot)?
        }
        opened => opened.map_err(cannot)?,
    };
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let who = format!("something of tailbound measures on it ({})", path.display());
            return Err(NotFree::Held(who));
        }
        Err(TryLockError::Error(e)) => return Err(cannot(e)),
    }
    match reserved() {
        Some(who) => Err(NotFree::Held(who)),
        None => Ok(Held { file }),
    }
}
