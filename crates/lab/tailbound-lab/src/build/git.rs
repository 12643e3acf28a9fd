// SPDX-License-Identifier: MIT OR Apache-2.0
//! A user's git tree: his series on a branch and work tree of our own, his own branch and
//! files untouched.
//!
//! The branch is `tailbound/NAME`, the work tree is in the store. Hooks and
//! signing of the user's are not run. Source: git-worktree(1), git-am(1), git-cherry-pick(1).

use std::fs;
use std::path::{Path, PathBuf};

use tailbound_core::limits;
use tailbound_sys::given;
use tailbound_sys::new_file::{self, Existing};

use super::series::{Patch, PatchRecord, Tried};
use crate::error::{BuildError, LabError};
use crate::kernel::tool::{Tool, ToolOutput};

/// Our work tree of a user's repository.
#[derive(Clone, Debug)]
pub(crate) struct Worktree {
    repository: PathBuf,
    /// The work tree.
    pub(crate) folder: PathBuf,
    branch: String,
    /// What the user's HEAD is.
    pub(crate) head: String,
    tip_file: PathBuf,
}

pub(super) fn git(folder: &Path) -> Tool {
    Tool::new("env")
        .args(["-u", "GIT_DIR", "-u", "GIT_WORK_TREE", "-u", "GIT_INDEX_FILE"])
        .args([
            "GIT_TERMINAL_PROMPT=0",
            "GIT_COMMITTER_DATE=2000-01-01T00:00:00Z",
            "GIT_EDITOR=true",
            "git",
        ])
        .args([
            "-c",
            "core.hooksPath=/dev/null",
            "-c",
            "commit.gpgSign=false",
            "-c",
            "core.autocrlf=false",
        ])
        .args(["-c", "user.name=tailbound", "-c", "user.email=tailbound@localhost"])
        .arg("-C")
        .arg(folder)
}

fn one_line(folder: &Path, args: &[&str]) -> Result<String, LabError> {
    Ok(git(folder).args(args).succeed()?.trim().to_owned())
}

/// Is this the top of a git tree?
pub(crate) fn is_tree(folder: &Path) -> bool {
    folder.join(".git").exists()
}

/// Changes of the user's that are in no commit, and so not built.
pub(crate) fn uncommitted(folder: &Path) -> Result<usize, LabError> {
    let text = git(folder).args(["status", "--porcelain", "--untracked-files=no"]).succeed()?;
    Ok(text.lines().count())
}

impl Worktree {
    /// A work tree of `repository` at its HEAD, in `work/tree`, on the branch for `name`.
    ///
    /// # Errors
    /// Not a usable repository; or the branch holds commits that are not ours.
    pub(crate) fn make(repository: &Path, work: &Path, name: &str) -> Result<Self, LabError> {
        let repository = fs::canonicalize(repository).map_err(|e| LabError::file(repository, e))?;
        let head = one_line(&repository, &["rev-parse", "HEAD"])?;
        let branch = format!("tailbound/{name}");
        let tip_file = work.join("branch-tip");
        let reference = format!("refs/heads/{branch}");
        let now = git(&repository).args(["rev-parse", "-q", "--verify", &reference]).run()?;
        let left = fs::read_to_string(&tip_file).unwrap_or_default();
        if now.success && now.out.trim() != left.trim() {
            return Err(BuildError::Branch { repository, branch }.into());
        }
        let folder = work.join("tree");
        if folder.exists() {
            // Refused when it is no work tree of this repository; removed all the same.
            let _answer =
                git(&repository).args(["worktree", "remove", "--force"]).arg(&folder).run()?;
            let _gone = fs::remove_dir_all(&folder);
        }
        git(&repository).args(["worktree", "prune"]).succeed()?;
        git(&repository)
            .args(["worktree", "add", "--force", "-B", &branch])
            .arg(&folder)
            .arg(&head)
            .succeed()?;
        let made = Self { repository, folder, branch, head, tip_file };
        made.remember_tip()?;
        Ok(made)
    }

    fn remember_tip(&self) -> Result<String, LabError> {
        let tip = one_line(&self.folder, &["rev-parse", "HEAD"])?;
        new_file::write(&self.tip_file, Existing::Replace, tip.as_bytes())
            .map_err(|e| LabError::file(&self.tip_file, e))?;
        Ok(tip)
    }

    /// Where our branch is now.
    pub(crate) fn tip(&self) -> Result<String, LabError> {
        self.remember_tip()
    }

    /// Our branch.
    pub(crate) fn branch(&self) -> &str {
        &self.branch
    }

    /// Puts the patches on the branch, one commit each.
    ///
    /// # Errors
    /// git itself fails; a patch that does not apply is in the answer.
    pub(crate) fn apply(&self, patches: &[Patch]) -> Result<Vec<Tried>, LabError> {
        let mut tried = Vec::new();
        for patch in patches {
            let mail = given::read(&patch.file, limits::OBJECT_BYTES_MAX)
                .is_ok_and(|b| is_mail(&String::from_utf8_lossy(&b)));
            let conflicts = if mail { self.mailed(patch)? } else { self.plain(patch)? };
            tried.push(Tried { conflicts, ..Tried::fine(&patch.record.name) });
        }
        self.remember_tip()?;
        Ok(tried)
    }

    fn mailed(&self, patch: &Patch) -> Result<Vec<String>, LabError> {
        let output =
            git(&self.folder).args(["am", "--3way", "--keep-cr"]).arg(&patch.file).run()?;
        if output.success {
            return Ok(Vec::new());
        }
        let found = conflicts(&output);
        let _nothing_to_abort = git(&self.folder).args(["am", "--abort"]).run()?;
        Ok(found)
    }

    fn plain(&self, patch: &Patch) -> Result<Vec<String>, LabError> {
        let output = git(&self.folder).args(["apply", "--index"]).arg(&patch.file).run()?;
        if !output.success {
            return Ok(conflicts(&output));
        }
        let date = "--date=2000-01-01T00:00:00Z";
        git(&self.folder).args(["commit", "-q", date, "-m", &patch.record.name]).succeed()?;
        Ok(Vec::new())
    }

    /// Moves the series, the user's own commits that `onto` lacks and the patches just
    /// applied, onto `onto`.
    ///
    /// # Errors
    /// Usage: no such commit. A commit that does not apply is in the answer.
    pub(crate) fn rebase(&self, onto: &str) -> Result<(Vec<Tried>, Vec<PatchRecord>), LabError> {
        let commit = format!("{onto}^{{commit}}");
        let target =
            one_line(&self.folder, &["rev-parse", "-q", "--verify", "--end-of-options", &commit])
                .map_err(|_| BuildError::NoTarget {
                repository: self.repository.clone(),
                commit: onto.to_owned(),
            })?;
        let base = git(&self.folder).args(["merge-base", &target, "HEAD"]).run()?;
        // Without a common ancestor only what was put on the user's HEAD is the series.
        let from = if base.success { base.out.trim() } else { &self.head };
        let range = format!("{from}..HEAD");
        let list = git(&self.folder)
            .args(["log", "--reverse", "--no-merges", "--format=%H %s", &range])
            .succeed()?;
        git(&self.folder).args(["reset", "-q", "--hard", &target]).succeed()?;
        let mut tried = Vec::new();
        let mut records = Vec::new();
        for line in list.lines() {
            let (id, subject) = line.split_once(' ').unwrap_or((line, ""));
            tried.push(self.pick(id, subject)?);
            records.push(PatchRecord { name: subject.to_owned(), sha256: id.to_owned() });
        }
        self.remember_tip()?;
        Ok((tried, records))
    }

    fn pick(&self, id: &str, subject: &str) -> Result<Tried, LabError> {
        let short: String = id.chars().take(12).collect();
        let mut tried = Tried::fine(&format!("{short} {subject}"));
        let output = git(&self.folder).args(["cherry-pick", "--allow-empty", id]).run()?;
        if output.success {
            return Ok(tried);
        }
        let unmerged =
            git(&self.folder).args(["diff", "--name-only", "--diff-filter=U"]).succeed()?;
        let mut files: Vec<String> = unmerged.lines().map(str::to_owned).collect();
        files.dedup();
        if files.is_empty()
            && (output.out.contains("now empty") || output.err.contains("now empty"))
        {
            tried.already = true;
        } else if files.is_empty() {
            tried.conflicts = conflicts(&output);
        } else {
            tried.conflicts = files.iter().map(|f| self.marked(f)).collect();
        }
        let _nothing_to_abort = git(&self.folder).args(["cherry-pick", "--abort"]).run()?;
        Ok(tried)
    }

    /// A conflicting file with the lines of its conflicts.
    fn marked(&self, file: &str) -> String {
        let bytes =
            given::read(&self.folder.join(file), limits::OBJECT_BYTES_MAX).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<String> = text
            .lines()
            .enumerate()
            .filter(|(_, l)| l.starts_with("<<<<<<< "))
            .map(|(n, _)| (n + 1).to_string())
            .collect();
        match lines.as_slice() {
            [] => format!("{file}: changed on one side, deleted on the other"),
            _ => format!("{file}: at line {}", lines.join(", ")),
        }
    }
}

fn is_mail(text: &str) -> bool {
    let head: Vec<&str> = text.lines().take(30).collect();
    text.starts_with("From ")
        || head.iter().any(|l| l.starts_with("From: "))
            && head.iter().any(|l| l.starts_with("Subject: "))
}

/// Files that conflict, from what git says.
fn conflicts(output: &ToolOutput) -> Vec<String> {
    let text = format!("{}\n{}", output.out, output.err);
    let mut found: Vec<String> = Vec::new();
    for line in text.lines() {
        let of = line
            .strip_prefix("error: patch failed: ")
            .map(|place| match place.rsplit_once(':') {
                Some((file, line)) => format!("{file}: the hunk for line {line} fails"),
                None => place.to_owned(),
            })
            .or_else(|| {
                let file =
                    line.strip_prefix("error: ")?.strip_suffix(": does not exist in index")?;
                Some(format!("{file}: no such file"))
            })
            .or_else(|| {
                let file =
                    line.strip_prefix("error: ")?.strip_suffix(": No such file or directory")?;
                Some(format!("{file}: no such file"))
            })
            .or_else(|| {
                let file = line.strip_prefix("CONFLICT ")?.rsplit(' ').next()?;
                Some(format!("{file}: both sides changed it"))
            });
        if let Some(of) = of
            && !found.contains(&of)
        {
            found.push(of);
        }
    }
    if found.is_empty() {
        found.push(output.complaint());
    }
    found
}

#[cfg(test)]
#[path = "git_tests.rs"]
mod tests;
