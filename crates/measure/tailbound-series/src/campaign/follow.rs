// SPDX-License-Identifier: MIT OR Apache-2.0
//! Follows a run file while another process writes it: what can be said so far.
//!
//! Units: ns. Reads only what was added, and of that only the seconds.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use tailbound_core::record::Line;
use tailbound_core::runfile::read_line;
use tailbound_sys::given;

/// What a run says while it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SoFar {
    /// Activations that fell due.
    pub due: u64,
    /// The latest of them.
    pub max_ns: i64,
}

/// A file that grows.
#[derive(Debug)]
pub struct Follow {
    path: PathBuf,
    /// The file of an earlier run, which tells of that one, until the new one takes its place.
    earlier: Option<(u64, u64)>,
    at: u64,
    begun: Vec<u8>,
    due: u64,
    max_ns: Option<i64>,
}

impl Follow {
    /// Of the file at `path`; what lies there now is of an earlier run.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        let earlier = path.symlink_metadata().ok().map(|m| (m.dev(), m.ino()));
        Self { path: path.to_owned(), earlier, at: 0, begun: Vec::new(), due: 0, max_ns: None }
    }

    /// Takes what is new. A file that is not there yet, or cannot be read, tells nothing.
    pub fn look(&mut self) {
        let Ok(mut file) = given::open(&self.path) else { return };
        if file.metadata().is_ok_and(|m| self.earlier == Some((m.dev(), m.ino()))) {
            return;
        }
        let mut new = Vec::new();
        if file.seek(SeekFrom::Start(self.at)).is_err() || file.read_to_end(&mut new).is_err() {
            return;
        }
        self.at = self.at.saturating_add(new.len() as u64);
        self.begun.append(&mut new);
        let Some(end) = self.begun.iter().rposition(|b| *b == b'\n') else { return };
        let rest = self.begun.split_off(end + 1);
        let lines = std::mem::replace(&mut self.begun, rest);
        for line in lines.split(|b| *b == b'\n') {
            if !line.starts_with(b"{\"type\":\"second\"") {
                continue;
            }
            if let Ok(Some(Line::Second(s))) = read_line(line) {
                self.due = self.due.saturating_add(s.n).saturating_add(s.missed);
                self.max_ns = self.max_ns.max((s.n > 0).then_some(s.max_ns));
            }
        }
    }

    /// What it says so far; `None` before the first second.
    #[must_use]
    pub fn so_far(&self) -> Option<SoFar> {
        Some(SoFar { due: self.due, max_ns: self.max_ns? })
    }
}
