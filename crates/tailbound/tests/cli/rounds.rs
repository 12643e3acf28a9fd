// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rounds: made in turn, resumed, compared; and what is refused before anything starts.

use std::path::Path;

use crate::{call, folder, read, status, stderr, stdout};

const SHORT: [&str; 11] =
    ["run", "-D", "200ms", "--warm-up", "0s", "-L", "none", "-p", "other", "-a", "0"];

fn rounds(folder: &Path, n: &str, more: &[&str]) -> std::process::Output {
    let mut words = SHORT.to_vec();
    words.extend(["--rounds", n, "--out", "r", "--seed", "7"]);
    words.extend(more);
    words.extend(["--", "plain:", "slow: -i 2ms"]);
    call(folder, &words)
}

#[test]
fn rounds_are_runs_in_turn_that_go_on_and_are_compared() {
    let folder = folder();
    let out = rounds(folder.path(), "6", &["--json"]);
    assert!([0, 1].contains(&status(&out)), "{}", stderr(&out));
    let json: serde_json::Value = serde_json::from_str(&stdout(&out)).unwrap();
    assert_eq!(json["design"], "rounds");
    assert_eq!(json["systems"][0]["name"], "plain", "the first variant is the reference");
    assert_eq!(json["systems"][1]["units"], 6);
    assert!(json["differences"][0]["features"][0]["ratio"]["simultaneous"].is_array(), "{json}");
    let first = folder.path().join("r/001-plain.tailbound.jsonl");
    let run = read(&first);
    let place = run.header.round.unwrap();
    assert_eq!((place.variant.as_str(), place.round, place.rounds, place.seed), ("plain", 0, 6, 7));
    let slow = read(&folder.path().join("r/006-slow.tailbound.jsonl"));
    assert_eq!(slow.header.plan.interval_ns, 2_000_000);
    let orders: Vec<u32> = (1..=6)
        .map(|i| read(&folder.path().join(format!("r/{i:03}-plain.tailbound.jsonl"))))
        .map(|r| r.header.round.unwrap().place)
        .collect();
    assert!(orders.contains(&0) && orders.contains(&1), "the order varies: {orders:?}");

    // A lost run is made again, a longer series goes on; what is there stays as it is.
    let before = std::fs::read(&first).unwrap();
    std::fs::remove_file(folder.path().join("r/003-slow.tailbound.jsonl")).unwrap();
    let out = rounds(folder.path(), "7", &[]);
    assert!([0, 1].contains(&status(&out)), "{}", stderr(&out));
    assert!(stderr(&out).contains("11 of the runs are there already"), "{}", stderr(&out));
    assert_eq!(std::fs::read(&first).unwrap(), before);
    assert!(stdout(&out).contains("7 rounds") && stdout(&out).contains("verdict"));
    assert!(folder.path().join("r/compare.html").exists());

    let again = call(folder.path(), &["compare", "r", "--margin", "900%", "--require-equivalent"]);
    // Shown to be alike, or not shown, or shown to differ: two short series on a busy machine.
    assert!([0, 1, 5].contains(&status(&again)), "{}", stderr(&again));
    let svg = call(folder.path(), &["compare", "r", "--svg", "shift"]);
    assert!(stdout(&svg).starts_with("<?xml"), "{}", stderr(&svg));

    let other = call(
        folder.path(),
        &[&SHORT[..], &["--rounds", "7", "--out", "r", "--", "plain:", "slow: -i 3ms"]].concat(),
    );
    assert_eq!(status(&other), 2);
    assert!(stderr(&other).contains("other variants"), "{}", stderr(&other));
}

#[test]
fn every_variant_is_checked_before_anything_starts() {
    let folder = folder();
    let cases: [(&[&str], &[&str], &str); 9] = [
        (&["--rounds", "3"], &["plain:"], "two or more variants"),
        (&["--rounds", "3"], &["plain:", "noflags"], "NAME: FLAGS"),
        (&["--rounds", "3"], &["a:", "a: -i 2ms"], "two variants are called"),
        (&["--rounds", "3"], &["a:", "b: --nosuch"], "variant `b`"),
        (&["--rounds", "3"], &["a:", "b: -i 2"], "has no unit"),
        (&["--rounds", "3"], &["a:", "b: --load 'hackbench"], "not closed"),
        (&["--rounds", "0"], &["a:", "b:"], "1 or more"),
        (&["--rounds", "3", "--margin", "5"], &["a:", "b:"], "percentage"),
        (&[], &["a:", "b:"], "only with --rounds"),
    ];
    for (flags, variants, hint) in cases {
        let mut words = SHORT.to_vec();
        words.extend(flags);
        words.extend(["--out", "r", "--"]);
        words.extend(variants);
        let out = call(folder.path(), &words);
        assert_eq!(status(&out), 2, "{variants:?}: {}", stderr(&out));
        assert!(stderr(&out).contains(hint), "{variants:?}: {}", stderr(&out));
        assert!(!folder.path().join("r").exists(), "{variants:?}");
    }
}

#[test]
fn what_cannot_be_compared_is_reported() {
    let folder = folder();
    let one = [&SHORT[..], &["--out", "a.tailbound.jsonl", "--report", "a.html"]].concat();
    assert_eq!(status(&call(folder.path(), &one)), 0);
    let alone = call(folder.path(), &["compare", "a.tailbound.jsonl"]);
    assert_eq!(status(&alone), 2);
    assert!(stderr(&alone).contains("two files or folders"), "{}", stderr(&alone));
    let twice = ["compare", "a.tailbound.jsonl", "a.tailbound.jsonl"];
    let out = call(folder.path(), &twice);
    assert_eq!(status(&out), 5, "no statement is possible, which is no pass");
    assert!(
        stdout(&out).contains("no intervals") || stdout(&out).contains("no"),
        "{}",
        stdout(&out)
    );
    let strict = call(folder.path(), &[&twice[..], &["--require-equivalent"]].concat());
    assert_eq!(status(&strict), 5, "nothing was shown");
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    let empty = call(folder.path(), &["compare", "empty"]);
    assert_eq!(status(&empty), 2);
    assert!(stderr(&empty).contains("no run files"), "{}", stderr(&empty));
}

#[test]
fn runs_that_their_rule_ended_are_kept_and_compared() {
    let folder = folder();
    // A deadline that nothing keeps: the rule ends each run long before its minute.
    let make = || {
        let words = [
            "run",
            "--until",
            "demonstrated",
            "-d",
            "1us",
            "--rate",
            "1/20s",
            "--warm-up",
            "0s",
            "-L",
            "none",
            "-p",
            "other",
            "-a",
            "0",
            "--rounds",
            "1",
            "--out",
            "r",
            "--",
            "plain:",
            "slow: -i 2ms",
        ];
        call(folder.path(), &words)
    };
    let out = make();
    let file = folder.path().join("r/001-slow.tailbound.jsonl");
    assert!(file.exists() && !stderr(&out).contains("round 1: "), "{}", stderr(&out));
    assert_eq!(read(&file).end.unwrap().reason, tailbound_core::EndReason::Rule);
    assert!(stdout(&out).contains("plain") && stdout(&out).contains("slow"), "{}", stderr(&out));
    let before = std::fs::read(&file).unwrap();
    let err = stderr(&out);
    let (short, begun) = (err.find("take 6 rounds"), err.find("1 rounds of 2 variants"));
    assert!(short.is_some() && short < begun, "said before anything is made: {err}");
    let again = make();
    assert!(stderr(&again).contains("2 of the runs are there already"), "{}", stderr(&again));
    assert_eq!(std::fs::read(&file).unwrap(), before);
}

/// A folder that somebody sent: its names are no paths, its numbers no loops.
#[test]
fn a_received_folder_makes_nothing_go_outside_it() {
    let folder = folder();
    let precious = folder.path().join("precious.tailbound.jsonl");
    std::fs::write(&precious, "precious").unwrap();
    let series = folder.path().join("r");
    std::fs::create_dir_all(series.join("001-x")).unwrap();
    let described = |name: &str, rounds: &str| {
        let text = format!(
            "{{\"schema\": \"tailbound-rounds/1\", \"series\": \"a\", \"seed\": 7, \"rounds\": {rounds}, \
             \"variants\": [{{\"name\": \"{name}\", \"words\": [], \"plan\": null}}]}}"
        );
        std::fs::write(series.join("rounds.json"), text).unwrap();
    };
    for (name, count) in [
        ("x/../../precious", "1"),
        ("plain", "18446744073709551615"),
        ("plain", "4294967296"),
        ("..", "1"),
    ] {
        described(name, count);
        let begun = std::time::Instant::now();
        for words in [&["--force"][..], &[]] {
            let out = rounds(folder.path(), "6", words);
            assert_eq!(status(&out), 2, "{name} {count}: {}", stderr(&out));
            assert!(stderr(&out).contains("rounds.json"), "{}", stderr(&out));
        }
        assert!(begun.elapsed().as_secs() < 60, "nothing is counted to {count}");
        assert_eq!(std::fs::read_to_string(&precious).unwrap(), "precious");
    }
    // Of a good folder its own run files go, and nothing else.
    described("plain", "2");
    for name in ["002-plain", "003-plain", "002-other"] {
        std::fs::write(series.join(format!("{name}.tailbound.jsonl")), "x").unwrap();
    }
    std::os::unix::fs::symlink(&precious, series.join("001-plain.tailbound.jsonl")).unwrap();
    std::os::unix::fs::symlink(&precious, series.join("compare.html")).unwrap();
    let out = rounds(folder.path(), "6", &["--force"]);
    assert_eq!(status(&out), 2, "a page is not written through a link: {}", stderr(&out));
    assert!(stderr(&out).contains("symbolic link"), "{}", stderr(&out));
    std::fs::remove_file(series.join("compare.html")).unwrap();
    for name in ["003-plain", "002-other"] {
        assert!(series.join(format!("{name}.tailbound.jsonl")).exists(), "{name}");
        std::fs::remove_file(series.join(format!("{name}.tailbound.jsonl"))).unwrap();
    }
    let out = rounds(folder.path(), "6", &["--force"]);
    assert!(!series.join("001-plain.tailbound.jsonl").is_symlink(), "{}", stderr(&out));
    assert_eq!(std::fs::read_to_string(&precious).unwrap(), "precious");
}
