// SPDX-License-Identifier: MIT OR Apache-2.0
//! Benchmarks, and the choice between two systems: from a real run to the recommendation.

use serde_json::Value;

use crate::{call, folder, read, status, stderr, stdout};

const PAPER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/mckenney-2008.toml");

fn a_run(folder: &std::path::Path, name: &str) {
    let words = [
        "run",
        "-l",
        "300",
        "-q",
        "-o",
        name,
        "--warm-up",
        "10ms",
        "--load",
        "none",
        "--work",
        "arithmetic:loops=500,messages:groups=1,fds=4,loops=50",
        "--work",
        "cmd:exit 0",
        "--repeat",
        "2",
        "--deadline",
        "10s",
    ];
    let out = call(folder, &words);
    let text = stdout(&out);
    assert!(text.contains("Benchmarks") && text.contains("mean"), "{text}{}", stderr(&out));
}

#[test]
fn benchmarks_are_timed_after_the_measurement_and_two_sides_are_decided_by_them() {
    let folder = folder();
    for name in ["a.jsonl", "b.jsonl"] {
        a_run(folder.path(), name);
    }
    let run = read(&folder.path().join("a.jsonl"));
    let specs: Vec<(&str, u32)> =
        run.benchmarks.iter().map(|w| (w.work.as_str(), w.repetition)).collect();
    // In turn, not one after the other.
    let turns = [1, 2].into_iter().flat_map(|n| ["arithmetic", "messages", "cmd"].map(|w| (w, n)));
    assert_eq!(specs, turns.collect::<Vec<_>>());
    assert!(run.benchmarks.iter().all(|w| w.failed.is_none() && w.real_ns > 0));
    assert!(run.verdict.is_some() && run.end.is_some());

    let out = call(folder.path(), &["decide", "a.jsonl", "b.jsonl"]);
    assert_eq!(status(&out), 2);
    assert!(stderr(&out).contains("--real FILES --fast FILES"), "{}", stderr(&out));

    let words = [
        "decide",
        "--real",
        "a.jsonl",
        "--fast",
        "b.jsonl",
        "--unit-length",
        "1ms",
        "--json",
        "--out",
        "c.html",
    ];
    let out = call(folder.path(), &words);
    let json: Value = serde_json::from_str(&stdout(&out)).unwrap();
    assert_eq!(json["schema"], "tailbound-decide/1");
    assert_eq!(json["choice"]["works"].as_array().map(Vec::len), Some(3));
    let steps = json["choice"]["path"]["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 6);
    assert_eq!(steps.first().map(|s| &s["known"]["answer"]), Some(&Value::from("no")));
    let page = std::fs::read_to_string(folder.path().join("c.html")).unwrap();
    assert!(page.contains("real-fast advantage") && page.contains("Total delay"));

    let every = [
        "decide",
        "--real",
        "a.jsonl",
        "--fast",
        "b.jsonl",
        "--unit-length",
        "1ms",
        "--utilisation",
        "20%",
        "--memory-full",
        "no",
        "--virtualised",
        "no",
    ];
    let out = call(folder.path(), &every);
    assert_eq!(status(&out), 0, "{}", stderr(&out));
    // Both sides are this machine: which of them looks faster is chance, that an answer comes is not.
    assert!(stdout(&out).starts_with("Recommendation: real "), "{}", stdout(&out));
    let svg = call(folder.path(), &[&every[..], &["--svg", "delay-1"]].concat());
    assert!(stdout(&svg).contains("</svg>"));
    let none = call(folder.path(), &[&every[..], &["--svg", "sleepers"]].concat());
    assert!(status(&none) == 2 && stderr(&none).contains("there is flow"), "{}", stderr(&none));
}

#[test]
fn the_published_figures_give_the_published_advantage() {
    let folder = folder();
    let out = call(folder.path(), &["decide", "--published", PAPER, "--throughput-only", "no"]);
    let text = stdout(&out);
    assert_eq!(status(&out), 5, "four questions are open: {}", stderr(&out));
    assert!(text.contains("+16.8 %") && text.contains("break-even"), "{text}");
    let out = call(folder.path(), &["decide", "--published", PAPER, "--throughput-only", "yes"]);
    assert_eq!(status(&out), 0);
    assert!(stdout(&out).starts_with("Recommendation: real fast."), "{}", stdout(&out));
    for (words, hint) in [
        (&["decide"][..], "no run was given"),
        (&["decide", "--published", PAPER, "--utilisation", "lots"], "80%"),
        (&["decide", "--published", PAPER, "--unit-length", "5"], "--unit-length"),
        (&["decide", "--published", "/nonexistent"], "/nonexistent"),
    ] {
        let out = call(folder.path(), words);
        assert_eq!(status(&out), 2, "{words:?}");
        assert!(stderr(&out).contains(hint), "{words:?}: {}", stderr(&out));
    }
}

#[test]
fn sleepers_are_not_pinned_and_each_is_accounted_for() {
    let folder = folder();
    let words = ["decide", "sleepers", "--tasks", "1,3", "-l", "100", "--out", "s", "-q", "--json"];
    let out = call(folder.path(), &words);
    assert_eq!(status(&out), 0, "{}", stderr(&out));
    let json: Value = serde_json::from_str(&stdout(&out)).unwrap();
    let n: Vec<Option<u64>> = json["sleepers"]
        .as_array()
        .map(|all| all.iter().map(|s| s["n"].as_u64()).collect())
        .unwrap_or_default();
    assert_eq!(n, [Some(100), Some(300)]);
    let run = read(&folder.path().join("s/sleepers-3.tailbound.jsonl"));
    assert_eq!(run.header.plan.tasks, Some(3));
    assert!(run.threads.len() == 3 && run.threads.iter().all(|t| t.cpu.is_none()));
    let out = call(folder.path(), &["run", "--tasks", "0", "--load", "none"]);
    assert!(status(&out) == 2 && stderr(&out).contains("--tasks"));
}

#[test]
fn a_bare_benchmark_is_printed_and_a_failing_one_reported() {
    let folder = folder();
    let out = call(folder.path(), &["measure", "work", "arithmetic:loops=200", "-q", "--json"]);
    assert_eq!(status(&out), 0, "{}", stderr(&out));
    let json: Value = serde_json::from_str(&stdout(&out)).unwrap();
    assert_eq!(json["works"][0]["real"]["n"], 3);
    let out = call(folder.path(), &["measure", "work", "cmd:exit 7", "-q", "--repeat", "1"]);
    assert_eq!(status(&out), 3);
    assert!(stdout(&out).contains("exit status 7"), "{}", stdout(&out));
    let out = call(folder.path(), &["lab", "run", "-k", "debian:6.12", "--work", "compile"]);
    assert!(status(&out) == 2 || status(&out) == 3, "{}", stderr(&out));
}
