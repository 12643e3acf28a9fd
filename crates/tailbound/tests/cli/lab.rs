// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `lab` refuses before anything is booted, and how it says so. Real kernels are the
//! business of `cargo xtask test lab`.

use std::path::Path;

use super::{call, folder, status, stderr};

/// Says a version like QEMU and does nothing else.
fn emulator(folder: &Path) -> String {
    let path = folder.join("qemu");
    tailbound_testing::write_script(&path, "#!/bin/sh\necho 'QEMU emulator version 99.1'\n");
    path.display().to_string()
}

fn refused(words: &[&str], exit: i32, expected: &[&str]) {
    let folder = folder();
    let qemu = emulator(folder.path());
    let all = [&["lab"], words, &["--qemu", &qemu]].concat();
    let output = call(folder.path(), &all);
    let text = stderr(&output);
    assert_eq!(status(&output), exit, "{words:?}: {text}");
    for part in expected {
        assert!(text.contains(part), "{words:?}: no `{part}` in: {text}");
    }
}

#[test]
fn words_that_cannot_be_are_refused_with_what_can() {
    refused(&["run"], 2, &["no kernel", "debian:6.12-rt"]);
    refused(&["run", "-k", "nonsense"], 2, &["nonsense", "debian:", "path:", "build:"]);
    refused(&["run", "-k", "path:/nowhere/vmlinuz"], 2, &["/nowhere/vmlinuz"]);
    refused(&["run", "-k", "debian:6.12", "--machine", "toaster"], 2, &["toaster", "pc"]);
    refused(&["run", "-k", "debian:6.12", "--arch", "vax"], 2, &["vax", "aarch64"]);
    refused(&["run", "-t", "/nowhere.toml"], 2, &["/nowhere.toml"]);
    refused(&["matrix", "/nowhere.toml"], 2, &["/nowhere.toml"]);
    let two = ["matrix", "-k", "debian:6.12", "-L", "none cpu", "--svg", "survival=x.svg"];
    refused(&two, 2, &["--svg", "one load", "--loads"]);
    refused(&["matrix", "-k", "debian:6.12", "--svg", "pie=x.svg"], 2, &["histogram=FILE"]);
}

#[test]
fn what_cannot_be_watched_is_refused_before_anything_boots() {
    let paths = ["paths", "-k", "debian:6.12-rt"];
    for (words, says) in [
        (&["--kvm"][..], "--kvm"),
        (&["--smp", "2"], "--cpus 1"),
        (&["--smp", "2", "--cpus", "1", "--theory"], "--smp 1"),
        (&["--smp", "2", "--cpus", "1", "--arch", "aarch64"], "--smp 1"),
    ] {
        refused(&[&paths, words].concat(), 2, &[says]);
    }
}

#[test]
fn slices_that_cannot_be_are_refused_before_anything_boots() {
    let run = ["run", "-k", "debian:6.12-rt", "--slice"];
    for (words, exit, says) in [
        (&["1500ns", "--smp", "2"][..], 2, "whole number of microseconds"),
        (&["soon", "--smp", "2"], 2, "--slice soon"),
    ] {
        refused(&[&run, words].concat(), exit, &[says, "off"]);
    }
}

#[test]
fn a_qemu_that_was_not_fetched_is_reported_with_how_to_fetch_it() {
    let folder = folder();
    let lab = |words: &[&str]| {
        let mut command = super::tailbound();
        command.args(["lab"]).args(words).current_dir(folder.path());
        command.env("TAILBOUND_LAB", folder.path().join("store"));
        command.output().unwrap()
    };
    let asked = lab(&["run", "-k", "path:/nowhere", "--qemu", "10.0"]);
    assert_eq!(status(&asked), 2, "{}", stderr(&asked));
    assert!(stderr(&asked).contains("tailbound lab qemu fetch"), "{}", stderr(&asked));
    let removed = lab(&["qemu", "rm", "10"]);
    assert_eq!(status(&removed), 2, "{}", stderr(&removed));
    let suite = lab(&["qemu", "fetch", "--suite", "../x"]);
    // On a machine without apt that comes first.
    assert!([2, 3].contains(&status(&suite)), "{}", stderr(&suite));
    let listed = lab(&["qemu", "ls", "--json"]);
    assert_eq!(status(&listed), 0, "{}", stderr(&listed));
    let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(listed["fetched"], serde_json::json!([]));
}

#[test]
fn options_of_the_measurement_are_those_of_run_and_are_read_before_anything_boots() {
    let wrong = [
        ("--class", "foo"),
        ("--until", "soon"),
        ("--policy", "fifo:200"),
        ("--tasks", "0"),
        ("--interval", "5x"),
        ("--timer-slack", "1"),
        ("--probe", "sginal"),
    ];
    for (flag, word) in wrong {
        refused(&["run", "-k", "debian:6.12-rt", flag, word], 2, &[flag]);
    }
}

#[test]
fn a_matrix_file_says_where_it_is_wrong() {
    let folder = folder();
    let path = folder.path().join("m.toml");
    std::fs::write(&path, "kernels = [\"debian:6.12\"]\nlaods = [\"none\"]\n").unwrap();
    refused(&["matrix", &path.display().to_string()], 2, &["m.toml", "line 2", "laods"]);
}

#[test]
fn what_is_no_emulator_is_reported() {
    let folder = folder();
    let words = ["lab", "run", "-k", "path:/etc/hostname", "--qemu", "/bin/true"];
    let output = call(folder.path(), &words);
    assert_eq!(status(&output), 3);
    assert!(stderr(&output).contains("is it QEMU?"), "{}", stderr(&output));
}

#[test]
fn a_run_of_this_machine_cannot_be_repeated_in_the_lab() {
    let folder = folder();
    let measured = call(
        folder.path(),
        &[
            "measure",
            "cyclic",
            "-l",
            "20",
            "--warm-up",
            "1ms",
            "--policy",
            "other",
            "-q",
            "-o",
            "here.jsonl",
        ],
    );
    assert!([0, 3].contains(&status(&measured)), "{}", stderr(&measured));
    let path = folder.path().join("here.jsonl").display().to_string();
    refused(&["repeat", &path], 2, &["was not made in the lab"]);
}

#[test]
fn programs_of_the_current_folder_are_never_run() {
    let folder = folder();
    for name in ["qemu-system-x86_64", "apt-get", "apt-cache", "dpkg-deb"] {
        let path = folder.path().join(name);
        tailbound_testing::write_script(&path, "#!/bin/sh\necho ran >> \"${0%/*}/ran\"\n");
    }
    for path in [None, Some(""), Some("."), Some(":bin")] {
        let mut command = super::tailbound();
        command.args(["lab", "run", "-k", "path:/nowhere/vmlinuz"]).current_dir(folder.path());
        command.env("TAILBOUND_LAB", folder.path().join("store")).env_remove("PATH");
        command.envs(path.map(|p| ("PATH", p)));
        let output = command.output().unwrap();
        assert_ne!(status(&output), 0, "{}", stderr(&output));
        assert!(!folder.path().join("ran").exists(), "PATH={path:?}");
    }
}

#[test]
fn a_store_of_somebody_else_is_not_roots() {
    if !super::is_root() {
        return super::skip("root", "only root can give a folder to somebody else");
    }
    let folder = folder();
    let home = folder.path().join("home");
    std::fs::create_dir_all(home.join(".cache/tailbound/lab")).unwrap();
    std::os::unix::fs::chown(&home, Some(65534), Some(65534)).unwrap();
    let list = |name: &str, value: &Path| {
        let mut command = super::tailbound();
        command.args(["lab", "kernel", "list", "--local"]).current_dir(folder.path());
        command.env_remove("TAILBOUND_LAB").env_remove("XDG_CACHE_HOME").env(name, value);
        command.output().unwrap()
    };
    for (name, value) in
        [("TAILBOUND_LAB", home.join("x")), ("XDG_CACHE_HOME", home.join(".cache"))]
    {
        let output = list(name, &value);
        let text = stderr(&output);
        assert_eq!(status(&output), 3, "{text}");
        assert!(text.contains("belongs to user 65534") && text.contains("TAILBOUND_LAB"), "{text}");
    }
    // HOME as sudo may leave it: root's own home is taken instead.
    let output = list("HOME", &home);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    assert!(!home.join(".cache/tailbound/lab/kernels").exists());
}

#[test]
fn what_is_missing_or_wrong_is_reported_before_anything_is_fetched() {
    let folder = folder();
    let qemu = emulator(folder.path());
    let there = folder.path().join("there.jsonl");
    std::fs::write(&there, "").unwrap();
    let cases: [(&[&str], i32, &str); 4] = [
        (&["--arch", "arm"], 3, "no tailbound for arm"),
        (&["-o", "there.jsonl"], 2, "exists already"),
        (&["--memory", "4000000000"], 2, "--memory"),
        (&["--machine", "pc,dumpdtb=/etc/passwd"], 2, "dumpdtb"),
    ];
    for (more, exit, says) in cases {
        let mut command = super::tailbound();
        command.args(["lab", "run", "-k", "debian:6.12", "--qemu", &qemu]).args(more);
        command.current_dir(folder.path()).env("TAILBOUND_LAB", folder.path().join("store"));
        let output = command.output().unwrap();
        let text = stderr(&output);
        assert!(status(&output) == exit && text.contains(says), "{more:?}: {text}");
        assert!(!folder.path().join("store/apt").exists(), "{more:?}: apt was asked");
    }
}

#[test]
fn the_cache_says_what_it_holds_and_what_is_damaged() {
    let folder = folder();
    let store = folder.path().join("store");
    let snapshot = store.join("snapshots/0123");
    std::fs::create_dir_all(&snapshot).unwrap();
    std::fs::write(snapshot.join("state"), vec![1; 2 << 20]).unwrap();
    let cache = |more: &[&str]| {
        let mut command = super::tailbound();
        command.args(["lab", "cache"]).args(more).env("TAILBOUND_LAB", &store);
        command.output().unwrap()
    };
    let said = |output: &std::process::Output| super::stdout(output);
    let listed = cache(&["--json"]);
    assert_eq!(status(&listed), 0, "{}", stderr(&listed));
    assert!(said(&listed).contains("snapshots") && said(&listed).contains("0123"));
    let damaged = cache(&["--verify"]);
    assert!(status(&damaged) == 1 && said(&damaged).contains("damaged: "), "{}", said(&damaged));
    assert_eq!(status(&cache(&["--prune", "--max-size", "1"])), 2);
    let kept = cache(&["--prune", "--max-size", "1G", "--max-age", "1d"]);
    assert!(status(&kept) == 0 && snapshot.exists(), "{}", stderr(&kept));
    let cleared = cache(&["--clear"]);
    assert!(status(&cleared) == 0 && !snapshot.exists(), "{}", stderr(&cleared));
}
