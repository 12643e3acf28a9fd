// SPDX-License-Identifier: MIT OR Apache-2.0
//! fleet: a campaign on this machine as a target; what is refused. By ssh: tailbound-fleet/tests/engines.rs;
//! by Slurm and labgrid: tests/engines.

use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::{LOCK_FOLDER, folder, read, status, stderr, stdout, tailbound};

pub(crate) const TARGETS: &str =
    "[[target]]\nname = \"desk\"\nengine = \"local\"\ntags = [\"here\"]\ncpus = \"0\"\n";
pub(crate) const CAMPAIGN: &str = r#"
name = "short"
[text]
title = "A short one"
authors = ["Nobody"]
year = 2026
published = "nowhere"
machine = "any"
about = "One short run."
[[system]]
id = "any"
name = "any"
kind = "stock"
[[step]]
id = "short"
title = "Short"
told = "short"
ours = "the same"
[step.run]
loops = 200
interval = "1ms"
"#;

/// On a machine whose lock is in the test's folder.
fn call(at: &Path, words: &[&str]) -> Output {
    tailbound().args(words).env(LOCK_FOLDER, at).current_dir(at).output().unwrap()
}

#[test]
fn a_campaign_is_run_resumed_and_told_by_line() {
    let folder = folder();
    let at = folder.path();
    std::fs::write(at.join("targets.toml"), TARGETS).unwrap();
    std::fs::write(at.join("short.toml"), CAMPAIGN).unwrap();
    let words = ["fleet", "run", "short.toml", "--on", "targets.toml", "-o", "out", "--yes"];
    let ktap = |more: &[&str]| call(at, &[&words[..], more].concat());
    let first = ktap(&["--format", "ktap"]);
    assert_eq!(status(&first), 0, "{}", stderr(&first));
    assert_eq!(stdout(&first), "KTAP version 1\n1..1\nok 1 desk.short\n");
    let run = at.join("out/desk/desk/short.tailbound.jsonl");
    let before = std::fs::read(&run).unwrap();
    let again = ktap(&["--json"]);
    assert_eq!(status(&again), 0, "{}", stderr(&again));
    let told: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(told["runs"][0]["complete"], true, "{told}");
    assert!(std::fs::read(&run).unwrap() == before, "it was measured twice");
    // Runs of another campaign are not mixed with these, nor such of another length.
    std::fs::write(at.join("short.toml"), CAMPAIGN.replace("loops = 200", "loops = 300")).unwrap();
    let other = ktap(&[]);
    assert_eq!(status(&other), 2, "{}", stderr(&other));
    assert!(stderr(&other).contains("another campaign"), "{}", stderr(&other));
    std::fs::write(at.join("short.toml"), CAMPAIGN).unwrap();
    let other = ktap(&["--scale", "0.5"]);
    assert_eq!(status(&other), 3, "{}", stderr(&other));
    assert!(stderr(&other).contains("another --scale"), "{}", stderr(&other));
    assert!(std::fs::read(&run).unwrap() == before);
}

#[test]
fn a_run_that_leaves_no_file_is_told_with_its_last_words() {
    let folder = folder();
    let at = folder.path();
    std::fs::write(
        at.join("targets.toml"),
        "[[target]]\nname = \"board\"\nengine = \"lab\"\nkernel = \"path:no-such-kernel\"\n",
    )
    .unwrap();
    std::fs::write(at.join("short.toml"), CAMPAIGN).unwrap();
    let out = call(
        at,
        &["fleet", "run", "short.toml", "--on", "targets.toml", "-o", "out", "-q", "--yes"],
    );
    assert_eq!(status(&out), 3, "{}", stderr(&out));
    let told = stdout(&out);
    assert!(told.contains("there is no run file: ") && told.contains("no-such-kernel"), "{told}");
}

#[test]
fn a_wrong_file_of_targets_is_told_where() {
    let folder = folder();
    let at = folder.path();
    for (text, told) in [
        ("", "target"),
        ("[[target]]\nname = \"a\"\nengine = \"carrier pigeon\"\n", "carrier pigeon"),
        ("[[target]]\nname = \"../a\"\nengine = \"local\"\n", "../a"),
        ("[[target]]\nname = \"a\"\nengine = \"ssh\"\n", "host"),
        (
            "[[target]]\nname = \"a\"\nengine = \"local\"\n[[target]]\nname = \"a\"\nengine = \"local\"\n",
            "a",
        ),
    ] {
        std::fs::write(at.join("t.toml"), text).unwrap();
        let out = call(at, &["fleet", "targets", "--on", "t.toml"]);
        assert_eq!(status(&out), 2, "{text}: {}", stderr(&out));
        assert!(
            stderr(&out).contains("t.toml") && stderr(&out).contains(told),
            "{text}: {}",
            stderr(&out)
        );
    }
    std::fs::write(at.join("t.toml"), TARGETS).unwrap();
    let out = call(at, &["fleet", "targets", "--on", "t.toml", "--target", "there"]);
    assert_eq!(status(&out), 2, "{}", stderr(&out));
}

/// Instants of a run: as it was told, and when its first activation fell due, both as its file says them.
fn begun(file: &Path) -> (String, i64) {
    let run = read(file);
    let event = |name: &str| run.events.iter().find(|e| e.event == name).map(|e| e.text.clone());
    let at = event("begin-at").unwrap_or_else(|| panic!("{:?}", run.events));
    (at, event("clock-start").unwrap().parse().unwrap())
}

#[test]
fn aligned_runs_begin_at_one_instant_on_all_machines() {
    let folder = folder();
    let at = folder.path();
    // The same machine twice, so that one clock tells whether it was one instant; with a lock for each way.
    let other = at.join("other");
    std::fs::create_dir(&other).unwrap();
    let lock = format!("SetEnv {LOCK_FOLDER}={}\n", other.display());
    let Some((_server, config)) = crate::sshd::begin(at, &lock) else { return };
    let board = format!(
        "[[target]]\nname = \"board\"\nengine = \"ssh\"\nhost = \"board\"\ncpus = \"0\"\nconfig = \"{}\"\n",
        config.display()
    );
    std::fs::write(at.join("targets.toml"), format!("{TARGETS}{board}")).unwrap();
    std::fs::write(at.join("short.toml"), format!("{CAMPAIGN}load = [\"none\"]\n")).unwrap();
    let words =
        ["fleet", "run", "short.toml", "--on", "targets.toml", "-o", "out", "--yes", "--aligned"];
    let mut out = call(at, &[&words[..], &["--json"]].concat());
    if stdout(&out).contains("not ready in time") {
        // A machine that is very busy.
        std::fs::remove_dir_all(at.join("out")).unwrap();
        let patient = ["-o", "out", "--yes", "--aligned=2min", "--json"];
        out = call(at, &[&words[..5], &patient].concat());
    }
    let sum = std::process::Command::new("sha256sum")
        .arg(env!("CARGO_BIN_EXE_tailbound"))
        .output()
        .unwrap();
    let sum = stdout(&sum);
    let placed =
        format!("{}/.cache/tailbound/{}", std::env::var("HOME").unwrap(), sum.get(..64).unwrap());
    std::fs::remove_dir_all(&placed).unwrap();
    assert_eq!(status(&out), 0, "{}\n{}", stdout(&out), stderr(&out));
    let told: Value = serde_json::from_slice(&out.stdout).unwrap();
    let all = told["runs"].as_array().unwrap();
    let begins: Vec<i64> =
        all.iter().map(|r| r["aligned"]["begins_ns"].as_i64().unwrap()).collect();
    assert!(begins.len() == 2 && begins[0] == begins[1], "{told}");
    let [desk, board] = ["desk", "board"].map(|name| {
        let row = all.iter().find(|r| r["target"] == name).unwrap();
        let begun = begun(&at.join(format!("out/{name}/{name}/short.tailbound.jsonl")));
        let note = at.join(format!("out/.fleet/{name}/short.aligned.json"));
        let note: Value = serde_json::from_str(&std::fs::read_to_string(note).unwrap()).unwrap();
        assert_eq!(note, row["aligned"]);
        let at_ns = note["begins_there_ns"].as_i64().unwrap();
        let words = format!("{}.{:09} s", at_ns / 1_000_000_000, at_ns % 1_000_000_000);
        assert!(begun.0.starts_with(&words), "{begun:?} {note}");
        (begun.1, note["error_ns"].as_i64().unwrap())
    });
    assert!(desk.1 == 0 && board.1 > 0, "{told}");
    // Each conversion of the clock has an error of its own, of the time between two readings of it.
    let apart = (desk.0 - board.0).abs();
    assert!(apart <= board.1 + 5_000_000, "{apart} ns apart, and said to be {} at most", board.1);
    // What is there and what is not would not have begun together.
    std::fs::remove_file(at.join("out/board/board/short.tailbound.jsonl")).unwrap();
    let out = call(at, &words);
    assert_eq!(status(&out), 2, "{}", stderr(&out));
    assert!(stderr(&out).contains("short of desk is there"), "{}", stderr(&out));
    let lab = "[[target]]\nname = \"lab\"\nengine = \"lab\"\nkernel = \"debian:6.12\"\n";
    std::fs::write(at.join("targets.toml"), format!("{TARGETS}{lab}")).unwrap();
    let out = call(at, &words);
    assert_eq!(status(&out), 2, "{}", stderr(&out));
    assert!(stderr(&out).contains("`lab` has no clock"), "{}", stderr(&out));
}
