// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tune show`: the threads and interrupts of this machine, chosen, ordered, and left as they are.
//!
//! What is compared is set by the test itself; no rate of this machine is asserted.

use std::path::Path;

use serde_json::Value;
use tailbound_sys::sched;

use super::{call, folder, status, stderr, stdout};

fn show(words: &[&str]) -> Value {
    let all: Vec<&str> = ["tune", "show", "--json"].iter().chain(words).copied().collect();
    let out = call(folder().path(), &all);
    assert_eq!(status(&out), 0, "{}", stderr(&out));
    serde_json::from_str(&stdout(&out)).unwrap()
}

fn tids(shown: &Value) -> Vec<u64> {
    shown["threads"].as_array().unwrap().iter().map(|t| t["tid"].as_u64().unwrap()).collect()
}

/// Runs `body` in a thread of its own, SCHED_BATCH on one CPU, with its number and that CPU.
fn in_a_batch_thread(body: impl FnOnce(i32, u32) + Send + 'static) {
    let cpu = *sched::affinity(0).unwrap().first().unwrap();
    let thread = std::thread::Builder::new().name("tune-show-test".to_owned()).spawn(move || {
        sched::set_affinity(0, &[cpu]).unwrap();
        let batch = sched::Attributes { policy: sched::SCHED_BATCH, nice: 3, ..Default::default() };
        sched::set(0, &batch).unwrap();
        body(sched::gettid(), cpu);
        // Looking has changed nothing.
        assert_eq!(sched::affinity(0).unwrap(), [cpu]);
        let now = sched::get(0).unwrap();
        assert_eq!((now.policy, now.nice), (batch.policy, batch.nice));
    });
    thread.unwrap().join().unwrap();
}

#[test]
fn a_thread_is_shown_with_its_policy_and_affinity() {
    in_a_batch_thread(|tid, cpu| {
        let shown = show(&["threads", "--interval", "20ms", "--filter", "tune-show-test"]);
        let rows = shown["threads"].as_array().unwrap();
        let own = rows.iter().find(|t| t["tid"] == tid).unwrap();
        assert_eq!((own["policy"].as_str(), own["nice"].as_i64()), (Some("batch"), Some(3)));
        assert_eq!(own["affinity"], cpu.to_string());
        assert_eq!(own["pid"].as_u64(), Some(std::process::id().into()));
        assert_eq!((&own["kernel"], &own["fixed"]), (&Value::Bool(false), &Value::Bool(false)));
        assert!(own["voluntary"].is_u64() && own["voluntary_per_second"].is_f64(), "{own}");
        assert!(shown["over_ns"].as_i64().unwrap() >= 20_000_000 && shown["form"].is_string());
        assert_eq!(shown.get("interrupts"), None, "only threads were asked for");

        let tid = tid.to_string();
        let out = call(folder().path(), &["tune", "show", "threads", "-i0", "-f", &tid]);
        let line = stdout(&out).lines().find(|l| l.contains("tune-show-test")).unwrap().to_owned();
        assert!(line.contains("batch:+3") && line.trim_start().starts_with(&tid), "{line}");
    });
}

#[test]
fn threads_are_chosen_by_kind_text_and_cpu() {
    in_a_batch_thread(|tid, cpu| {
        let tid = u64::from(tid.unsigned_abs());
        let has = |words: &[&str]| {
            let words: Vec<&str> = ["threads", "-i0"].iter().chain(words).copied().collect();
            tids(&show(&words)).contains(&tid)
        };
        let cpu = cpu.to_string();
        assert!(has(&[]) && has(&["--user"]) && has(&["--cpus", &cpu]) && has(&["--cpus", "all"]));
        assert!(has(&["--filter", "TUNE-SHOW"]) && has(&["--filter", "batch"]));
        assert!(
            !has(&["--kernel"]) && !has(&["--realtime"]) && !has(&["--filter", "no such name"])
        );
        let other =
            sched::affinity(1).unwrap().into_iter().map(|c| c.to_string()).find(|c| *c != cpu);
        if let Some(other) = other {
            assert!(!has(&["--cpus", &other]));
        }
    });
}

#[test]
fn rows_are_in_the_order_asked_for() {
    let numbers = tids(&show(&["threads", "-i0", "--sort", "number:desc"]));
    let pids = |shown: &Value| -> Vec<u64> {
        shown["threads"].as_array().unwrap().iter().map(|t| t["pid"].as_u64().unwrap()).collect()
    };
    let shown = show(&["threads", "-i0", "--sort", "number"]);
    assert!(pids(&shown).is_sorted() && !numbers.is_sorted() && numbers.len() > 1);
    let shown = show(&["irqs", "-i0", "--sort", "rate:desc"]);
    let counts: Vec<u64> = shown["interrupts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|i| i["count"].as_u64().unwrap())
        .collect();
    assert!(counts.iter().rev().is_sorted(), "{counts:?}");
    assert!(shown["classes"].is_array() && shown.get("threads").is_none());
}

#[test]
fn wrong_words_are_refused_and_told() {
    for (words, told) in [
        (&["--sort", "size"][..], "involuntary"),
        (&["--sort", "number:up"], "KEY:desc"),
        (&["--cpus", "8000"], "does not exist"),
        (&["--cpus", "x"], "not a CPU list"),
        (&["--interval", "1"], "unit"),
        (&["--interval", "1us"], "0 shows totals"),
        (&["irqs", "--kernel"], "selects threads"),
        (&["--kernel", "--user"], "cannot be used with"),
        (&["processes"], "irqs"),
        (&["--live", "--json"], "cannot be used with"),
        (&["--live"], "terminal"),
    ] {
        let all: Vec<&str> = ["tune", "show"].iter().chain(words).copied().collect();
        let out = call(folder().path(), &all);
        assert_eq!(status(&out), 2, "{words:?}");
        assert!(stderr(&out).contains(told), "{words:?}: {}", stderr(&out));
        assert_eq!(stdout(&out), "", "{words:?}");
    }
}

#[test]
fn both_tables_are_shown_and_nothing_is_written() {
    let dir = folder();
    let out = call(dir.path(), &["tune", "show", "--interval", "10ms"]);
    assert_eq!(status(&out), 0, "{}", stderr(&out));
    let text = stdout(&out);
    assert!(
        text.contains("POLICY") && text.contains("VOL/s") && text.contains(" online, isolated ")
    );
    if Path::new("/proc/irq").exists() {
        assert!(text.contains("MANAGED") && text.contains("RATE/s"), "{text}");
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
