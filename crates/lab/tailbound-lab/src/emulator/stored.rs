// SPDX-License-Identifier: MIT OR Apache-2.0
//! QEMU programs in the store, each with its libraries and what says where they came from.
//!
//! `qemu/<version>-<arch>/` holds `root` (what was kept of the packages) and `manifest.json`. The
//! program's hash is looked at before each use, those of all files by [`damaged`].

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tailbound_core::order;

use serde::{Deserialize, Serialize};
use tailbound_core::limits;
use tailbound_sys::given;

use super::{Beside, Emulator};
use crate::arch::Arch;
use crate::error::{LabError, QemuError};
use crate::hash;
use crate::store::Store;

/// Where they are.
pub(crate) const ROOM: &str = "qemu";
pub(crate) const MANIFEST: &str = "manifest.json";
pub(crate) const ROOT: &str = "root";

/// A QEMU that was fetched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    /// Its version: `10.0.13`.
    pub version: String,
    /// Of which guests.
    pub arch: String,
    /// The first line of what it says with `--version`.
    pub says: String,
    /// The suite of Debian it came from.
    pub suite: String,
    /// Its package and that package's version.
    pub package: String,
    /// Every package that was unpacked for it: name and SHA-256.
    pub packages: BTreeMap<String, String>,
    /// The program, from the folder's `root`.
    pub program: String,
    /// The loader of its libraries, from there.
    pub loader: String,
    /// Folders with libraries, from there.
    pub libraries: Vec<String>,
    /// Folders with firmware, from there.
    pub data: Vec<String>,
    /// Every file, from there, and its SHA-256.
    pub files: BTreeMap<String, String>,
    /// The folder.
    #[serde(skip)]
    pub folder: PathBuf,
}

impl Stored {
    /// What its folder is called.
    pub(crate) fn name(&self) -> String {
        format!("{}-{}", self.version, self.arch)
    }

    /// Ready to be started.
    ///
    /// # Errors
    /// It is not what was unpacked, or does not start.
    pub fn emulator(&self) -> Result<Emulator, LabError> {
        for file in [&self.program, &self.loader] {
            self.same(file)?;
        }
        let beside = Beside {
            root: self.folder.join(ROOT),
            program: self.program.clone(),
            loader: self.loader.clone(),
            libraries: self.libraries.clone(),
            data: self.data.clone(),
        };
        let emulator = Emulator::in_folder(beside)?;
        // When it was last used, for the one who looks for what was not.
        let mark = File::open(self.folder.join(MANIFEST));
        let _unknown = mark.and_then(|f| f.set_modified(SystemTime::now()));
        Ok(emulator)
    }

    fn same(&self, file: &str) -> Result<(), LabError> {
        let path = self.folder.join(ROOT).join(file);
        if Some(&hash::of_file(&path)?) == self.files.get(file) {
            return Ok(());
        }
        Err(QemuError::Altered { path, version: self.version.clone() }.into())
    }
}

/// All of them, the newest version first.
///
/// # Errors
/// The store cannot be read.
pub fn stored(store: &Store) -> Result<Vec<Stored>, LabError> {
    let room = store.room(ROOM)?;
    let entries = fs::read_dir(&room).map_err(|e| LabError::file(&room, e))?;
    let mut found: Vec<Stored> = entries.flatten().filter_map(|e| read(&e.path())).collect();
    order::by(&mut found, |a, b| {
        numbers(&b.version).cmp(&numbers(&a.version)).then_with(|| a.arch.cmp(&b.arch))
    });
    Ok(found)
}

/// The one in `folder`; none where its manifest is damaged, and then it is fetched anew.
pub(crate) fn read(folder: &Path) -> Option<Stored> {
    let bytes = given::read(&folder.join(MANIFEST), limits::TEXT_BYTES_MAX).ok()?;
    let found: Stored = serde_json::from_slice(&bytes).ok()?;
    let plain = |path: &String| {
        let path = Path::new(path);
        path.is_relative() && !path.components().any(|c| c == std::path::Component::ParentDir)
    };
    let paths = [&found.program, &found.loader].into_iter();
    let all_plain = paths.chain(&found.libraries).chain(&found.data).all(plain);
    let named = folder.file_name().is_some_and(|n| n == found.name().as_str());
    (all_plain && named).then(|| Stored { folder: folder.to_owned(), ..found })
}

/// A version as numbers, to be sorted.
pub(crate) fn numbers(version: &str) -> Vec<u32> {
    version.split('.').map(|n| n.parse().unwrap_or(0)).collect()
}

/// Removes those of `version`, which may be a beginning of one (`10` or `10.0`), of all architectures or of `arch`;
/// what was removed.
///
/// # Errors
/// There is none, or it cannot be removed.
pub fn remove(
    store: &Store,
    version: &str,
    arch: Option<Arch>,
    note: &mut dyn FnMut(&str),
) -> Result<Vec<Stored>, LabError> {
    let _lock = store.lock(ROOM, note)?;
    let all = stored(store)?;
    let wanted =
        |s: &&Stored| is_of(&s.version, version) && arch.is_none_or(|a| a.name() == s.arch);
    let found: Vec<Stored> = all.iter().filter(wanted).cloned().collect();
    if found.is_empty() {
        let (version, fetched) = (version.to_owned(), listed(&all));
        return Err(QemuError::NotFetched { version, fetched }.into());
    }
    for one in &found {
        fs::remove_dir_all(&one.folder).map_err(|e| LabError::file(&one.folder, e))?;
    }
    Ok(found)
}

/// Is `version` the one asked for, or one that begins with it?
pub(crate) fn is_of(version: &str, asked: &str) -> bool {
    version.strip_prefix(asked).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// `fetched are 10.0.13 (x86_64)`
pub(crate) fn listed(all: &[Stored]) -> String {
    if all.is_empty() {
        return "none was fetched: `tailbound lab qemu fetch`".to_owned();
    }
    let names: Vec<String> = all.iter().map(|s| format!("{} ({})", s.version, s.arch)).collect();
    format!("fetched are {}", names.join(", "))
}

/// What is not what was unpacked in `folder`, a sentence.
pub fn damaged(folder: &Path) -> Option<String> {
    let Some(stored) = read(folder) else {
        return Some(format!("{} cannot be read", folder.join(MANIFEST).display()));
    };
    stored.files.keys().find_map(|file| stored.same(file).err().map(|e| e.to_string()))
}

#[cfg(test)]
pub(super) use tests::put as tests_put;

#[cfg(test)]
mod tests {
    use super::*;

    /// A QEMU of this version in the store: a script in the place of its loader.
    pub(crate) fn put(store: &Store, version: &str) -> PathBuf {
        let folder = store.room(ROOM).unwrap().join(format!("{version}-x86_64"));
        let root = folder.join(ROOT);
        fs::create_dir_all(&root).unwrap();
        let script = format!("#!/bin/sh\necho QEMU emulator version {version}\n");
        tailbound_testing::write_script(&root.join("ld.so"), &script);
        fs::write(root.join("qemu"), "").unwrap();
        let sha = |text: &str| hash::of_bytes(text.as_bytes());
        let stored = Stored {
            version: version.to_owned(),
            arch: "x86_64".to_owned(),
            says: format!("QEMU emulator version {version}"),
            suite: "trixie".to_owned(),
            package: "qemu-system-x86".to_owned(),
            packages: BTreeMap::new(),
            program: "qemu".to_owned(),
            loader: "ld.so".to_owned(),
            libraries: Vec::new(),
            data: Vec::new(),
            files: [("ld.so".to_owned(), sha(&script)), ("qemu".to_owned(), sha(""))].into(),
            folder: PathBuf::new(),
        };
        fs::write(folder.join(MANIFEST), serde_json::to_vec(&stored).unwrap()).unwrap();
        folder
    }

    #[test]
    fn the_newest_comes_first_and_what_was_altered_is_not_started() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        let (_, new) = (put(&store, "9.2.1"), put(&store, "10.0.13"));
        let all = stored(&store).unwrap();
        let versions: Vec<&str> = all.iter().map(|s| s.version.as_str()).collect();
        assert_eq!(versions, ["10.0.13", "9.2.1"]);
        assert!(all[0].emulator().unwrap().shares_time());
        assert_eq!(damaged(&new), None);
        fs::write(new.join(ROOT).join("qemu"), "other").unwrap();
        let e = all[0].emulator().unwrap_err().to_string();
        assert!(e.contains("lab qemu remove 10.0.13"), "{e}");
        assert!(damaged(&new).is_some());
        assert!(remove(&store, "1", None, &mut |_| {}).is_err());
        assert_eq!(remove(&store, "10", None, &mut |_| {}).unwrap().len(), 1);
        assert!(!new.exists());
    }

    #[test]
    fn a_manifest_that_leads_out_of_its_folder_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        let path = put(&store, "10.0.13").join(MANIFEST);
        let text = fs::read_to_string(&path).unwrap();
        for outside in ["\"/bin/sh\"", "\"../../x\""] {
            fs::write(&path, text.replace("\"ld.so\",", &format!("{outside},"))).unwrap();
            assert!(stored(&store).unwrap().is_empty(), "{outside}");
        }
    }
}
