// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probes that never sleep: each window is accounted for, and what is planted is found: a
//! thief of the CPU, a drain that stands still, a gap that no kernel knows of.

use std::path::Path;
use std::process::Output;

use tailbound_core::Impact;
use tailbound_core::Run;
use tailbound_core::record::ThreadRecord;

use crate::{call, folder, is_root, read, skip, status, stderr};

/// One run on CPU 0.
fn measure(folder: &Path, words: &[&str]) -> (Output, Run) {
    let all = [words, &["-q", "-a", "0", "--warm-up", "100ms", "-o", "run.jsonl"]].concat();
    let out = call(folder, &[&["measure"], all.as_slice()].concat());
    let run = read(&folder.join("run.jsonl"));
    std::fs::remove_file(folder.join("run.jsonl")).unwrap();
    (out, run)
}

fn record<'r>(run: &'r Run, context: &str) -> &'r ThreadRecord {
    run.threads
        .iter()
        .find(|t| t.context.as_str() == context)
        .unwrap_or_else(|| panic!("no {context}"))
}

fn figure(run: &Run, name: &str) -> f64 {
    run.figures.iter().find(|f| f.name == name).unwrap_or_else(|| panic!("no {name}")).value
}

fn whole(run: &Run) {
    let user = record(run, "user");
    assert_eq!(user.wakeup.n + user.missed.n, run.header.plan.activations);
}

#[test]
fn every_window_is_accounted_for_and_every_gap_has_a_taker() {
    let folder = folder();
    let (out, run) = measure(folder.path(), &["busy", "-D", "1s"]);
    assert_eq!(status(&out), 0, "{}", stderr(&out));
    whole(&run);
    let (gap, outside) = (record(&run, "gap"), record(&run, "outside"));
    assert!(gap.wakeup.n >= outside.wakeup.n);
    // A machine with a timer interrupt has gaps, a loop turns, and the rest of the time is quiet.
    assert!(gap.wakeup.n > 0 && figure(&run, "turn-cpu0") > 0.0);
    assert!(figure(&run, "quiet-longest-cpu0") > 0.0 && figure(&run, "polled-cpu0") <= 100.0);
    let frequency = run.figures.iter().find(|f| f.name == "counter-frequency").unwrap();
    assert!(frequency.low < Some(frequency.value) && Some(frequency.value) < frequency.high);
    // The worst gap is the worst of some window.
    assert!(record(&run, "user").wakeup.max_ns >= gap.wakeup.max_ns);
}

#[test]
fn a_thief_of_the_cpu_is_found() {
    if !is_root() {
        return skip("root", "only root may run a real-time thread");
    }
    let folder = folder();
    let (out, run) =
        measure(folder.path(), &["busy", "-D", "1s", "-d", "4900us", "--plant", "thief"]);
    assert_eq!(status(&out), 1, "{}", stderr(&out));
    whole(&run);
    // Each theft is one gap, in which another task ran. There are ten a second; on a busy machine
    // the loop may not have the CPU at the time, and then nothing is stolen from it.
    let stolen = record(&run, "gap").wakeup.late.buckets().filter(|b| b.low_ns >= 4_900_000);
    assert!(stolen.map(|b| b.count).sum::<u64>() >= 1);
    assert!(figure(&run, "noise-tasks-longest-cpu0") >= 4_900_000.0);
    assert!(figure(&run, "noise-tasks-cpu0") > 0.4, "one theft is half a per cent");
}

#[test]
fn a_real_time_loop_rests_or_is_refused() {
    if !is_root() {
        return skip("root", "only root may run a real-time thread");
    }
    let folder = folder();
    let (out, run) = measure(folder.path(), &["busy", "-D", "1s", "-p", "fifo:10"]);
    assert_eq!(status(&out), 0, "{}", stderr(&out));
    whole(&run);
    assert!(figure(&run, "polled-cpu0") <= 91.0, "the rest is for others");
    let runtime = std::fs::read_to_string("/proc/sys/kernel/sched_rt_runtime_us");
    if runtime.is_ok_and(|r| r.trim() != "-1") {
        for words in [
            &["busy", "--duty", "100"][..],
            &["queue"],
            &["hwlat", "--with", "polling", "--duty", "100"],
        ] {
            let all = [&["measure"], words, &["-D", "1s", "-p", "fifo:10", "-q"]].concat();
            let out = call(folder.path(), &all);
            assert_eq!(status(&out), 3, "{words:?}: {}", stderr(&out));
            assert!(stderr(&out).contains("sched_rt_runtime_us"), "{}", stderr(&out));
        }
    }
}

#[test]
fn a_drain_that_stands_still_loses_packets() {
    let folder = folder();
    let shallow = ["queue", "-D", "1s", "--depth", "500", "--plant", "stall"];
    let (out, run) = measure(folder.path(), &shallow);
    assert_eq!(status(&out), 1, "{}", stderr(&out));
    whole(&run);
    assert!(run.findings.iter().any(|f| f.impact == Impact::Violation));
    // Each standstill of 20 ms brings 2,000 packets, and 500 have room.
    assert!(figure(&run, "lost-cpu0") >= 1500.0 && figure(&run, "queue-longest-cpu0") >= 1990.0);
    // As much as came, no more and no less.
    let all = figure(&run, "packets-cpu0") + figure(&run, "lost-cpu0");
    assert!(all >= 99_000.0, "{all}");
    // A queue that holds all that the machine can do to it loses nothing, and that is a verdict.
    let deep = ["queue", "-D", "1s", "--depth", "4000000000"];
    let (out, run) = measure(folder.path(), &deep);
    // What a shared host does to the figures may cast doubt, but no packet is lost by it.
    assert!([0, 5].contains(&status(&out)), "{}", stderr(&out));
    assert_eq!(figure(&run, "lost-cpu0"), 0.0);
    assert!(status(&out) == 5 || run.verdict.unwrap().sentence.contains("no packet was lost"));
}

#[test]
fn the_highest_rate_is_found_with_its_evidence_or_not_claimed() {
    let folder = folder();
    let words = ["queue", "-D", "4s", "--max-rate", "yes", "--depth", "1000000", "--pps", "100000"];
    let (_, run) = measure(folder.path(), &words);
    whole(&run);
    let found = run.figures.iter().find(|f| f.name == "rate-highest-cpu0");
    let said = run.findings.iter().any(|f| f.id == "rate-not-confirmed-0");
    assert!(found.is_some() != said, "a rate, or why there is none");
    if let Some(rate) = found {
        assert!(rate.value >= 1.0 && rate.note.contains("trials"), "{rate:?}");
        let often = run.figures.iter().find(|f| f.name.starts_with("rate-highest-lossy")).unwrap();
        assert!(often.high.is_some_and(|h| h > 0.0 && h <= 95.1) && often.confidence == Some(0.95));
    }
}

#[test]
fn what_no_kernel_knows_of_is_found() {
    let folder = folder();
    let words = ["hwlat", "-D", "2s", "--with", "polling", "-d", "290us", "--plant", "gap"];
    let (out, run) = measure(folder.path(), &words);
    whole(&run);
    assert!(run.findings.iter().any(|f| f.id == "duty-cycle-0" && f.title.contains('%')));
    let means = run.findings.iter().find(|f| f.id == "hwlat-means").unwrap();
    if !means.meaning.contains("register") {
        return skip("entries", "this CPU does not tell whether its kernel was entered");
    }
    // Forty standstills of 300 us; a timer interrupt falls into few of them.
    assert!(record(&run, "outside").wakeup.max_ns >= Some(290_000));
    assert_eq!(status(&out), 1, "{}", stderr(&out));
}

#[test]
fn a_tracer_that_is_not_there_is_refused_by_name() {
    let folder = folder();
    let out = call(folder.path(), &["measure", "hwlat", "-q", "-D", "1s", "--with", "tracer"]);
    if status(&out) != 3 {
        assert_eq!(status(&out), 0, "{}", stderr(&out));
        return;
    }
    assert!(stderr(&out).contains("--with polling"), "{}", stderr(&out));
}
