// SPDX-License-Identifier: MIT OR Apache-2.0
//! A kernel's symbols, kept beside the snapshot of the guest that told them.
//!
//! `snapshots/<key>/symbols` holds the SHA-256 of what follows on a line of its own, then the text of
//! /proc/kallsyms. They are the guest's at that instant: another kernel, command line or set of modules is another key. They
//! come and go with their snapshot, and are counted with it.
//! Source: proc_kallsyms(5).

use std::fs;
use std::io;
use std::path::Path;

use tailbound_core::limits;
use tailbound_sys::given;
use tailbound_sys::new_file::{self, Existing};

use crate::hash;
use crate::snapshot::Place;

const FILE: &str = "symbols";

/// Those of the snapshot at `place`, if they are there and what they were.
pub(crate) fn read(place: &Place) -> Option<String> {
    let path = place.folder().join(FILE);
    let text = whole(&path).ok()?;
    if text.is_none() {
        // Told anew by the guest, and written anew.
        let _left = fs::remove_file(&path);
    }
    text
}

/// Keeps them there; nowhere if there is no snapshot.
pub(crate) fn keep(place: &Place, text: &str) {
    if place.folder().is_dir() {
        let bytes = format!("{}\n{text}", hash::of_bytes(text.as_bytes()));
        // Without them the guest tells them again.
        let _unwritten =
            new_file::write(&place.folder().join(FILE), Existing::Replace, bytes.as_bytes());
    }
}

/// What is wrong with those in the folder of a snapshot; nothing where there are none.
pub(crate) fn damage(folder: &Path) -> Option<String> {
    match whole(&folder.join(FILE)) {
        Ok(Some(_)) => None,
        Ok(None) => Some(format!("{FILE}: is not what was written (its SHA-256 is another)")),
        Err(e) if e.kind() == io::ErrorKind::NotFound => None,
        Err(e) => Some(format!("{FILE}: {e}")),
    }
}

/// The text, if it is the one that was written.
fn whole(path: &Path) -> io::Result<Option<String>> {
    let bytes = given::read(path, limits::OBJECT_BYTES_MAX)?;
    let Ok(whole) = String::from_utf8(bytes) else { return Ok(None) };
    let parts = whole.split_once('\n');
    let same = parts.filter(|(sha256, text)| hash::of_bytes(text.as_bytes()) == *sha256);
    Ok(same.map(|(_, text)| text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    #[test]
    fn they_are_kept_with_a_snapshot_and_read_only_as_they_were() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        let place = Place::of(&store, "key").unwrap();
        keep(&place, "ffffffff81000000 T _text\n");
        assert_eq!(read(&place), None, "no snapshot, no symbols");
        fs::create_dir_all(place.folder()).unwrap();
        assert_eq!(damage(place.folder()), None);
        keep(&place, "ffffffff81000000 T _text\n");
        assert_eq!(read(&place).as_deref(), Some("ffffffff81000000 T _text\n"));
        assert_eq!(damage(place.folder()), None);
        let path = place.folder().join(FILE);
        let other = fs::read_to_string(&path).unwrap().replace("8100", "8200");
        fs::write(&path, other).unwrap();
        assert!(damage(place.folder()).is_some_and(|why| why.contains("SHA-256")));
        assert_eq!(read(&place), None);
        assert!(!path.exists(), "what is damaged is told anew");
    }
}
