// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program with journals apart from the machine's, and what a capture holds. Also used by `../knobs`.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Output};

use flate2::read::GzDecoder;
use tailbound_sys::process::is_root;
use tailbound_testing::skip;

/// Why mounts of its own cannot be had here, if they cannot.
pub(crate) fn own_mounts_lack() -> Option<String> {
    if !is_root() {
        return Some("mounts of its own need root".to_owned());
    }
    let tried = Command::new("unshare").args(["-m", "mount", "--bind", "/proc", "/proc"]).output();
    match tried {
        Ok(out) if out.status.success() => None,
        Ok(out) => Some(String::from_utf8_lossy(&out.stderr).into_owned()),
        Err(e) => Some(format!("unshare: {e}")),
    }
}

/// Journals of its own in a temporary folder, over those of the machine.
pub(crate) struct Journals(tempfile::TempDir);

/// The rest of its arguments as a command, that sees `$1/run` as /run and `$1/lib` as /var/lib.
const OVER_THE_MACHINES: &str = r#"
set -e
mount --bind "$1/run" /run
mount --bind "$1/lib" /var/lib
shift
exec "$@"
"#;

impl Journals {
    /// `None` with a word why, where there is no root or no mounts of its own.
    pub(crate) fn new() -> Option<Self> {
        if let Some(why) = own_mounts_lack() {
            skip("root", why);
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        for name in ["run", "lib"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        Some(Self(folder))
    }

    /// Where files may lie.
    pub(crate) fn folder(&self) -> &Path {
        self.0.path()
    }

    /// A command with these journals; `flags` are unshare(1)'s.
    pub(crate) fn command(&self, flags: &[&str], words: &[&str]) -> Command {
        let mut command = Command::new("unshare");
        command.arg("-m").args(flags).args(["sh", "-c", OVER_THE_MACHINES, "sh"]);
        command.arg(self.folder()).args(words).env("NO_COLOR", "1").current_dir(self.folder());
        command
    }

    /// Runs the program with these journals.
    pub(crate) fn tailbound(&self, words: &[&str]) -> Output {
        let all = [&[env!("CARGO_BIN_EXE_tailbound")], words].concat();
        self.command(&[], &all).output().unwrap()
    }
}

/// Every file of a capture by its path; folders have no bytes.
pub(crate) fn entries(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut archive = tar::Archive::new(GzDecoder::new(std::fs::File::open(path).unwrap()));
    let read = |entry: std::io::Result<tar::Entry<'_, GzDecoder<std::fs::File>>>| {
        let mut entry = entry.unwrap();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        (entry.path().unwrap().display().to_string(), bytes)
    };
    archive.entries().unwrap().map(read).collect()
}
