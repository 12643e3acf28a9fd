// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `lab` refuses before anything is booted, and how it says so. Real kernels are the
//! business of `cargo xtask test lab`.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::{call, folder, status, stderr};

/// Says a version like QEMU and does nothing else.
fn emulator(folder: &Path) -> String {
    let path = folder.join("qemu");
    std::fs::write(&path, "#!/bin/sh\necho 'QEMU emulator version 99.1'\n").unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
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
fn a_matrix_file_says_where_it_is_wrong() {
    let folder = folder();
    let path = folder.path().join("m.toml");
    std::fs::write(&path, "kernels = [\"debian:6.12\"]\nlaods = [\"none\"]\n").unwrap();
    refused(&["matrix", &path.display().to_string()], 2, &["m.toml", "line 2", "laods"]);
}

#[test]
fn what_is_no_emulator_is_said() {
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
