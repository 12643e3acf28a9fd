// SPDX-License-Identifier: MIT OR Apache-2.0
//! Clocks that go back are found, and what reading them costs is told of each.

use tailbound_core::Run;
use tailbound_core::runfile::read_run;

use crate::{call, call_admitted, folder, status, stderr};

/// A short run of a probe, its exit status and file.
pub(crate) fn short(probe: &str, words: &[&str]) -> (i32, Run) {
    let folder = folder();
    let mut all = vec!["measure", probe, "--warm-up", "100ms", "-q", "-o", "-"];
    all.extend(words);
    let out = call_admitted(folder.path(), &all);
    let run = read_run(out.stdout.as_slice());
    (status(&out), run.unwrap_or_else(|e| panic!("{words:?}: {e}: {}", stderr(&out))))
}

/// Of each judged record slot, every due event is accounted for.
pub(crate) fn all_accounted(run: &Run) {
    let user: Vec<_> =
        run.threads.iter().filter(|t| t.context == tailbound_core::Context::User).collect();
    assert!(!user.is_empty());
    for t in user {
        assert_eq!(t.wakeup.n + t.missed.n, run.header.plan.activations, "thread {}", t.thread);
    }
    assert!(run.verdict.is_some() && run.end.is_some());
}

#[test]
fn every_clock_has_its_cost_and_none_of_a_sound_machine_goes_back() {
    let (status, run) = short("clocks", &["-i", "500us", "-D", "1s"]);
    all_accounted(&run);
    assert!(run.threads.iter().all(|t| t.missed.n == 0), "a pair is read however late");
    assert!(matches!(status, 0 | 5), "{status}: {:?}", run.findings);
    let figure = |name: &str| run.figures.iter().find(|f| f.name == name).map(|f| f.value);
    for clock in ["monotonic", "realtime", "thread-cpu", "gettimeofday", "time", "counter"] {
        for part in ["p50", "p99", "max"] {
            let name = format!("read-{clock}-{part}");
            assert!(figure(&name).is_some_and(|v| v >= 0.0), "{name}");
        }
    }
    assert!(figure("realtime-drift").is_some());
    let off = figure("thread-clocks-off");
    let unknown = run.findings.iter().any(|f| f.id == "thread-clocks-unknown");
    assert!(off.is_some() || unknown, "known, or said to be unknown");
}

#[test]
fn a_clock_that_goes_back_fails_the_run() {
    let (status, run) = short("clocks", &["-i", "200us", "-D", "1s", "--plant", "backward"]);
    assert_eq!(status, 1, "{:?}", run.findings);
    assert!(run.findings.iter().any(|f| f.id == "clock-back-monotonic"));
    all_accounted(&run);
}

#[test]
fn each_clock_can_be_judged() {
    for clock in ["monotonic-raw", "boottime", "gettimeofday", "thread-cpu", "process-cpu"] {
        let (status, run) = short("clocks", &["-l", "200", "--of", clock, "-d", "10s"]);
        assert!(matches!(status, 0 | 5), "{clock}: {status}");
        all_accounted(&run);
    }
    let folder = folder();
    let out = call(folder.path(), &["measure", "clocks", "--of", "sundial"]);
    assert!(status(&out) == 2 && stderr(&out).contains("monotonic"), "{}", stderr(&out));
}

#[test]
fn a_sweep_has_a_row_an_interval_and_its_picture() {
    let folder = folder();
    let words = [
        "measure",
        "sweep",
        "--from",
        "500us",
        "--to",
        "5ms",
        "--steps",
        "3",
        "-D",
        "100ms",
        "--warm-up",
        "10ms",
        "-q",
        "--json",
        "--report",
        "s.html",
        "--svg",
        "s.svg",
        "-o",
        "runs",
    ];
    let out = call(folder.path(), &words);
    assert_eq!(status(&out), 0, "{}", stderr(&out));
    let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let steps = json["steps"].as_array().unwrap();
    let intervals: Vec<i64> = steps.iter().filter_map(|s| s["interval_ns"].as_i64()).collect();
    assert_eq!(intervals, [500_000, 1_581_000, 5_000_000]);
    for step in steps {
        assert!(step["even"]["n"].as_u64() > Some(0) && step["random"]["n"].as_u64() > Some(0));
    }
    assert_eq!(std::fs::read_dir(folder.path().join("runs")).unwrap().count(), 6);
    for file in ["s.html", "s.svg"] {
        let text = std::fs::read_to_string(folder.path().join(file)).unwrap();
        assert!(text.contains("<svg") && text.contains("p50, random"), "{file}");
    }
    for wrong in [["--steps", "1"], ["-i", "1ms"], ["--to", "1us"]] {
        let words = [&["measure", "sweep"], wrong.as_slice()].concat();
        assert_eq!(status(&call(folder.path(), &words)), 2, "{wrong:?}");
    }
}
