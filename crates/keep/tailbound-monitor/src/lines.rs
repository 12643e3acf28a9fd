// SPDX-License-Identifier: MIT OR Apache-2.0
//! The file of JSON Lines, which others rotate and whose disk may be full.
//!
//! It is only ever appended to. Another file, or none, under its name means that it was rotated: a new one is
//! opened, and begins with the line that every file begins with. What could not be written is counted; half a line that a full
//! disk took is ended before the next, so that every later line can be read.
//! Not here: what is in the lines (`window`, `monitor`).

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use tailbound_sys::new_file;

/// See the module.
#[derive(Debug)]
pub(crate) struct Lines {
    path: PathBuf,
    file: Option<File>,
    first: String,
    torn: bool,
}

impl Lines {
    /// Opens it; `first` is the line that every file begins with.
    ///
    /// # Errors
    /// It cannot be written, or is no regular file.
    pub(crate) fn open(path: &Path, first: String) -> io::Result<Self> {
        let mut lines = Self { path: path.to_owned(), file: None, first, torn: false };
        lines.reopen()?;
        Ok(lines)
    }

    /// Opens what has its name now.
    ///
    /// # Errors
    /// As of [`Lines::open`]; the next line tries again.
    pub(crate) fn reopen(&mut self) -> io::Result<()> {
        self.file = None;
        let file = new_file::append_log(&self.path)?;
        // Who was here before may have been cut off in a line.
        self.torn = file.metadata()?.len() > 0;
        self.file = Some(file);
        let first = self.first.clone();
        // Without its first line it is none of ours yet: the next line tries again.
        self.append(&first).inspect_err(|_| self.file = None)
    }

    fn is_rotated(&self) -> bool {
        let Some(Ok(open)) = self.file.as_ref().map(File::metadata) else { return true };
        let there = std::fs::symlink_metadata(&self.path);
        there.map_or(true, |there| (there.dev(), there.ino()) != (open.dev(), open.ino()))
    }

    /// Writes one line.
    ///
    /// # Errors
    /// It was not written, or not whole.
    pub(crate) fn write(&mut self, line: &str) -> io::Result<()> {
        if self.is_rotated() {
            self.reopen()?;
        }
        self.append(line)
    }

    fn append(&mut self, line: &str) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Err(io::Error::other("it is not open")) };
        let before = if self.torn { "\n" } else { "" };
        let bytes = format!("{before}{line}\n");
        let length = file.metadata().map(|m| m.len());
        let done = file.write_all(bytes.as_bytes());
        if done.is_err() {
            // Half a line is taken back where that can be done; where not, the next one begins behind it.
            let back = length.and_then(|length| file.set_len(length));
            self.torn |= back.is_err();
        } else {
            self.torn = false;
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(path: &Path) -> String {
        std::fs::read_to_string(path).unwrap()
    }

    #[test]
    fn a_rotated_file_is_followed_by_a_new_one_with_the_first_line() {
        let folder = tempfile::tempdir().unwrap();
        let (path, old) = (folder.path().join("m"), folder.path().join("m.1"));
        let mut lines = Lines::open(&path, "first".into()).unwrap();
        lines.write("a").unwrap();
        std::fs::rename(&path, &old).unwrap();
        lines.write("b").unwrap();
        std::fs::remove_file(&path).unwrap();
        lines.write("c").unwrap();
        assert_eq!((text(&old).as_str(), text(&path).as_str()), ("first\na\n", "first\nc\n"));
        // Emptied in its place, as copytruncate does.
        std::fs::write(&path, "").unwrap();
        lines.write("d").unwrap();
        assert_eq!(text(&path), "d\n");
    }

    #[test]
    fn a_link_that_somebody_put_in_its_place_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, victim) = (folder.path().join("m"), folder.path().join("victim"));
        std::fs::write(&victim, "precious\n").unwrap();
        let mut lines = Lines::open(&path, "first".into()).unwrap();
        std::fs::remove_file(&path).unwrap();
        for target in [victim.as_path(), &folder.path().join("not there yet")] {
            std::os::unix::fs::symlink(target, &path).unwrap();
            let e = lines.write("a").unwrap_err().to_string();
            assert!(e.contains("symbolic link"), "{e}");
            std::fs::remove_file(&path).unwrap();
        }
        lines.write("b").unwrap();
        assert_eq!((text(&victim).as_str(), text(&path).as_str()), ("precious\n", "first\nb\n"));
        assert!(!folder.path().join("not there yet").exists());
    }

    #[test]
    fn a_line_that_was_cut_off_is_ended_before_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m");
        std::fs::write(&path, "first\n{\"half").unwrap();
        let mut lines = Lines::open(&path, "first".into()).unwrap();
        lines.write("a").unwrap();
        assert_eq!(text(&path), "first\n{\"half\nfirst\na\n");
    }

    #[test]
    fn a_folder_that_is_gone_is_an_error_until_it_is_back() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("log");
        std::fs::create_dir(&inner).unwrap();
        let path = inner.join("m");
        let mut lines = Lines::open(&path, "first".into()).unwrap();
        std::fs::remove_dir_all(&inner).unwrap();
        assert!(lines.write("lost").is_err() && lines.write("lost").is_err());
        std::fs::create_dir(&inner).unwrap();
        lines.write("a").unwrap();
        assert_eq!(text(&path), "first\na\n");
        assert!(Lines::open(&inner, String::new()).is_err());
    }

    #[test]
    fn a_full_disk_takes_no_half_line() {
        // Its writes fail with ENOSPC.
        let Ok(file) = std::fs::OpenOptions::new().append(true).open("/dev/full") else { return };
        let mut lines =
            Lines { path: "/dev/full".into(), file: Some(file), first: String::new(), torn: false };
        let e = lines.append("a").unwrap_err();
        assert_eq!(e.kind(), io::ErrorKind::StorageFull);
    }
}
