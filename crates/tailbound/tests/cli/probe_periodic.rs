// SPDX-License-Identifier: MIT OR Apache-2.0
//! Work in periods: every period is accounted for, and one that was not served fails the run.

use crate::probe_clocks::{all_accounted, short};
use crate::{call, folder, is_root, skip, status, stderr};

fn root() -> bool {
    if !is_root() {
        skip("root", "real-time and deadline threads need root here");
    }
    is_root()
}

fn value(run: &tailbound_core::Run, name: &str) -> f64 {
    let found = run.figures.iter().find(|f| f.name == name).map(|f| f.value);
    found.unwrap_or_else(|| panic!("no figure {name}: {:?}", run.figures))
}

#[test]
fn deadline_threads_have_every_period_accounted_for() {
    if !root() {
        return;
    }
    let (status, run) =
        short("deadline", &["-p", "deadline:200us/2ms", "-i", "2ms", "-D", "1s", "--threads", "2"]);
    assert!(matches!(status, 0 | 1 | 5), "{status}");
    all_accounted(&run);
    let jobs: u64 = run
        .threads
        .iter()
        .filter(|t| t.context == tailbound_core::Context::Response)
        .map(|t| t.wakeup.n)
        .sum();
    let started: u64 = run
        .threads
        .iter()
        .filter(|t| t.context == tailbound_core::Context::User)
        .map(|t| t.wakeup.n)
        .sum();
    assert_eq!(jobs, started, "each start has its response");
}

#[test]
fn a_thread_that_wants_more_than_its_runtime_is_reported_by_the_kernel() {
    if !root() {
        return;
    }
    let (_, run) = short(
        "deadline",
        &["-p", "deadline:20ms/50ms", "-i", "50ms", "-D", "2s", "--threads", "1", "--busy", "1.5"],
    );
    all_accounted(&run);
    assert!(value(&run, "overruns") > 0.0, "SIGXCPU was counted, and did not end the run");
    assert!(value(&run, "deadlines-missed") > 0.0);
    assert_eq!(run.end.as_ref().map(|e| e.reason.as_str()), Some("complete"));
}

#[test]
fn a_deadline_thread_that_stalls_fails_the_run() {
    if !root() {
        return;
    }
    let words =
        ["-p", "deadline:200us/2ms", "-i", "2ms", "-D", "1s", "-d", "2ms", "--plant", "stall"];
    let (status, run) = short("deadline", &words);
    assert_eq!(status, 1);
    all_accounted(&run);
    assert!(value(&run, "periods-missed") > 0.0);
}

#[test]
fn what_the_kernel_would_not_admit_is_refused_with_the_sum() {
    if !root() {
        return;
    }
    let folder = folder();
    let words = ["measure", "deadline", "-p", "deadline:900us/1ms", "--threads", "60"];
    let out = call(folder.path(), &words);
    let said = stderr(&out);
    let unlimited = std::fs::read_to_string("/proc/sys/kernel/sched_rt_runtime_us")
        .is_ok_and(|t| t.trim() == "-1");
    if unlimited {
        return skip("", "this kernel admits everything (sched_rt_runtime_us is -1)");
    }
    assert!(status(&out) == 3 && said.contains("--threads"), "{said}");
    let out = call(folder.path(), &["measure", "deadline", "-i", "5ms"]);
    assert!(status(&out) == 2 && stderr(&out).contains("--interval"), "{}", stderr(&out));
}

#[test]
fn the_same_work_is_timed_and_more_of_it_is_seen() {
    if !root() {
        return;
    }
    let (status, run) = short("fixed-work", &["-i", "2ms", "-D", "1s"]);
    assert!(matches!(status, 0 | 5), "{status}");
    all_accounted(&run);
    assert!(value(&run, "work-least") > 0.0 && value(&run, "work-jitter") >= 0.0);
    let cpus = run.header.plan.cpus.len();
    assert_eq!(run.figures.iter().any(|f| f.name == "scaling"), cpus > 1);
    // Ten times 1 ms is more than the 4 ms that are allowed, on any machine.
    let (status, _) = short(
        "fixed-work",
        &[
            "-i", "2ms", "--amount", "1ms", "--tick", "0", "-D", "1s", "-d", "4ms", "--plant",
            "more",
        ],
    );
    assert_eq!(status, 1);
}

#[test]
fn a_task_that_is_not_done_within_its_period_fails_the_run() {
    if !root() {
        return;
    }
    let words = ["-i", "10ms", "-D", "2s", "--set", "1:10+2:10"];
    let (status, run) = short("periodic-load", &words);
    assert!(matches!(status, 0 | 1 | 5), "{status}");
    all_accounted(&run);
    assert!(run.threads.iter().any(|t| t.context == tailbound_core::Context::Task2));
    let planted: Vec<&str> = words.into_iter().chain(["--plant", "overrun"]).collect();
    let (status, run) = short("periodic-load", &planted);
    assert_eq!(status, 1);
    assert!(run.findings.iter().any(|f| f.id == "period-missed-2"), "{:?}", run.findings);
    let folder = folder();
    let out = call(folder.path(), &["measure", "periodic-load", "--set", "1:60+2:60"]);
    assert!(crate::status(&out) == 2 && stderr(&out).contains("120 %"), "{}", stderr(&out));
}
