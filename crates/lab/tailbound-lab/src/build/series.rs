// SPDX-License-Identifier: MIT OR Apache-2.0
//! A series of patches: read, hashed, and put on a plain folder with patch(1).
//!
//! Each patch is tried dry first, so that one that fails leaves nothing half
//! done; those after it are tried all the same, so that one look shows the whole series.
//! Not here: git trees (`git`). Source: patch(1).

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tailbound_archive::{ArchiveError, Packing};
use tailbound_sys::given;
use tailbound_sys::new_file::{self, Existing};

use crate::error::{BuildError, LabError};
use crate::hash;
use crate::kernel::tool::Tool;

/// The largest patch, as text. From one release of Linux to the next are some 80 MB.
const PATCH_BYTES_MAX: u64 = 256 << 20;

/// A patch as it is recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PatchRecord {
    /// File name, or the subject of a commit that was rebased.
    pub name: String,
    /// SHA-256 of the patch as text (unpacked); of a commit its id.
    pub sha256: String,
}

/// A patch, ready to be applied.
#[derive(Clone, Debug)]
pub(crate) struct Patch {
    pub(crate) record: PatchRecord,
    /// The text, unpacked where it was compressed.
    pub(crate) file: PathBuf,
}

/// What became of one patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tried {
    pub(crate) name: String,
    /// Empty: it applied. Otherwise the files, with what is wrong in each.
    pub(crate) conflicts: Vec<String>,
    /// Nothing to do: the tree has it already.
    pub(crate) already: bool,
}

impl Tried {
    pub(crate) fn fine(name: &str) -> Self {
        Self { name: name.to_owned(), conflicts: Vec::new(), already: false }
    }
}

/// Reads the patches named by the user into `folder` as plain text.
///
/// # Errors
/// Usage: one is missing, or is no patch.
pub(crate) fn gather(
    names: &[String],
    shipped: Option<&Path>,
    folder: &Path,
) -> Result<Vec<Patch>, LabError> {
    fs::create_dir_all(folder).map_err(|e| LabError::file(folder, e))?;
    let mut patches = Vec::new();
    for (number, name) in names.iter().enumerate() {
        let path = locate(name, shipped)?;
        let base = path.file_name().map_or(name.clone(), |n| n.to_string_lossy().into_owned());
        let plain = base.trim_end_matches(".xz").trim_end_matches(".gz");
        let file = folder.join(format!("{number:04}-{plain}"));
        let text = read(&path)?;
        let looks = |mark: &[u8]| text.windows(mark.len()).any(|w| w == mark);
        if !looks(b"\n+++ ") && !text.starts_with(b"--- ") && !looks(b"diff --git ") {
            return Err(BuildError::NoPatch { path }.into());
        }
        new_file::write(&file, Existing::Replace, &text).map_err(|e| LabError::file(&file, e))?;
        patches.push(Patch {
            record: PatchRecord { name: base, sha256: hash::of_bytes(&text) },
            file,
        });
    }
    Ok(patches)
}

fn locate(name: &str, shipped: Option<&Path>) -> Result<PathBuf, LabError> {
    let Some(file) = name.strip_prefix("package:") else {
        let path = Path::new(name);
        let unreadable = |source| BuildError::PatchFile { path: path.to_owned(), source };
        return Ok(fs::canonicalize(path).map_err(unreadable)?);
    };
    let Some(folder) = shipped else {
        return Err(BuildError::NotShipping { name: name.to_owned() }.into());
    };
    let path = folder.join(file);
    if path.is_file() && !file.contains('/') {
        return Ok(path);
    }
    let shipped: Vec<String> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .filter(|n| n.contains("patch"))
        .collect();
    Err(BuildError::NotShipped { name: name.to_owned(), shipped }.into())
}

/// A patch as text, unpacked where it is packed.
fn read(path: &Path) -> Result<Vec<u8>, LabError> {
    let unreadable = |source| BuildError::PatchFile { path: path.to_owned(), source };
    let refused = |e| LabError::archive(format!("patch {}", path.display()), e);
    let file = given::file(path).map_err(unreadable)?;
    if file.metadata().map_err(unreadable)?.len() > PATCH_BYTES_MAX {
        return Err(refused(ArchiveError::Bytes { most: PATCH_BYTES_MAX }));
    }
    Packing::whole(file, PATCH_BYTES_MAX).map_err(refused)
}

/// Applies the series to the folder `root`.
///
/// # Errors
/// There is no patch(1).
pub(crate) fn apply(root: &Path, patches: &[Patch]) -> Result<Vec<Tried>, LabError> {
    let patch = |file: &Path, dry: &[&str]| {
        Tool::new("patch")
            .args(["-p1", "--force", "--no-backup-if-mismatch"])
            .args(dry)
            .arg("-i")
            .arg(file)
            .within(root)
            .run()
    };
    let mut tried = Vec::new();
    for one in patches {
        let output = patch(&one.file, &["--dry-run", "--reject-file=-"])?;
        let mut result = Tried::fine(&one.record.name);
        if output.success {
            let done = patch(&one.file, &[])?;
            if !done.success {
                let name = one.record.name.clone();
                return Err(BuildError::PatchFailed { name, complaint: done.complaint() }.into());
            }
        } else {
            result.conflicts = failures(&output.out);
            if result.conflicts.is_empty() {
                result.conflicts.push(output.complaint());
            }
        }
        tried.push(result);
    }
    Ok(tried)
}

/// Files and hunks that failed, from what patch(1) says.
fn failures(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut file = String::new();
    let mut hunks: Vec<String> = Vec::new();
    let mut close = |file: &str, hunks: &mut Vec<String>| {
        if !hunks.is_empty() {
            found.push(format!("{file}: {}", hunks.join(", ")));
            hunks.clear();
        }
    };
    for line in text.lines() {
        if let Some(name) =
            line.strip_prefix("checking file ").or_else(|| line.strip_prefix("patching file "))
        {
            close(&file, &mut hunks);
            file = name.trim_matches('\'').to_owned();
        } else if line.starts_with("can't find file to patch") {
            close(&file, &mut hunks);
            file.clear();
        } else if let Some(name) = line.strip_prefix("|+++ ") {
            // The header of a patch without its file, repeated behind bars.
            let name = name.split_whitespace().next().unwrap_or(name);
            file = name.split_once('/').map_or(name, |(_, n)| n).to_owned();
        } else if line.starts_with("No file to patch") {
            hunks.push("no such file".to_owned());
        } else if let Some(rest) = line.strip_prefix("Hunk #")
            && rest.contains("FAILED")
        {
            let number: String = rest.chars().take_while(char::is_ascii_digit).collect();
            let at = rest.rsplit(' ').next().unwrap_or("?").trim_end_matches('.');
            hunks.push(format!("hunk {number} fails at line {at}"));
        } else if line.starts_with("Reversed (or previously applied) patch detected") {
            hunks.push("seems to be applied already".to_owned());
        }
    }
    close(&file, &mut hunks);
    found
}

/// The series as a table for people, one line a patch and one a conflict; then an error if
/// there was a conflict.
///
/// # Errors
/// Usage, when one did not apply.
pub(crate) fn judge(tried: &[Tried], onto: &str) -> Result<(), LabError> {
    let failed = tried.iter().filter(|t| !t.conflicts.is_empty()).count();
    if failed == 0 {
        return Ok(());
    }
    let mut lines = Vec::new();
    let mut after = false;
    for t in tried {
        let what = match (t.conflicts.is_empty(), t.already) {
            (true, true) => "is there already",
            (true, false) if after => "applies (without those before it that do not)",
            (true, false) => "applies",
            (false, _) => "conflicts:",
        };
        after |= !t.conflicts.is_empty();
        lines.push(format!("{} {what}", t.name));
        lines.extend(t.conflicts.iter().map(|conflict| format!("    {conflict}")));
    }
    let (all, source_name) = (tried.len(), onto.to_owned());
    Err(BuildError::Conflicts { failed, all, source_name, lines }.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(folder: &Path, name: &str, text: &str) -> String {
        let path = folder.join(name);
        fs::write(&path, text).expect("written");
        path.display().to_string()
    }

    #[test]
    fn conflicts_are_reported_by_patch_and_hunk_and_leave_nothing_behind() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().join("tree");
        fs::create_dir(&root).expect("made");
        let original: String = (1..=20).map(|n| format!("line {n}\n")).collect();
        fs::write(root.join("a.c"), &original).expect("written");
        let good = "--- a/a.c\n+++ b/a.c\n@@ -1,3 +1,3 @@\n line 1\n-line 2\n+LINE 2\n line 3\n";
        let half = "--- a/a.c\n+++ b/a.c\n@@ -4,3 +4,3 @@\n line 4\n-line 5\n+LINE 5\n line 6\n@@ -10,3 +10,3 @@\n other 10\n-other 11\n+new\n other 12\n";
        let gone = "--- a/no.c\n+++ b/no.c\n@@ -1 +1 @@\n-x\n+y\n";
        let late =
            "--- a/a.c\n+++ b/a.c\n@@ -18,3 +18,3 @@\n line 18\n-line 19\n+LINE 19\n line 20\n";
        let names: Vec<String> =
            [("1.patch", good), ("2.patch", half), ("3.patch", gone), ("4.patch", late)]
                .map(|(n, t)| written(folder.path(), n, t))
                .into();
        let patches = gather(&names, None, &folder.path().join("plain")).expect("patches");
        if tailbound_sys::program::find("patch").is_err() {
            return tailbound_testing::skip("patch", "there is no patch(1)");
        }
        let tried = apply(&root, &patches).expect("patch(1)");
        let failed: Vec<bool> = tried.iter().map(|t| !t.conflicts.is_empty()).collect();
        assert_eq!(failed, [false, true, true, false]);
        let text = judge(&tried, "the tree").unwrap_err().to_string();
        for part in [
            "2 of 4 patches",
            "1.patch applies",
            "a.c: hunk 2 fails at line 10",
            "no.c: no such file",
            "4.patch applies (without",
        ] {
            assert!(text.contains(part), "`{part}` in {text}");
        }
        let after = fs::read_to_string(root.join("a.c")).expect("read");
        assert_eq!(after, original.replace("line 2\n", "LINE 2\n").replace("line 19", "LINE 19"));
        assert_eq!(fs::read_dir(&root).expect("read").count(), 1, "no .rej, no .orig");
    }

    #[test]
    fn what_is_no_patch_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let text = written(folder.path(), "x.patch", "hello\n");
        for (name, says) in [
            (text.as_str(), "not a patch"),
            ("/no/such.patch", "No such file"),
            ("package:rt.patch", "no package of Debian"),
        ] {
            let e = gather(&[name.to_owned()], None, &folder.path().join("p")).unwrap_err();
            assert!(
                e.to_string().contains(says) && e.kind() == tailbound_core::FailureKind::Usage,
                "{e}"
            );
        }
    }
}
