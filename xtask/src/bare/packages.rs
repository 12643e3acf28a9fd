// SPDX-License-Identifier: MIT OR Apache-2.0
//! `scripts/deps` where a mirror lacks a package, and where one cannot be installed: the others are, and it says which are not.
//!
//! The apt-get here is a stand-in that notes its words; nothing is installed.

use std::fs;
use std::path::Path;

use crate::{exec, root};

/// Notes what it is to install, and cannot install several together, nor strace.
const APT_GET: &str = r#"[ "$1" = update ] && exit 0
echo "$*" >>"$NOTES"
case "$*" in *strace*) echo "E: broken" >&2; exit 100 ;; esac"#;

fn stand_in(folder: &Path, name: &str, script: &str) {
    tailbound_testing::write_script(&folder.join(name), &format!("#!/bin/sh\n{script}\n"));
}

#[test]
fn a_package_that_cannot_be_had_keeps_no_other_out() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for name in ["bash", "env", "uname", "mktemp", "rm", "tail", "chmod"] {
        let found = ["/usr/bin", "/bin"].map(|dir| Path::new(dir).join(name));
        let found = found.iter().find(|path| path.exists()).unwrap();
        std::os::unix::fs::symlink(found, at.join(name)).unwrap();
    }
    stand_in(at, "id", "echo 0");
    stand_in(at, "cargo", "");
    // One that ends before it has read its source ends who writes it (SIGPIPE).
    stand_in(at, "cc", "while read -r _; do :; done");
    stand_in(at, "systemctl", "");
    stand_in(at, "apt-get", APT_GET);
    stand_in(at, "apt-cache", r#"for last; do :; done; [ "$last" != jitterdebugger ]"#);
    let mut deps = exec::command(root::project().unwrap().join("scripts/deps"));
    deps.arg("bench").env("PATH", at).env("NOTES", at.join("notes"));
    deps.env("POLICY_RC_D", at.join("policy")).current_dir(at);
    let said = exec::output(&mut deps).unwrap();
    let warnings = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(said.status.success(), "{warnings}");
    assert!(warnings.contains("no source of apt-get has jitterdebugger"), "{warnings}");
    assert!(warnings.contains("could not install strace"), "{warnings}");
    let notes = fs::read_to_string(at.join("notes")).unwrap();
    let last = |word: &str| notes.lines().any(|line| line.ends_with(&format!("recommends {word}")));
    assert!(last("rt-tests") && last("qemu-system-x86"), "{notes}");
    assert!(!notes.contains("jitterdebugger"), "{notes}");
    assert!(!at.join("policy").exists(), "what keeps services from starting is left behind");
}
