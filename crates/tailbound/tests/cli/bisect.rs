// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `bisect` refuses before anything is booted or built, and how it says so. Real kernels are the business of
//! `cargo xtask test lab`.

use std::process::Command;

use super::{call, folder, status, stderr};

fn refused(words: &[&str], expected: &[&str]) {
    let folder = folder();
    for (name, text) in [("one", "CONFIG_HZ=250\n"), ("same", "CONFIG_HZ=250\n")] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let output = call(folder.path(), &[&["bisect"], words].concat());
    let text = stderr(&output);
    assert_eq!(status(&output), 2, "{words:?}: {text}");
    for part in expected {
        assert!(text.contains(part), "{words:?}: no `{part}` in: {text}");
    }
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 2, "{words:?} left something");
}

#[test]
fn ends_that_do_not_differ_and_kernels_that_are_not_one_are_refused() {
    let on = ["append", "-k", "debian:6.12"];
    refused(&[&on[..], &["--good", "a b", "--bad", "b a"]].concat(), &["the same", "--bad"]);
    refused(&["append", "--bad", "a"], &["one --kernel", "debian:6.12-rt"]);
    refused(&[&on[..], &["-k", "debian:6.1", "--bad", "a"]].concat(), &["one --kernel"]);
    refused(&["kernels", "debian:6.12"], &["KERNEL"]);
    refused(&["kernels", "debian:6.1", "debian:6.12", "-k", "debian:6.1"], &["--kernel", "order"]);
    refused(&["config", "--source", ".", "--good", "one", "--bad", "same"], &["the same options"]);
}

#[test]
fn words_of_the_search_are_read_before_anything_boots() {
    let on = ["append", "-k", "debian:6.12", "--bad", "a"];
    for (flag, word, says) in [
        ("--measure", "mean", "p99.999"),
        ("--measure", "p100", "max, section"),
        ("--limit", "soon", "--limit"),
        ("--seeds", "0", "--seeds"),
        ("--bad-set", "nonsense", "SETTING=VALUE"),
        ("--policy", "fifo:200", "--policy"),
    ] {
        refused(&[&on[..], &[flag, word]].concat(), &[says]);
    }
    refused(&[&on[..], &["--kvm"]].concat(), &["--kvm", "answers nothing"]);
    refused(&[&on[..], &["--measure", "section", "--smp", "2"]].concat(), &["--smp 1"]);
    refused(&[&on[..], &["--tune", "cyclic", "--bad-set", "swappiness=9"]].concat(), &["--tune"]);
}

#[test]
fn a_tree_and_its_commits_are_looked_at_first() {
    let words = ["commits", "--good", "HEAD~1", "--bad", "HEAD", "--tree"];
    refused(&[&words[..], &["."]].concat(), &["--tree .", "no git tree"]);
    if Command::new("git").arg("--version").output().is_err() {
        tailbound_testing::skip("git", "there is no git");
        return;
    }
    let folder = folder();
    let git = |words: &[&str]| {
        let own = ["-c", "user.name=a", "-c", "user.email=a@localhost"];
        let made = Command::new("git").args(own).args(words).current_dir(folder.path()).output();
        assert!(made.unwrap().status.success(), "{words:?}");
    };
    git(&["init", "-q"]);
    git(&["commit", "-q", "--allow-empty", "-m", "first"]);
    git(&["commit", "-q", "--allow-empty", "-m", "second"]);
    let place = folder.path().display().to_string();
    for (good, bad, says) in
        [("HEAD", "HEAD~1", "does not come before"), ("HEAD~1", "nowhere", "--bad nowhere")]
    {
        refused(&["commits", "--tree", &place, "--good", good, "--bad", bad], &[says]);
    }
}
