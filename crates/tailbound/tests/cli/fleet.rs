// SPDX-License-Identifier: MIT OR Apache-2.0
//! fleet: a campaign on this machine as a target; what is refused. By ssh: tailbound-fleet/tests/engines.rs;
//! by Slurm and labgrid: tests/engines.

use serde_json::Value;

use crate::{call, folder, status, stderr, stdout};

const TARGETS: &str =
    "[[target]]\nname = \"desk\"\nengine = \"local\"\ntags = [\"here\"]\ncpus = \"0\"\n";
const CAMPAIGN: &str = r#"
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
