// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commits of a user's git tree, put one after the other into a folder of our own.
//!
//! The user's checkout, index and branches are never touched, and nothing is added to his repository:
//! git is given another work tree and another index. Files that two commits share keep their time, so that a build
//! compiles what changed. History is followed along first parents, which is an order: where a merge is the culprit,
//! the change is within what it merged. Source: git-read-tree(1), git-rev-list(1).

use std::fs;
use std::path::{Path, PathBuf};

use super::git::git;
use crate::error::{BuildError, LabError};
use crate::kernel::tool::Tool;

/// A commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Its whole hash.
    pub id: String,
    /// The first line of its message.
    pub subject: String,
    /// Does it have more than one parent?
    pub is_merge: bool,
}

impl Commit {
    /// `0123456789ab subject`
    #[must_use]
    pub fn title(&self) -> String {
        format!("{} {}", self.id.get(..12).unwrap_or(&self.id), self.subject)
    }
}

/// A repository that is read.
#[derive(Clone, Debug)]
pub struct Commits {
    repository: PathBuf,
}

impl Commits {
    /// Commits of `repository`.
    ///
    /// # Errors
    /// Usage: it is no git tree.
    pub fn open(repository: &Path) -> Result<Self, LabError> {
        let top = git(repository).args(["rev-parse", "--absolute-git-dir"]).run()?;
        if !top.success {
            let (folder, complaint) = (repository.to_owned(), top.complaint());
            return Err(BuildError::NoGitTree { folder, complaint }.into());
        }
        Ok(Self { repository: PathBuf::from(top.out.trim()) })
    }

    /// What a reader may call a commit, as its hash.
    fn id(&self, word: &str, flag: &'static str) -> Result<String, LabError> {
        let commit = format!("{word}^{{commit}}");
        let found = git(&self.repository)
            .args(["rev-parse", "-q", "--verify", "--end-of-options", &commit])
            .run()?;
        match found.success {
            true => Ok(found.out.trim().to_owned()),
            false => Err(BuildError::NoCommit { flag, commit: word.to_owned() }.into()),
        }
    }

    /// `good`, then every commit to `bad` along first parents.
    ///
    /// # Errors
    /// Usage: no such commits, or the one does not come before the other.
    pub fn between(&self, good: &str, bad: &str) -> Result<Vec<Commit>, LabError> {
        let (good, bad) = (self.id(good, "--good")?, self.id(bad, "--bad")?);
        let range = format!("{good}..{bad}");
        let list = git(&self.repository)
            .args(["log", "--reverse", "--first-parent", "--format=%H%x09%P%x09%s", &range])
            .succeed()?;
        let first = git(&self.repository)
            .args(["log", "-1", "--format=%H%x09%P%x09%s", &good])
            .succeed()?;
        let all: Vec<Commit> = first.lines().chain(list.lines()).filter_map(commit).collect();
        let parent =
            git(&self.repository).args(["merge-base", "--is-ancestor", &good, &bad]).run()?;
        if !parent.success || all.len() < 2 {
            return Err(BuildError::CommitOrder { good, bad }.into());
        }
        Ok(all)
    }

    /// Puts a commit's files into the folder `tree` of `room`, and takes others of the last commit away; what a build
    /// left stays.
    ///
    /// # Errors
    /// git fails: a full disk, a damaged repository.
    pub fn place(&self, id: &str, room: &Path) -> Result<PathBuf, LabError> {
        let tree = room.join("tree");
        fs::create_dir_all(&tree).map_err(|e| LabError::file(&tree, e))?;
        let absolute = |path: &Path| fs::canonicalize(path).map_err(|e| LabError::file(path, e));
        let (room, tree) = (absolute(room)?, absolute(&tree)?);
        Tool::new("env")
            .args(["-u", "GIT_DIR", "-u", "GIT_WORK_TREE"])
            .arg(format!("GIT_INDEX_FILE={}", room.join("index").display()))
            .args(["git", "-c", "core.hooksPath=/dev/null", "-c", "core.autocrlf=false"])
            .arg(format!("--git-dir={}", self.repository.display()))
            .arg(format!("--work-tree={}", tree.display()))
            .args(["read-tree", "-u", "--reset", id])
            .within(&tree)
            .succeed()?;
        Ok(tree)
    }
}

fn commit(line: &str) -> Option<Commit> {
    let mut parts = line.splitn(3, '\t');
    let (id, parents, subject) = (parts.next()?, parts.next()?, parts.next()?);
    Some(Commit {
        id: id.to_owned(),
        subject: subject.to_owned(),
        is_merge: parents.split(' ').count() > 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let own = |words: &[&str]| git(folder.path()).args(words).succeed().unwrap();
        own(&["init", "-q", "-b", "main"]);
        for n in 0..5 {
            fs::write(folder.path().join("number"), n.to_string()).unwrap();
            fs::write(folder.path().join("same"), "always").unwrap();
            if n == 2 {
                fs::write(folder.path().join("gone-later"), "x").unwrap();
            } else {
                let _absent = fs::remove_file(folder.path().join("gone-later"));
            }
            own(&["add", "-A"]);
            own(&["commit", "-q", "-m", &format!("number {n}")]);
        }
        folder
    }

    #[test]
    fn commits_come_in_order_and_are_placed_without_touching_the_users_tree() {
        let (folder, room) = (repository(), tempfile::tempdir().unwrap());
        fs::write(folder.path().join("number"), "the user is at work").unwrap();
        let commits = Commits::open(folder.path()).unwrap();
        let all = commits.between("HEAD~3", "main").unwrap();
        let subjects: Vec<&str> = all.iter().map(|c| c.subject.as_str()).collect();
        assert_eq!(subjects, ["number 1", "number 2", "number 3", "number 4"]);
        let read = |name: &str| fs::read_to_string(room.path().join("tree").join(name)).ok();
        let time = || fs::metadata(room.path().join("tree/same")).unwrap().modified().unwrap();
        commits.place(&all[1].id, room.path()).unwrap();
        fs::write(room.path().join("tree/built"), "kept").unwrap();
        let before = time();
        assert_eq!(
            (read("number").as_deref(), read("gone-later").as_deref()),
            (Some("2"), Some("x"))
        );
        commits.place(&all[0].id, room.path()).unwrap();
        assert_eq!((read("number").as_deref(), read("gone-later")), (Some("1"), None));
        assert_eq!(read("built").as_deref(), Some("kept"));
        assert_eq!(time(), before, "a file that did not change keeps its time");
        let users = fs::read_to_string(folder.path().join("number")).unwrap();
        assert_eq!(users, "the user is at work");
        let state = git(folder.path()).args(["status", "--porcelain"]).succeed().unwrap();
        assert_eq!(state.trim(), "M number");
        let branches = git(folder.path()).args(["branch", "--list"]).succeed().unwrap();
        assert_eq!(branches.trim(), "* main");
    }

    #[test]
    fn what_is_no_order_of_commits_is_refused() {
        let (folder, none) = (repository(), tempfile::tempdir().unwrap());
        let commits = Commits::open(folder.path()).unwrap();
        for (good, bad, says) in [
            ("main", "HEAD~2", "does not come before"),
            ("main", "main", "does not come before"),
            ("nowhere", "main", "--good nowhere"),
            ("HEAD~1", "--all", "--bad --all"),
        ] {
            let e = commits.between(good, bad).unwrap_err();
            assert!(
                e.to_string().contains(says) && e.kind() == tailbound_core::FailureKind::Usage,
                "{e}"
            );
        }
        let none = Commits::open(none.path()).unwrap_err();
        assert!(none.to_string().contains("no git tree"), "{none}");
    }
}
