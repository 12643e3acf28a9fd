// SPDX-License-Identifier: MIT OR Apache-2.0
//! Room that is kept for a full disk: pruning needs some before it makes any, and so does the line of the audit log with which a
//! person logs in.
//!
//! A file beside the store, filled when the store is opened to be written to. In need it is emptied; then no run is added until it
//! could be filled again, so that runs never take this room. A disk on which it never fitted has none. Of PostgreSQL it is the
//! server's business.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use crate::place::StoreLocation;

/// What is behind the store's own name.
const NAME: &str = "-reserve";
/// Its length when it is there.
const BYTES: u64 = 4 << 20;
const PIECE: usize = 64 << 10;

/// See the module.
pub(crate) struct Reserve {
    path: Option<PathBuf>,
}

impl Reserve {
    /// That of a store.
    pub(crate) fn of(place: &StoreLocation) -> Self {
        let path = match place {
            StoreLocation::File(path) => {
                let mut name = path.as_os_str().to_owned();
                name.push(NAME);
                Some(PathBuf::from(name))
            }
            StoreLocation::Server(_) => None,
        };
        Self { path }
    }

    /// Makes it, where there is none and it fits.
    pub(crate) fn begin(&self) {
        let Some(path) = self.path.as_ref().filter(|path| !path.exists()) else { return };
        match filled(path, OpenOptions::new().create_new(true)) {
            Ok(()) => {}
            // Another process makes it.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            // A disk of this size has none; what was written goes, and nobody misses it.
            Err(_) => drop(std::fs::remove_file(path)),
        }
    }

    /// Gives its room back. Was there any?
    pub(crate) fn release(&self) -> bool {
        let Some(path) = self.path.as_ref().filter(|path| length(path).is_some_and(|n| n > 0))
        else {
            return false;
        };
        // A hard link of somebody's under this name costs them 4 MiB of it; a store's folder is for its owner.
        OpenOptions::new().write(true).open(path).and_then(|file| file.set_len(0)).is_ok()
    }

    /// Takes the room again, where it was given back. Is it there, or was there never any?
    pub(crate) fn restore(&self) -> bool {
        let Some(path) = self.path.as_ref().filter(|path| length(path).is_some_and(|n| n < BYTES))
        else {
            return true;
        };
        if filled(path, OpenOptions::new().truncate(true)).is_ok() {
            return true;
        }
        self.release();
        false
    }
}

/// The length of the file, where it is a plain one.
fn length(path: &PathBuf) -> Option<u64> {
    let found = std::fs::symlink_metadata(path).ok()?;
    found.is_file().then_some(found.len())
}

/// Fills it with bytes that no file system packs.
fn filled(path: &PathBuf, how: &mut OpenOptions) -> io::Result<()> {
    let mut file: File = how.write(true).mode(0o600).open(path)?;
    let mut piece = vec![0u8; PIECE];
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for _ in 0..BYTES / PIECE as u64 {
        for byte in &mut piece {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            *byte = state.to_le_bytes()[0];
        }
        file.write_all(&piece)?;
    }
    file.sync_all()
}
