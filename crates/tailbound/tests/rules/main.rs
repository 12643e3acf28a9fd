// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tailbound watch --rules` against real programs: one that keeps every rule, and one for each rule
//! that it breaks. Which rules are named is asserted, and where; never how long anything took.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::disallowed_methods, reason = "children of tests")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;
use tailbound_sys::process::is_root;
use tailbound_testing::skip;

const MOUNT: &str = "{ mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing; } && exec \"$@\"";

/// The planted program; `None` where it cannot be built or watched.
fn planted() -> Option<&'static Path> {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("planted-rules");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/rules/planted.c");
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-fomit-frame-pointer", "-o"]).arg(&out).args([source, "-lpthread"]);
        cc.status().is_ok_and(|s| s.success()).then_some(out)
    });
    if !is_root() {
        skip("root", "real-time threads and tracefs need root");
        return None;
    }
    let own = std::fs::read_link("/proc/self/ns/pid");
    if own.is_ok_and(|own| own.as_os_str() != "pid:[4026531836]") {
        skip(
            "tracefs",
            "this is a PID namespace: threads have other numbers in the kernel's trace",
        );
        return None;
    }
    let tracefs = Command::new("unshare")
        .args(["-m", "sh", "-c", MOUNT, "sh", "test", "-e"])
        .arg("/sys/kernel/tracing/events/raw_syscalls/sys_enter/id")
        .stderr(Stdio::null())
        .status();
    if !tracefs.is_ok_and(|s| s.success()) {
        skip("tracefs", "tracefs with events of system calls is needed");
        return None;
    }
    if built.is_none() {
        skip("cc", "a C compiler is needed");
    }
    built.as_deref()
}

/// What watching came to.
struct Watched {
    status: i32,
    answer: Value,
    /// Every violation after the thread had set itself up.
    each: Vec<Value>,
    /// How many threads slept, where the program counts them.
    slept: usize,
    /// The kernel moved pages meanwhile, locked ones too: who touches one then has a page fault, and may wait.
    moved: bool,
}

/// Pages that the kernel has moved so far.
fn moved() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/vmstat").ok()?;
    text.lines().find_map(|line| line.strip_prefix("pgmigrate_success "))?.trim().parse().ok()
}

/// Watches the planted program in a mode.
fn watch(mode: &str) -> Option<Watched> {
    watch_with(mode, &[], &[])
}

/// With these `options`, and the program started by `by`.
fn watch_with(mode: &str, options: &[&str], by: &[&str]) -> Option<Watched> {
    let program = planted()?;
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let before = moved();
    let out = Command::new("unshare")
        .args(["-m", "sh", "-c", MOUNT, "sh", env!("CARGO_BIN_EXE_tailbound")])
        .args(["watch", "--rules", "--json", "-q", "--violations", "each"])
        .args(options)
        .arg("--")
        .args(by)
        .arg(program)
        .args([mode, "2"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let words = String::from_utf8_lossy(&out.stderr).into_owned();
    let answer: Value =
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text} {words}"));
    if answer["command"]["code"] == 3 {
        skip("realtime", "real-time priorities or locked memory are refused here");
        return None;
    }
    let lines = std::fs::read_to_string(folder.path().join("each")).unwrap();
    let each = lines.lines().map(|line| serde_json::from_str(line).unwrap());
    let each = each.filter(|v| !at_start(v)).collect();
    let slept = std::fs::read_to_string(folder.path().join("slept"));
    let slept = slept.map_or(0, |text| text.parse().unwrap());
    let moved = moved() != before;
    Some(Watched { slept, moved, status: out.status.code().unwrap_or(-1), answer, each })
}

/// Before a thread gives itself its name: its creator wakes it, and it touches memory for the first time. Both are true in
/// whatever mode.
fn at_start(violation: &Value) -> bool {
    violation["text"].as_str().unwrap().starts_with("planted-rules-")
}

fn records(answer: &Value) -> Vec<Value> {
    answer["rules"]["records"].as_array().cloned().unwrap_or_default()
}

impl Watched {
    fn rules(&self) -> BTreeSet<&str> {
        self.each.iter().map(|v| v["rule"].as_str().unwrap()).collect()
    }

    /// Those that are broken beside `expected` ones, but for what the kernel's moving of pages made.
    fn beyond<'a>(&'a self, expected: &BTreeSet<&'a str>) -> BTreeSet<&'a str> {
        let by_moving = |r: &&str| self.moved && ["page-fault", "blocking-call"].contains(r);
        self.rules().difference(expected).copied().filter(|r| !by_moving(r)).collect()
    }

    /// Were events lost? That can hide a violation, but never make one.
    fn lost(&self) -> bool {
        let findings = self.answer["findings"].as_array().cloned().unwrap_or_default();
        findings.iter().any(|f| f["id"] == "trace-lost")
    }
}

/// Watches a program that breaks these rules and no others; `None` where events were lost, which hides some.
fn named(mode: &str, expected: &[&str]) -> Option<Watched> {
    let expected: BTreeSet<&str> = expected.iter().copied().collect();
    let watched = watch(mode)?;
    let (found, beyond) = (watched.rules(), watched.beyond(&expected));
    let as_expected = beyond.is_empty() && (found.is_superset(&expected) || watched.lost());
    assert!(as_expected, "{mode}: {} {}", watched.answer["rules"], watched.answer["notes"]);
    if !found.is_superset(&expected) {
        skip("quiet", format!("{mode}: this machine is so busy that events were lost"));
        return None;
    }
    if !expected.is_empty() {
        assert_eq!(watched.status, 1, "{mode}: {}", watched.answer["verdict"]);
        let outcome = watched.answer["verdict"]["outcome"].as_str().unwrap();
        assert!(outcome.contains("not"), "{}", watched.answer["verdict"]);
    }
    Some(watched)
}

#[test]
fn programs_that_keep_the_rules_have_no_violation() {
    for mode in ["clean", "pi"] {
        named(mode, &[]);
    }
}

#[test]
fn each_rule_is_named_by_a_program_that_breaks_it() {
    named("fault", &["page-fault"]);
    named("realtime", &["sleep-method"]);
    named("read", &["sleep-method"]);
    named("low-waker", &["low-priority-waker"]);
    named("refused", &["policy-refused"]);
}

#[test]
fn taking_memory_within_a_cycle_is_named() {
    let Some(watched) = watch("alloc") else { return };
    let found = watched.rules();
    // Whoever looks at the thread's memory map in that moment makes it wait for the map.
    let beyond = watched.beyond(&["allocation", "blocking-call"].into());
    assert!(
        beyond.is_empty(),
        "{beyond:?} {} {}",
        watched.answer["rules"],
        watched.answer["notes"]
    );
    assert!(found.contains("allocation") || watched.lost(), "{found:?}");
}

#[test]
fn a_thread_is_judged_from_its_first_moment_on_however_short_it_lives() {
    let Some(watched) = watch("brief") else { return };
    let told = watched.each.iter().filter(|v| v["rule"] == "sleep-method").count();
    assert!(
        watched.lost() || told == watched.slept,
        "{told} {}: {:?}",
        watched.slept,
        watched.each
    );
    assert!(watched.slept > 0);
}

#[test]
fn every_page_fault_of_a_real_time_thread_is_told() {
    let Some(watched) = named("refault", &["page-fault"]) else { return };
    // One in each cycle, and a few where a page of the program's file is touched first.
    let n = watched.each.len();
    assert!(watched.lost() || n >= 1000, "{n}");
}

#[test]
fn a_lock_without_inheritance_is_named_with_the_thread_that_held_it() {
    let Some(watched) = named("non-pi", &["non-pi-lock"]) else { return };
    let lock = watched.each.iter().find(|v| v["rule"] == "non-pi-lock").unwrap();
    let text = lock["text"].as_str().unwrap();
    assert!(text.contains("held by low-") && text.contains("(ordinary)"), "{text}");
}

#[test]
fn who_had_a_lock_with_inheritance_is_told() {
    // On two CPUs the kernel lets the one spin until the other gives the lock back, which is no wait.
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let cpus = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    let first = cpus.trim().split(['-', ',']).next().unwrap();
    let options = ["--keep", "1000", "--no-stacks"];
    let Some(watched) = watch_with("pi", &options, &["taskset", "-c", first]) else { return };
    let findings = watched.answer["findings"].as_array().unwrap();
    if let Some(why) = findings.iter().find(|f| f["id"] == "no-stacks") {
        return skip("bpf", &why["title"]);
    }
    let threads = watched.answer["threads"].as_array().unwrap();
    let ctl = threads.iter().find(|t| t["name"] == "ctl").unwrap();
    let cycles = ctl["worst"].as_array().unwrap().iter();
    let parts = cycles.flat_map(|c| c["parts"].as_array().unwrap());
    let held: Vec<&Value> = parts.filter(|p| p["holder"].is_string()).collect();
    let is_low = |p: &&Value| p["holder"].as_str().unwrap().starts_with("low-");
    assert!(!held.is_empty() && held.iter().all(is_low) || watched.lost(), "{held:?}");
}

#[test]
fn a_call_that_waits_for_a_disk_is_named() {
    let Some(watched) = watch("fsync") else { return };
    // Where the folder lies in memory, nothing waits.
    if watched.rules().is_empty() {
        return skip("disk", "fsync did not wait here");
    }
    let records = records(&watched.answer);
    assert!(
        records.iter().any(|r| r["site"].as_str().unwrap().starts_with("fsync")),
        "{records:?}"
    );
}

#[test]
fn a_chain_is_named_with_its_links() {
    let Some(watched) = named("pipeline", &["low-priority-waker", "pipeline-order"]) else {
        return;
    };
    let records = records(&watched.answer);
    let chain = records.iter().find(|r| r["rule"] == "pipeline-order").unwrap();
    assert_eq!(chain["site"], "ctl → low → last");
    assert_eq!(chain["name"], "low");
}

#[test]
fn a_stack_leads_through_a_library_without_frame_pointers_to_the_program() {
    let Some(watched) = named("relative", &["sleep-method"]) else { return };
    let mut records = records(&watched.answer);
    records.retain(|r| r["rule"] == "sleep-method");
    let frames = |r: &Value| r["first"]["stack"]["frames"].as_array().cloned().unwrap_or_default();
    let Some(found) = records.iter().find(|r| !frames(r).is_empty()) else {
        return skip("perf", &records[0]["first"]["stack"]["reason"]);
    };
    let text = serde_json::to_string(&frames(found)).unwrap();
    assert!(text.contains("step+") && text.contains("ctl+"), "{text}");
    assert!(found["site"].as_str().unwrap().ends_with("in step"), "{}", found["site"]);
    assert_eq!(found["first"]["stack"]["method"], "dwarf");
}

#[test]
fn without_rules_nothing_is_said_of_them() {
    let Some(program) = planted() else { return };
    let out = Command::new("unshare")
        .args(["-m", "sh", "-c", MOUNT, "sh", env!("CARGO_BIN_EXE_tailbound")])
        .args(["watch", "-q", "--"])
        .arg(program)
        .args(["relative", "1"])
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(0));
    assert!(!String::from_utf8_lossy(&out.stdout).contains("sleep-method"));
}
