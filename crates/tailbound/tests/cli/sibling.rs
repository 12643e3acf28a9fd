// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two programs are one tool: `tailbound` becomes `tailbound-server` for `serve`, `store` and `fleet`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use crate::{folder, status, stderr, stdout};

/// A copy of `tailbound` in the folder `bin` of `root`.
fn copied(root: &Path) -> std::path::PathBuf {
    let bin = root.join("bin");
    fs::create_dir(&bin).unwrap();
    let exe = bin.join("tailbound");
    tailbound_testing::copy_program(Path::new(env!("CARGO_BIN_EXE_tailbound")), &exe);
    exe
}

fn told(exe: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(exe);
    command.args(words).current_dir(exe.parent().unwrap());
    command.env("NO_COLOR", "1").env("PATH", "/nonexistent").output().unwrap()
}

#[test]
fn a_missing_server_is_named_with_the_way_to_get_it_and_its_help_is_there() {
    let root = folder();
    let exe = copied(root.path());
    for verb in [&["serve"][..], &["store", "ls"], &["fleet", "targets", "--on", "x.toml"]] {
        let out = told(&exe, verb);
        assert_eq!(status(&out), 3, "{}", stderr(&out));
        for word in [verb[0], "tailbound-server", "make server"] {
            assert!(stderr(&out).contains(word), "{}", stderr(&out));
        }
    }
    let help = told(&exe, &["serve", "--help"]);
    assert_eq!(status(&help), 0);
    assert!(stdout(&help).contains("--listen") && stdout(&help).contains("Usage: tailbound serve"));
    // Wrong words are told before the other program is looked for.
    assert_eq!(status(&told(&exe, &["store", "nonsense"])), 2);
}

#[test]
fn the_server_is_found_in_libexec_and_answers_in_the_name_of_the_tool() {
    let root = folder();
    let exe = copied(root.path());
    let libexec = root.path().join("libexec/tailbound");
    fs::create_dir_all(&libexec).unwrap();
    symlink(env!("CARGO_BIN_EXE_tailbound-server"), libexec.join("tailbound-server")).unwrap();
    let out = told(&exe, &["fleet", "targets", "--on", "missing.toml"]);
    assert_eq!(status(&out), 2, "{}", stderr(&out));
    assert!(stderr(&out).contains("tailbound: missing.toml"), "{}", stderr(&out));
    let out = told(&exe, &["serve", "token", "ls", "--store", "no-folder/x.sqlite"]);
    assert_ne!(status(&out), 0);
    assert!(stderr(&out).contains("no-folder"), "{}", stderr(&out));
}

#[test]
fn a_server_of_another_version_is_refused_with_both_versions() {
    let root = folder();
    let exe = copied(root.path());
    let other = exe.with_file_name("tailbound-server");
    for (script, word) in [
        ("#!/bin/sh\necho tailbound-server 9.8.7\n", "9.8.7"),
        ("#!/bin/sh\nexit 1\n", "does not say its version"),
    ] {
        tailbound_testing::write_script(&other, script);
        let out = told(&exe, &["store", "ls"]);
        assert_eq!(status(&out), 3, "{}", stderr(&out));
        assert!(stderr(&out).contains(word), "{}", stderr(&out));
    }
}

#[test]
fn the_server_alone_has_its_three_verbs() {
    let call = |words: &[&str]| told(Path::new(env!("CARGO_BIN_EXE_tailbound-server")), words);
    let version = stdout(&call(&["--version"]));
    let first = concat!("tailbound-server ", env!("CARGO_PKG_VERSION"));
    assert_eq!(version.lines().next(), Some(first));
    for what in ["commit: ", "target: ", "features: agent, guest, lab, server"] {
        assert!(version.lines().any(|line| line.starts_with(what)), "{version}");
    }
    assert_eq!(stdout(&call(&["-V"])).trim(), first);
    // Of both the same but for the name, and the short form is one line.
    let tool = |word: &str| stdout(&told(Path::new(env!("CARGO_BIN_EXE_tailbound")), &[word]));
    assert_eq!(tool("--version"), version.replacen("tailbound-server", "tailbound", 1));
    assert_eq!(tool("-V"), concat!("tailbound ", env!("CARGO_PKG_VERSION"), "\n"));
    // In one line each: what they say of themselves is what the tool says of them.
    let words: String = stdout(&call(&["--help"])).split_whitespace().collect::<Vec<_>>().join(" ");
    let tool = tailbound::command();
    for verb in ["serve", "store", "fleet"] {
        let about = tool.find_subcommand(verb).and_then(clap::Command::get_about);
        let line = format!(" {verb} {} ", about.expect("what it does"));
        assert!(words.contains(&line), "{line}: {words}");
    }
    assert_eq!(status(&call(&["run"])), 2);
}
