// SPDX-License-Identifier: MIT OR Apache-2.0
//! A machine's files in memory: what a capture holds, read without a disk.
//!
//! Units: bytes. Names are parts joined by `/`; one at the beginning is passed over. A folder is there by
//! its own entry or by what lies below it. There are no links.
//! Not here: reading an archive (the command line's).

use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// Permissions of a folder, which no check asks for.
const FOLDER_MODE: u32 = 0o755;

/// Why something cannot be added to a tree.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    /// One name twice.
    #[error("it holds {0} twice")]
    Twice(String),
    /// A file that has others below it.
    #[error("it holds {0}, which lies below something that is no folder")]
    BelowFile(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Content {
    bytes: Vec<u8>,
    mode: u32,
}

/// Files and folders by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    files: BTreeMap<String, Content>,
    /// The names in each folder; the root's own name is empty.
    folders: BTreeMap<String, BTreeSet<String>>,
}

impl Tree {
    /// Adds a folder, and those above it.
    ///
    /// # Errors
    /// A file has that name, or lies above.
    pub fn add_folder(&mut self, name: &str) -> Result<(), TreeError> {
        let (mut child, mut above) = (None, name);
        loop {
            if self.files.contains_key(above) {
                return Err(TreeError::BelowFile(name.to_owned()));
            }
            let known = self.folders.contains_key(above);
            let names = self.folders.entry(above.to_owned()).or_default();
            names.extend(child);
            if known || above.is_empty() {
                return Ok(());
            }
            let (folder, last) = above.rsplit_once('/').unwrap_or(("", above));
            (child, above) = (Some(last.to_owned()), folder);
        }
    }

    /// Adds a file with its permissions (nine bits), and the folders above it.
    ///
    /// # Errors
    /// Something has that name; a file lies above.
    pub fn add_file(&mut self, name: &str, mode: u32, bytes: Vec<u8>) -> Result<(), TreeError> {
        if self.files.contains_key(name) || self.folders.contains_key(name) {
            return Err(TreeError::Twice(name.to_owned()));
        }
        let (folder, last) = name.rsplit_once('/').unwrap_or(("", name));
        self.add_folder(folder).map_err(|_| TreeError::BelowFile(name.to_owned()))?;
        self.folders.entry(folder.to_owned()).or_default().insert(last.to_owned());
        self.files.insert(name.to_owned(), Content { bytes, mode });
        Ok(())
    }

    /// The content of a file.
    ///
    /// # Errors
    /// As of a disk: not found, below a file, a folder.
    pub(crate) fn bytes(&self, path: &str) -> io::Result<&[u8]> {
        let name = path.trim_matches('/');
        match self.files.get(name) {
            Some(content) => Ok(&content.bytes),
            None if self.folders.contains_key(name) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// The permissions of a file or folder; not found otherwise.
    pub(crate) fn mode(&self, path: &str) -> io::Result<u32> {
        match self.bytes(path) {
            Err(e) if e.kind() == io::ErrorKind::IsADirectory => Ok(FOLDER_MODE),
            Err(e) => Err(e),
            Ok(_) => Ok(self.files.get(path.trim_matches('/')).map_or(0, |c| c.mode)),
        }
    }

    /// The names in a folder.
    ///
    /// # Errors
    /// As of a disk: not found, a file.
    pub(crate) fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let name = path.trim_matches('/');
        match self.folders.get(name) {
            Some(names) => Ok(names.iter().cloned().collect()),
            None if self.files.contains_key(name) => Err(io::ErrorKind::NotADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_answers_as_a_disk_does() {
        let mut tree = Tree::default();
        tree.add_file("proc/stat", 0o444, b"cpu".to_vec()).expect("added");
        tree.add_folder("proc/1/task/1").expect("added");
        tree.add_folder("proc").expect("there already");
        assert_eq!(tree.bytes("/proc/stat").ok(), Some(&b"cpu"[..]));
        assert_eq!(tree.list("/proc/").ok(), Some(vec!["1".to_owned(), "stat".to_owned()]));
        assert_eq!(tree.list("/").ok(), Some(vec!["proc".to_owned()]));
        assert_eq!(tree.list("proc/1/task/1").ok(), Some(Vec::new()));
        assert_eq!(
            (tree.mode("/proc/stat").ok(), tree.mode("/proc").ok()),
            (Some(0o444), Some(0o755))
        );
        let kind = |e: io::Error| e.kind();
        assert_eq!(tree.bytes("/proc").map_err(kind), Err(io::ErrorKind::IsADirectory));
        assert_eq!(tree.list("/proc/stat").map_err(kind), Err(io::ErrorKind::NotADirectory));
        assert_eq!(tree.mode("/sys").map_err(kind), Err(io::ErrorKind::NotFound));
        for (name, below) in [("proc/stat", false), ("proc/1", false), ("proc/stat/x", true)] {
            let error = tree.add_file(name, 0, Vec::new()).expect_err(name);
            assert_eq!(matches!(error, TreeError::BelowFile(_)), below, "{error}");
        }
        assert!(tree.add_folder("proc/stat/x").is_err() && tree.add_folder("proc/stat").is_err());
    }
}
