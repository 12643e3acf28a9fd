// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads with phases beside a measurement, benchmarks and their steadiness, and nonsense refused.

use crate::{call, folder, read, status, stderr, stdout};

#[test]
fn a_load_begins_and_pauses_by_the_clock_of_the_measurement() {
    let folder = folder();
    let words = [
        "run",
        "-D",
        "5s",
        "--warm-up",
        "0s",
        "-i",
        "10ms",
        "-p",
        "other",
        "-a",
        "0",
        "-o",
        "r.jsonl",
        "-L",
        "clock",
        "-L",
        "syscalls:cpus=0,from=1s,for=1s,every=2s",
    ];
    let out = call(folder.path(), &words);
    assert!(status(&out) <= 1 || status(&out) == 5, "{}", stderr(&out));
    let run = read(&folder.path().join("r.jsonl"));
    let of = |kind: &str| -> Vec<i64> {
        let all = run.events.iter().filter(|e| e.event == kind);
        all.inspect(|e| assert!(e.text.starts_with("syscalls:"), "{}", e.text))
            .map(|e| e.t_ns)
            .collect()
    };
    let (began, paused) = (of("load-began"), of("load-paused"));
    // Never outside its phases, 1 to 2 and 3 to 4 s; a phase that a stalled machine passed over is told.
    let is_on = |t_ns: i64| [1, 3].contains(&(t_ns / 1_000_000_000));
    assert!(began.iter().all(|t_ns| is_on(*t_ns)), "{began:?}");
    assert!(paused.iter().all(|t_ns| !is_on(*t_ns)), "{paused:?}");
    assert!(began.len() <= 2 && paused.len() <= began.len(), "{:?}", run.events);
    let told = run.findings.iter().any(|f| f.id == "load-late");
    assert!(told || began.len() == 2, "{:?}", run.events);
    let done =
        |load: u32| -> u64 { run.loads.iter().filter(|l| l.load == load).map(|l| l.count).sum() };
    assert!(done(0) > 0 && (began.is_empty() || done(1) > 0), "{:?}", run.loads);
    assert!(run.loads.iter().filter(|l| l.load == 1).all(|l| l.t_ns > 1_000_000_000));
    // Standing still for a while, and a supervisor that comes late, are what a busy machine does.
    let wrong = ["load-failed", "load-idle", "load-ended"];
    assert!(!run.findings.iter().any(|f| wrong.contains(&f.id.as_str())), "{:?}", run.findings);
}

#[test]
fn a_phase_that_never_came_casts_doubt() {
    let folder = folder();
    let words = [
        "run",
        "-D",
        "200ms",
        "--warm-up",
        "0s",
        "-p",
        "other",
        "-a",
        "0",
        "-o",
        "r.jsonl",
        "-L",
        "clock:from=1h",
    ];
    call(folder.path(), &words);
    let run = read(&folder.path().join("r.jsonl"));
    let idle = run.findings.iter().find(|f| f.id == "load-idle");
    assert!(idle.is_some_and(|f| f.title.contains("never began")), "{:?}", run.findings);
}

#[test]
fn invalid_loads_and_benchmarks_are_refused() {
    let folder = folder();
    let refused = |words: &[&str], what: &str| {
        let out = call(folder.path(), words);
        assert_eq!(status(&out), 2, "{words:?}: {}", stderr(&out));
        assert!(stderr(&out).contains(what), "{words:?}: {}", stderr(&out));
    };
    refused(&["run", "-D", "1s", "-L", "cpu:every=1s"], "for=");
    refused(&["run", "-D", "1s", "-L", "interrupts:kind=nmi"], "ipi");
    refused(&["load", "stress-ng"], "--stressors");
    refused(&["load", "dsk"], "disk");
    refused(&["measure", "work", "pipe:ipc=inet"], "this benchmark is ipc=pipe");
    refused(&["measure", "work", "syscall:from=1s"], "phases are for loads");
}

#[test]
fn benchmarks_report_their_rate_per_second_and_its_deviation() {
    let folder = folder();
    let words = [
        "measure",
        "work",
        "syscall:cpus=0,loops=4000000",
        "pipe:pairs=1,loops=3",
        "--repeat",
        "2",
        "--json",
    ];
    let out = call(folder.path(), &words);
    assert_eq!(status(&out), 0, "{}", stderr(&out));
    let json: serde_json::Value = serde_json::from_str(&stdout(&out)).unwrap();
    let [calls, trips] = [&json["works"][0], &json["works"][1]];
    assert_eq!(calls["repetitions"][1]["count"], 4_000_000);
    let told: u64 = calls["repetitions"][0]["intervals"]
        .as_array()
        .unwrap()
        .iter()
        .map(|i| i["count"].as_u64().unwrap())
        .sum();
    assert_eq!(told, 4_000_000, "raw counts are kept");
    let whole = calls["repetitions"].as_array().unwrap().iter();
    let whole = whole.map(|r| r["intervals"].as_array().unwrap().len().saturating_sub(2)).max();
    if whole >= Some(2) {
        assert!(calls["a_second"]["mean"].as_f64() > Some(0.0), "{calls}");
        assert!(calls["a_second"]["sd"].as_f64() >= Some(0.0), "{calls}");
    }
    // Three round trips are no rate over time, and that is no zero.
    assert!(trips["a_second"].is_null(), "{trips}");
}
