// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a measurement must hold on any machine, however late it is.

use tailbound_core::Run;
use tailbound_core::runfile::{read_run, unpack_raw};
use tailbound_core::verdict::Outcome;

use crate::{call, call_admitted, folder, is_root, read, skip, status, stderr, stdout};

/// Every means of Linux itself.
const MEANS: [&str; 10] = [
    "nanosleep",
    "nanosleep-relative",
    "timerfd",
    "posix-timer",
    "itimer",
    "nanosleep-plain",
    "usleep",
    "poll",
    "select",
    "epoll",
];

/// A short bare measurement as a run.
fn measure(words: &[&str]) -> Run {
    let folder = folder();
    let mut all = vec!["measure", "cyclic", "--warm-up", "20ms", "-q", "-o", "-"];
    all.extend(words);
    let out = call_admitted(folder.path(), &all);
    assert_eq!(status(&out), 0, "{words:?}: {}", stderr(&out));
    read_run(out.stdout.as_slice()).unwrap()
}

/// Every invariant that ties the records of a run together.
fn check(run: &Run) {
    let plan = &run.header.plan;
    assert!(!run.threads.is_empty());
    for t in &run.threads {
        let (w, m) = (&t.wakeup, &t.missed);
        assert_eq!(
            w.n + m.n,
            plan.activations,
            "thread {}: every due activation is accounted for",
            t.thread
        );
        assert_eq!(w.late.total() + w.early.total(), w.n, "every wake-up has a bucket");
        assert_eq!(m.late.total(), m.n, "every missed activation has a bucket");
        assert_eq!(w.sums.unwrap().n, w.n);
        assert_eq!(m.sums.unwrap().n, m.n);
        let seconds: Vec<_> = run.seconds.iter().filter(|s| s.thread == t.thread).collect();
        assert_eq!(seconds.iter().map(|s| s.n).sum::<u64>(), w.n, "the seconds add up");
        assert_eq!(seconds.iter().map(|s| s.missed).sum::<u64>(), m.n, "the seconds add up");
        assert_eq!(
            seconds.iter().map(|s| s.max_ns).max(),
            w.max_ns,
            "the latest second has the latest"
        );
        assert_eq!(seconds.iter().map(|s| s.min_ns).min(), w.min_ns);
        assert_eq!(seconds.iter().map(|s| i128::from(s.sum_ns)).sum::<i128>(), w.sums.unwrap().s1);
        assert_eq!(t.ended, "complete");
        let warm = t.warm_up.as_ref().unwrap();
        assert_eq!(
            i64::try_from(warm.n + warm.missed).unwrap(),
            plan.warm_up_ns / plan.interval_ns,
            "the warm-up is reported"
        );
    }
    let end = run.end.as_ref().unwrap();
    assert_eq!((end.reason.as_str(), end.measured_ns), ("complete", plan.duration_ns()));
    assert!(run.self_cost.contains_key("clock_read_ns") && run.self_cost.contains_key("record_ns"));
    assert!(run.header.machine.contains_key("kernel.release"), "{:?}", run.header.machine.keys());
    assert!(run.verdict.is_some());
}

#[test]
fn the_records_of_a_run_agree_with_each_other() {
    let run = measure(&["-i", "250us", "-D", "2500ms"]);
    check(&run);
    assert!(run.threads.iter().all(|t| t.cpu.is_some()), "pinned");
    assert!(run.windows.iter().any(|w| w.window_s == 1), "moving statistics are written");
}

#[test]
fn what_persons_state_is_in_the_run_file() {
    let run = measure(&["-l", "20", "--title", "Axis", "--operator", "é", "--requirement", "R-1"]);
    let purpose = run.header.purpose.as_deref().expect("a purpose");
    let stated = [&purpose.title, &purpose.operator, &purpose.requirement];
    assert_eq!(stated.map(|s| s.as_deref()), [Some("Axis"), Some("é"), Some("R-1")]);
    assert_eq!(measure(&["-l", "20"]).header.purpose, None);
}

#[test]
fn every_means_on_every_clock_keeps_the_schedule_or_says_why_not() {
    for means in MEANS {
        for clock in ["monotonic", "tai", "boottime", "realtime"] {
            let folder = folder();
            let mut words = vec![
                "measure",
                "cyclic",
                "--warm-up",
                "10ms",
                "-q",
                "-o",
                "-",
                "-i",
                "500us",
                "-l",
                "200",
                "--sleep",
                means,
                "--clock",
                clock,
            ];
            if means == "itimer" {
                // A process has one.
                words.extend(["-a", "0"]);
            }
            let out = call(folder.path(), &words);
            if status(&out) == 3 {
                // timerfd does not know CLOCK_TAI: a refusal, with the call that refused.
                assert!(
                    clock == "tai" && stderr(&out).contains("timerfd_create"),
                    "{means} {clock}: {}",
                    stderr(&out)
                );
                continue;
            }
            assert_eq!(status(&out), 0, "{means} {clock}: {}", stderr(&out));
            let run = read_run(out.stdout.as_slice()).unwrap();
            check(&run);
            if clock != "realtime" {
                let early: u64 = run.threads.iter().map(|t| t.wakeup.early.total()).sum();
                assert_eq!(early, 0, "{means} {clock}: a stale expiration was taken for a wake-up");
            }
        }
    }
}

#[test]
fn random_intervals_keep_an_absolute_schedule_and_account_for_every_activation() {
    let run = measure(&["-i", "300us", "-l", "2000", "--interval-spread", "80%:9"]);
    check(&run);
    let spread = run.header.plan.spread.unwrap();
    assert!((spread.share - 0.8).abs() < 1e-9 && spread.seed == 9);
    let early: u64 = run.threads.iter().map(|t| t.wakeup.early.total()).sum();
    assert_eq!(early, 0, "due times are those of the spread schedule");
    check(&measure(&["-i", "20us", "-l", "20000", "--interval-spread", "90%"]));
    let folder = folder();
    for words in
        [["--interval-spread", "50%", "--sleep", "timerfd"], ["--interval-spread", "2", "-l", "9"]]
    {
        let mut all = vec!["measure", "cyclic"];
        all.extend(words);
        assert_eq!(status(&call(folder.path(), &all)), 2, "{words:?}");
    }
}

#[test]
fn timer_slack_is_the_measured_threads_own() {
    // How much later an ordinary thread is for it is the kernel's choice, and not asserted.
    for (slack, ns) in [("1ns", 1), ("4ms", 4_000_000)] {
        let run = measure(&["-i", "5ms", "-l", "100", "-p", "other", "--timer-slack", slack]);
        check(&run);
        assert_eq!(run.header.plan.timer_slack_ns, Some(ns));
    }
}

#[test]
fn one_interval_timer_serves_one_thread() {
    let folder = folder();
    let out = call(
        folder.path(),
        &["measure", "cyclic", "-l", "10", "--sleep", "itimer", "--tasks", "2"],
    );
    assert!(status(&out) == 2 && stderr(&out).contains("--tasks 1"), "{}", stderr(&out));
}

#[test]
fn deadlines_are_judged_and_the_exit_status_says_so() {
    let folder = folder();
    // No Linux wakes a thread within 200 ns; every one does within 10 s.
    for (deadline, outcome) in [("200ns", Outcome::NotMet), ("10s", Outcome::Met)] {
        let out = call(
            folder.path(),
            &["run", "-D", "1s", "-d", deadline, "-o", "r.tailbound.jsonl", "--force", "-q"],
        );
        let run = read(&folder.path().join("r.tailbound.jsonl"));
        check(&run);
        let verdict = run.verdict.unwrap();
        let expected = if run.findings.iter().any(|f| f.impact > tailbound_core::Impact::Notice)
            && outcome == Outcome::Met
        {
            // A disturbance is reported: then the run is not called met.
            assert_ne!(verdict.outcome, Outcome::Met);
            verdict.outcome
        } else {
            outcome
        };
        assert_eq!(verdict.outcome, expected, "{}", verdict.sentence);
        assert_eq!(status(&out), i32::from(expected.exit_status()), "{}", stderr(&out));
        assert!(
            stdout(&out).starts_with(verdict.sentence.split(':').next().unwrap()),
            "{}",
            stdout(&out)
        );
        let html = std::fs::read_to_string(folder.path().join("r.html")).unwrap();
        assert!(html.contains("</html>"));
    }
}

#[test]
fn loads_are_recorded_with_the_rate_they_achieved() {
    let folder = folder();
    let out = call(
        folder.path(),
        &[
            "run",
            "-D",
            "3s",
            "-o",
            "r.tailbound.jsonl",
            "-q",
            "--load",
            "hackbench:groups=1,clock",
            "--load-cmd",
            "while :; do :; done",
        ],
    );
    assert_eq!(status(&out), 0, "{}", stderr(&out));
    let run = read(&folder.path().join("r.tailbound.jsonl"));
    for name in ["hackbench", "clock"] {
        let total: u64 = run.loads.iter().filter(|l| l.name == name).map(|l| l.count).sum();
        assert!(total > 0, "{name} did nothing: {:?}", run.findings);
    }
    assert!(run.events.iter().any(|e| e.event == "load-stopped"), "{:?}", run.events);
}

#[test]
fn raw_samples_are_all_there() {
    let run = measure(&["-i", "200us", "-l", "5000", "--raw"]);
    check(&run);
    for t in &run.threads {
        let mut samples = Vec::new();
        for raw in run.raw.iter().filter(|r| r.thread == t.thread) {
            assert_eq!(raw.from, samples.len() as u64);
            samples.extend(unpack_raw(raw).unwrap());
        }
        let dropped = t.dropped.get("raw").copied().unwrap_or(0);
        assert_eq!(samples.len() as u64 + dropped, t.wakeup.n);
        if dropped == 0 {
            assert_eq!(samples.iter().max().copied(), t.wakeup.max_ns);
            assert_eq!(
                samples.iter().map(|s| i128::from(*s)).sum::<i128>(),
                t.wakeup.sums.unwrap().s1
            );
        }
        assert!(t.p2.contains_key("p50"), "{:?}", t.p2);
    }
}

#[test]
fn threads_confined_to_their_system_calls_do_all_they_need() {
    for means in MEANS {
        let words = ["-i", "500us", "-l", "200", "--paranoid", "--sleep", means, "-a", "0"];
        check(&measure(&words));
    }
}

#[test]
fn real_time_policies_are_set_at_birth() {
    if !is_root() {
        return skip("rt", "real-time policies need root here");
    }
    for policy in ["fifo:42", "rr:7", "other"] {
        let run = measure(&["-l", "100", "-p", policy]);
        assert_eq!(run.header.plan.policy.to_string(), policy);
        check(&run);
    }
    let run = measure(&["-l", "100", "-p", "deadline:200us/1ms"]);
    assert!(run.threads.iter().all(|t| t.cpu.is_none()), "deadline threads are not pinned");
    check(&run);
}

#[test]
fn an_interval_the_machine_cannot_keep_is_either_counted_or_refused() {
    let folder = folder();
    let out = call(
        folder.path(),
        &["measure", "cyclic", "-i", "10us", "-D", "500ms", "-q", "-o", "-", "--warm-up", "200ms"],
    );
    match status(&out) {
        0 | 5 => check(&read_run(out.stdout.as_slice()).unwrap()),
        3 => assert!(stderr(&out).contains("longer interval"), "{}", stderr(&out)),
        other => panic!("{other}: {}", stderr(&out)),
    }
}
