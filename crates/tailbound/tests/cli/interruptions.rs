// SPDX-License-Identifier: MIT OR Apache-2.0
//! What takes time from chosen CPUs. Nothing is asserted of how much: only that what was surely there
//! is found, that the sums hold, and that wrong words are refused.

use std::path::Path;

use serde_json::Value;

use crate::observe::{able, tracing};
use crate::{call, status, stderr};

fn exe() -> &'static str {
    env!("CARGO_BIN_EXE_tailbound")
}

#[test]
fn what_ran_on_a_cpu_is_named_and_adds_up() {
    if !able() {
        return;
    }
    // It surely runs on CPU 0, switches often, and ends by itself where this test is killed.
    let words = "n=0; while [ $n -lt 3000 ]; do n=$((n+1)); sleep 0.01; done";
    let mut busy =
        std::process::Command::new("taskset").args(["-c", "0", "sh", "-c", words]).spawn().unwrap();
    let out = tracing(&[exe(), "interruptions", "-c", "0", "-D", "2s", "--json"]).output().unwrap();
    busy.kill().unwrap();
    busy.wait().unwrap();
    assert_eq!(status(&out), 0, "{}", stderr(&out));
    let value: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(value["schema"], "tailbound-interruptions/1");
    let cpu = &value["cpus"][0];
    let ns = |v: &Value| v.as_u64().unwrap();
    let taken = cpu["taken"].as_array().unwrap();
    let sum: u64 = taken.iter().map(|t| ns(&t["ns"])).sum();
    assert_eq!(sum + ns(&cpu["idle_ns"]) + ns(&cpu["unknown_ns"]), ns(&cpu["span_ns"]), "{value}");
    let threads: Vec<&Value> = taken.iter().filter(|t| t["kind"] == "thread").collect();
    assert!(threads.iter().any(|t| t["who"] == "sleep" || t["who"] == "sh"), "{value}");
    assert!(taken.iter().all(|t| ns(&t["ns_max"]) <= ns(&t["ns"])), "{value}");
}

#[test]
fn a_cpu_that_is_not_there_and_a_time_that_is_none_are_refused() {
    let out = call(Path::new("."), &["interruptions", "-c", "4000"]);
    assert_eq!(status(&out), 2);
    assert!(stderr(&out).contains("CPU 4000"), "{}", stderr(&out));
    let out = call(Path::new("."), &["interruptions", "-D", "0s"]);
    assert_eq!(status(&out), 2);
}
