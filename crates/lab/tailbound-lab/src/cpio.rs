// SPDX-License-Identifier: MIT OR Apache-2.0
//! An initramfs as the kernel unpacks it, the same bytes for the same content.
//!
//! Every time is 0, every owner root, inode numbers count up, names are in
//! the order of their bytes: nothing of the machine that made it gets in.
//! Source: Documentation/driver-api/early-userspace/buffer-format.rst ("newc").

use std::collections::BTreeMap;

use crate::error::{GuestError, LabError};

const DIRECTORY: u32 = 0o040_755;
const EXECUTABLE: u32 = 0o100_755;
const SYMLINK: u32 = 0o120_777;
const CHARACTER_DEVICE: u32 = 0o020_600;

#[derive(Debug)]
enum Entry {
    Folder,
    File(Vec<u8>),
    Link(String),
    /// Major and minor.
    Device(u32, u32),
}

/// The tree of a guest.
#[derive(Debug, Default)]
pub struct Tree {
    entries: BTreeMap<String, Entry>,
}

impl Tree {
    /// Adds a file that may be executed; its folders come by themselves.
    pub fn file(&mut self, path: &str, content: Vec<u8>) {
        self.put(path, Entry::File(content));
    }
    /// Adds a symbolic link.
    pub fn link(&mut self, path: &str, to: &str) {
        self.put(path, Entry::Link(to.to_owned()));
    }
    /// Adds an empty folder.
    pub fn folder(&mut self, path: &str) {
        self.put(path, Entry::Folder);
    }
    /// Adds a character device, which the kernel opens before anything is mounted.
    pub fn character_device(&mut self, path: &str, major: u32, minor: u32) {
        self.put(path, Entry::Device(major, minor));
    }

    fn put(&mut self, path: &str, entry: Entry) {
        let path = path.trim_matches('/');
        for (at, _) in path.match_indices('/') {
            let parent = path.get(..at).unwrap_or_default().to_owned();
            self.entries.entry(parent).or_insert(Entry::Folder);
        }
        self.entries.insert(path.to_owned(), entry);
    }

    /// The archive.
    ///
    /// # Errors
    /// A file is larger than the format can say (4 GiB).
    pub fn archive(&self) -> Result<Vec<u8>, LabError> {
        let mut out = Vec::new();
        // Parents sort before their children, which the kernel needs: `a` < `a/b`.
        for (inode, (path, entry)) in (1u32..).zip(&self.entries) {
            let (mode, content, device): (u32, &[u8], (u32, u32)) = match entry {
                Entry::Folder => (DIRECTORY, &[], (0, 0)),
                Entry::File(bytes) => (EXECUTABLE, bytes, (0, 0)),
                Entry::Link(to) => (SYMLINK, to.as_bytes(), (0, 0)),
                Entry::Device(major, minor) => (CHARACTER_DEVICE, &[], (*major, *minor)),
            };
            let size = u32::try_from(content.len())
                .map_err(|_| GuestError::TooLarge { path: path.clone() })?;
            record(&mut out, inode, path, mode, (size, content), device);
        }
        record(&mut out, 0, "TRAILER!!!", 0, (0, &[]), (0, 0));
        Ok(out)
    }
}

fn record(
    out: &mut Vec<u8>,
    inode: u32,
    path: &str,
    mode: u32,
    (size, content): (u32, &[u8]),
    (major, minor): (u32, u32),
) {
    let name_size = u32::try_from(path.len() + 1).unwrap_or(u32::MAX);
    let links = if mode == DIRECTORY { 2 } else { 1 };
    // inode mode uid gid nlink mtime filesize devmajor devminor rdevmajor rdevminor namesize check
    let numbers = [inode, mode, 0, 0, links, 0, size, 0, 0, major, minor, name_size, 0];
    out.extend_from_slice(b"070701");
    for number in numbers {
        out.extend_from_slice(format!("{number:08X}").as_bytes());
    }
    out.extend_from_slice(path.as_bytes());
    out.push(0);
    pad(out);
    out.extend_from_slice(content);
    pad(out);
}

fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_adding_does_not_matter_and_parents_come_first() {
        let mut a = Tree::default();
        a.file("/lib/modules/x.ko", b"abcde".to_vec());
        a.link("init", "tailbound");
        a.character_device("dev/console", 5, 1);
        let mut b = Tree::default();
        b.character_device("/dev/console", 5, 1);
        b.link("/init", "tailbound");
        b.folder("lib");
        b.file("lib/modules/x.ko", b"abcde".to_vec());
        let (a, b) = (a.archive().unwrap(), b.archive().unwrap());
        assert_eq!(a, b);
        let text = String::from_utf8_lossy(&a).into_owned();
        let at = |name: &str| text.find(name).unwrap();
        assert!(at("lib\0") < at("lib/modules\0") && at("lib/modules\0") < at("lib/modules/x.ko"));
        assert!(text.contains("TRAILER!!!") && a.len() % 4 == 0);
    }
}
