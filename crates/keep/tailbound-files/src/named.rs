// SPDX-License-Identifier: MIT OR Apache-2.0
//! What people call a file, and what a file beside it is called.

use std::path::{Path, PathBuf};

use tailbound_archive::plain_name;
use tailbound_sys::new_file;

/// The name people know a file by.
#[must_use]
pub fn name(path: &Path) -> String {
    path.file_name()
        .map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned())
}

/// `run.tailbound.jsonl` → `run` + `suffix`; of a pipe or a device, in whose folder nothing can be written, `imported` + `suffix` here.
#[must_use]
pub fn sibling(path: &Path, suffix: &str) -> PathBuf {
    let is_pipe = path.metadata().is_ok_and(|m| !m.is_file() && !m.is_dir());
    // A file that is a descriptor has its own name elsewhere.
    let is_descriptor = new_file::is_own_descriptor(path) || path == Path::new("/dev/stdin");
    if is_pipe || is_descriptor || path.starts_with("/proc") {
        return PathBuf::from(format!("imported{suffix}"));
    }
    let name = name(path);
    let name = plain_name(&name);
    let stem = name
        .strip_suffix(".tailbound.jsonl")
        .or_else(|| name.rsplit_once('.').map(|(stem, _)| stem))
        .unwrap_or(name);
    path.with_file_name(format!("{stem}{suffix}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beside_a_pipe_nothing_is_written() {
        let beside = |path: &str| sibling(Path::new(path), ".tailbound.jsonl");
        for pipe in ["/dev/stdin", "/dev/fd/63", "/proc/self/fd/0", "/dev/null"] {
            assert_eq!(beside(pipe), Path::new("imported.tailbound.jsonl"), "{pipe}");
        }
        assert_eq!(beside("a/b.txt"), Path::new("a/b.tailbound.jsonl"));
        assert_eq!(beside("/dev/shm/b.txt"), Path::new("/dev/shm/b.tailbound.jsonl"));
    }
}
