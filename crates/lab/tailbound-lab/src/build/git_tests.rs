// SPDX-License-Identifier: MIT OR Apache-2.0
//! A tiny repository with a series of its own: what applies, what conflicts, and that the
//! user's branch is never touched.

use std::fs;
use std::path::Path;

use super::*;
use crate::build::series;

fn user(folder: &Path, args: &[&str]) -> String {
    Tool::new("git")
        .args(["-c", "user.name=user", "-c", "user.email=user@example", "-C"])
        .arg(folder)
        .args(args)
        .succeed()
        .expect("git")
}

fn write(folder: &Path, name: &str, text: &str) {
    fs::write(folder.join(name), text).expect("written");
}

/// `main` with a series of two commits; `next` changed what the second one changes.
fn repository(folder: &Path) {
    fs::create_dir_all(folder).expect("made");
    user(folder, &["init", "-q", "-b", "main"]);
    write(folder, "a", "one\ntwo\nthree\n");
    write(folder, "b", "bee\n");
    user(folder, &["add", "."]);
    user(folder, &["commit", "-q", "-m", "base"]);
    user(folder, &["branch", "next"]);
    write(folder, "b", "BEE\n");
    user(folder, &["commit", "-q", "-am", "b loud"]);
    write(folder, "a", "one\nTWO\nthree\n");
    user(folder, &["commit", "-q", "-am", "two loud"]);
    user(folder, &["checkout", "-q", "next"]);
    write(folder, "a", "one\n2\nthree\n");
    user(folder, &["commit", "-q", "-am", "two as a number"]);
    user(folder, &["checkout", "-q", "main"]);
}

#[test]
fn a_series_is_rebased_beside_the_users_branch() {
    if Tool::new("git").arg("--version").run().is_err() {
        return tailbound_testing::skip("git", "there is no git");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (repo, work) = (folder.path().join("repo"), folder.path().join("work"));
    fs::create_dir(&work).expect("made");
    repository(&repo);
    let before = user(&repo, &["rev-parse", "main", "next"]);
    let tree = Worktree::make(&repo, &work, "t").expect("a work tree");
    write(folder.path(), "plain.patch", "--- a/b\n+++ b/b\n@@ -1 +1,2 @@\n BEE\n+more\n");
    write(folder.path(), "bad.patch", "--- a/b\n+++ b/b\n@@ -1 +1,2 @@\n WASP\n+more\n");
    let names = ["plain.patch", "bad.patch"].map(|n| folder.path().join(n).display().to_string());
    let patches = series::gather(&names, None, &work.join("patches")).expect("patches");
    let tried = tree.apply(&patches).expect("applied");
    assert!(tried[0].conflicts.is_empty());
    assert_eq!(tried[1].conflicts, ["b: the hunk for line 1 fails"]);
    let (tried, records) = tree.rebase("next").expect("rebased");
    let result: Vec<&[String]> = tried.iter().map(|t| t.conflicts.as_slice()).collect();
    assert_eq!(result[0], [] as [String; 0]);
    assert_eq!(result[1], ["a: at line 2".to_owned()]);
    assert_eq!(result[2], [] as [String; 0]);
    assert_eq!(records.len(), 3);
    let text = series::judge(&tried, "next").unwrap_err().to_string();
    assert!(text.contains("two loud conflicts:\n      a: at line 2"), "{text}");
    // What applied is on our branch; the user's branches and files are as they were.
    assert_eq!(fs::read_to_string(tree.folder.join("b")).expect("read"), "BEE\nmore\n");
    assert_eq!(fs::read_to_string(tree.folder.join("a")).expect("read"), "one\n2\nthree\n");
    assert_eq!(user(&repo, &["rev-parse", "main", "next"]), before);
    assert_eq!(user(&repo, &["status", "--porcelain"]), "");
    let tip = tree.tip().expect("tip");
    // Again: made anew, to the same commit.
    let again = Worktree::make(&repo, &work, "t").expect("again");
    again.apply(&patches[..1]).expect("applied");
    again.rebase("next").expect("rebased");
    assert_eq!(again.tip().expect("tip"), tip, "commits are reproducible");
    assert!(again.rebase("no-such").unwrap_err().to_string().contains("no commit `no-such`"));
    // A branch that the user went on with is not thrown away.
    write(&again.folder, "mine", "x");
    user(&again.folder, &["add", "."]);
    user(&again.folder, &["commit", "-q", "-m", "mine"]);
    let e = Worktree::make(&repo, &work, "t").unwrap_err();
    assert!(
        e.kind() == tailbound_core::FailureKind::Usage
            && e.to_string().contains("not as tailbound left it"),
        "{e}"
    );
    // What is on the other side already is not a conflict.
    user(&repo, &["checkout", "-q", "next"]);
    user(&repo, &["cherry-pick", "main~1"]);
    user(&repo, &["checkout", "-q", "main"]);
    let other = Worktree::make(&repo, &work, "u").expect("another");
    let (tried, _) = other.rebase("next").expect("rebased");
    assert!(tried[0].already && !tried[1].already, "{tried:?}");
}
