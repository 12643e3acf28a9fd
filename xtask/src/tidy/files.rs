// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which files belong to the project: those git tracks, or all but build products where
//! there is no git (a source tarball).

use std::fs;
use std::path::Path;

use anyhow::Context as _;

use crate::exec;

/// One file of the project.
#[derive(Debug, Clone)]
pub(crate) struct File {
    /// Relative to the project, with `/`.
    pub(crate) path: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) executable: bool,
}

impl File {
    /// The text, if it is text.
    pub(crate) fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.bytes).ok().filter(|t| !t.contains('\0'))
    }

    /// The part of the name after the last dot, empty if there is none.
    pub(crate) fn extension(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        name.rsplit_once('.').map_or("", |(_, e)| e)
    }

    /// Bytes of other tools, kept as they were: not ours to format.
    pub(crate) fn is_foreign(&self) -> bool {
        ["fixtures/", "golden/", "corpus/", "vendor/", "samples/"]
            .iter()
            .any(|d| self.path.contains(d))
    }

    #[cfg(test)]
    pub(crate) fn fake(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), bytes: text.as_bytes().to_vec(), executable: false }
    }
}

/// All files, in the order of their paths.
pub(crate) fn all(project: &Path) -> anyhow::Result<Vec<File>> {
    let mut paths = match tracked(project) {
        Some(paths) => paths,
        None => {
            let mut paths = Vec::new();
            walk(project, "", &mut paths)?;
            paths
        }
    };
    paths.sort();
    paths.dedup();
    let mut files = Vec::new();
    for path in paths {
        let full = project.join(&path);
        let meta = match fs::symlink_metadata(&full) {
            Ok(meta) => meta,
            // Tracked, but deleted in the working tree.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
            Err(e) => return Err(e).context(path),
        };
        if !meta.is_file() {
            continue;
        }
        let bytes = fs::read(&full).with_context(|| path.clone())?;
        files.push(File { path, bytes, executable: is_executable(&meta) });
    }
    Ok(files)
}

fn is_executable(meta: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    meta.permissions().mode() & 0o111 != 0
}

/// `git ls-files`, with what is new and not ignored; `None` without a repository of its own.
fn tracked(project: &Path) -> Option<Vec<String>> {
    if !project.join(".git").exists() {
        return None;
    }
    let mut git = exec::command("git");
    git.current_dir(project).args(["ls-files", "-z", "-c", "-o", "--exclude-standard"]);
    let out = exec::output(&mut git).ok().filter(|o| o.status.success())?;
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    Some(text.split('\0').filter(|p| !p.is_empty()).map(str::to_owned).collect())
}

fn walk(project: &Path, under: &str, out: &mut Vec<String>) -> anyhow::Result<()> {
    let dir = project.join(under);
    for entry in fs::read_dir(&dir).with_context(|| dir.display().to_string())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if under.is_empty() { name.clone() } else { format!("{under}/{name}") };
        let kind = entry.file_type()?;
        if kind.is_dir() {
            if !["target", "dist", ".git"].contains(&name.as_str()) {
                walk(project, &path, out)?;
            }
        } else if kind.is_file() {
            out.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tarball_without_git_is_walked_and_build_products_are_left_out() {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in
            [("src/a.rs", "x"), ("target/debug/b", "y"), ("dist/c", "z"), (".ci/run", "r")]
        {
            let full = dir.path().join(path);
            fs::create_dir_all(full.parent().unwrap()).unwrap();
            fs::write(full, text).unwrap();
        }
        let paths: Vec<String> = all(dir.path()).unwrap().into_iter().map(|f| f.path).collect();
        assert_eq!(paths, [".ci/run", "src/a.rs"]);
    }
}
