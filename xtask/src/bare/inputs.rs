// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the two commands depend on before the tool itself runs: when it changes, they have to be
//! tried on a bare machine again.
//!
//! Not the sources of the tool: its own tests are for them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use sha2::{Digest as _, Sha256};

use crate::exec;

/// Files and folders that count as a whole.
const WHOLE: [&str; 7] = [
    "Makefile",
    ".ci",
    "scripts",
    ".cargo",
    "rust-toolchain",
    "rust-toolchain.toml",
    "xtask/src/bare",
];

/// How far a command goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// What is installed before anything is compiled: no profile changes that.
    BeforeCompiling,
    /// To its end.
    Whole,
}

/// First digits of the hash of all that counts for a command that goes so far.
pub(super) fn hash(project: &Path, reach: Reach) -> anyhow::Result<String> {
    let mut all = Sha256::new();
    for name in WHOLE {
        for file in files(&project.join(name))? {
            let bytes = fs::read(&file).with_context(|| file.display().to_string())?;
            let name = file.strip_prefix(project).unwrap_or(&file).display().to_string();
            all.update(format!("{name}\0{}\0", bytes.len()));
            all.update(bytes);
        }
    }
    let read = |name: &str| fs::read_to_string(project.join(name)).context(name.to_owned());
    if reach == Reach::Whole {
        all.update(profiles(&read("Cargo.toml")?));
    }
    all.update(commands(&read("README.md")?));
    let digest = all.finalize();
    Ok(digest.iter().take(8).map(|b| format!("{b:02x}")).collect())
}

/// Are they, as they are now, what a clone would have?
pub(super) fn committed(project: &Path) -> anyhow::Result<bool> {
    let mut git = exec::command("git");
    git.current_dir(project).args(["status", "--porcelain", "--", "Cargo.toml", "README.md"]);
    let said = exec::output(git.args(WHOLE))?;
    let changed =
        String::from_utf8_lossy(&said.stdout).lines().any(|l| !l.ends_with("bare.verified"));
    Ok(said.status.success() && !changed)
}

/// The files below `path` in order; none if there is none. What is verified is no input.
fn files(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if path.is_file() {
        let notes = path.ends_with("scripts/bare.verified");
        return Ok(if notes { Vec::new() } else { vec![path.to_owned()] });
    }
    let mut found = Vec::new();
    if path.is_dir() {
        for entry in fs::read_dir(path).with_context(|| path.display().to_string())? {
            found.extend(files(&entry?.path())?);
        }
    }
    found.sort();
    Ok(found)
}

/// The profiles, and which Rust is asked for.
fn profiles(manifest: &str) -> String {
    let mut inside = false;
    let mut text = String::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line.starts_with("[profile");
        }
        if inside || line.starts_with("rust-version") {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

/// The README's first block of commands.
fn commands(readme: &str) -> &str {
    readme.split("```").nth(1).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_case_depends_on_is_seen_and_nothing_else() {
        let manifest = "[package]\nname = \"x\"\nrust-version = \"1.90\"\n[profile.release]\nlto = \"off\"\n[dependencies]\nserde = \"1\"\n";
        assert_eq!(
            profiles(manifest),
            "rust-version = \"1.90\"\n[profile.release]\nlto = \"off\"\n"
        );
        assert_eq!(
            commands("# T\n```sh\nmake demo\n```\nmore\n```sh\nelse\n```\n"),
            "sh\nmake demo\n"
        );
        let dir = tempfile::tempdir().unwrap();
        for name in ["scripts/deps", "Makefile", "Cargo.toml", "README.md", "other"] {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        }
        let before = hash(dir.path(), Reach::Whole).unwrap();
        for same in ["other", "scripts/bare.verified"] {
            fs::write(dir.path().join(same), "changed").unwrap();
            assert_eq!(hash(dir.path(), Reach::Whole).unwrap(), before, "{same}");
        }
        for other in ["scripts/deps", "Makefile"] {
            fs::write(dir.path().join(other), "changed").unwrap();
            assert_ne!(hash(dir.path(), Reach::Whole).unwrap(), before, "{other}");
        }
        let both = || [Reach::BeforeCompiling, Reach::Whole].map(|r| hash(dir.path(), r).unwrap());
        let before = both();
        fs::write(dir.path().join("Cargo.toml"), "[profile.dev]\nopt-level = 1\n").unwrap();
        let after = both();
        assert_eq!(after[0], before[0], "nothing is compiled before that");
        assert_ne!(after[1], before[1], "a profile");
    }
}
