// SPDX-License-Identifier: MIT OR Apache-2.0
//! Other environments: an ordinary user, an empty root.

use tailbound_core::verdict::Outcome;

use crate::{folder, folder_for_everybody, is_root, read, skip, stderr};

#[test]
fn an_ordinary_user_measures_and_is_told_what_the_figures_mean() {
    if !is_root() {
        return skip("root", "becoming another user needs root");
    }
    let (folder, exe) = folder_for_everybody();
    // A small limit on locked memory, as most distributions give their users.
    let out = std::process::Command::new("prlimit")
        .args(["--memlock=8388608:8388608", "setpriv"])
        .args([
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "--inh-caps=-all",
            "--bounding-set=-all",
            "--",
        ])
        .arg(&exe)
        .args([
            "run",
            "-D",
            "1s",
            "-d",
            "10s",
            "-q",
            "-o",
            "r.tailbound.jsonl",
            "--load",
            "hackbench:groups=1",
        ])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(
        out.status.code().is_some_and(|c| c == 5 || c == 3),
        "{:?} {}",
        out.status,
        stderr(&out)
    );
    let run = read(&folder.path().join("r.tailbound.jsonl"));
    assert!(!run.header.plan.policy.is_realtime());
    let finding = run.findings.iter().find(|f| f.id == "not-realtime").expect("it says so");
    assert!(finding.remedy.contains("root"), "{finding:?}");
    assert!(run.findings.iter().any(|f| f.id == "not-locked"), "{:?}", run.findings);
    assert_ne!(run.verdict.unwrap().outcome, Outcome::Met, "never met without real-time priority");
    assert!(folder.path().join("r.html").exists());
}

/// Root in a user namespace, as in a rootless container: every capability, and the limit holds.
#[test]
fn roots_capabilities_in_a_user_namespace_lock_no_memory() {
    let folder = folder();
    let inside = ["--memlock=8388608:8388608", "unshare", "--user", "--map-root-user"];
    let tried = std::process::Command::new("prlimit").args(inside).arg("true").output();
    if !tried.is_ok_and(|o| o.status.success()) {
        return skip("ns", "user namespaces are not permitted here");
    }
    let out = std::process::Command::new("prlimit")
        .args(inside)
        .arg(env!("CARGO_BIN_EXE_tailbound"))
        .args(["measure", "cyclic", "-l", "200", "--policy", "other", "-q", "-o", "r.jsonl"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let run = read(&folder.path().join("r.jsonl"));
    // It was not even tried: where the limit is just enough for now, a later allocation would fail.
    let finding = run.findings.iter().find(|f| f.id == "not-locked");
    let said = finding.map(|f| f.title.clone()).unwrap_or_default();
    assert!(said.contains("RLIMIT_MEMLOCK is 8192 KiB"), "{:?}", run.findings);
}
