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

/// A machine may be so busy that events are lost.
const ATTEMPTS: usize = 6;

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

/// Watches the planted program in a mode: the exit status and the answer.
fn watch(mode: &str) -> Option<(i32, Value)> {
    let program = planted()?;
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let out = Command::new("unshare")
        .args(["-m", "sh", "-c", MOUNT, "sh", env!("CARGO_BIN_EXE_tailbound")])
        .args(["watch", "--rules", "--json", "-q", "--"])
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
    Some((out.status.code().unwrap_or(-1), answer))
}

fn records(answer: &Value) -> Vec<Value> {
    answer["rules"]["records"].as_array().cloned().unwrap_or_default()
}

/// A fault at the program's own start is one that it does have, in whatever mode.
fn rules(answer: &Value) -> BTreeSet<String> {
    let of = |r: &Value| r["rule"].as_str().unwrap().to_owned();
    let at_start = |r: &Value| {
        r["rule"] == "page-fault" && r["worst"]["t_ns"].as_i64().is_some_and(|t| t < 600_000_000)
    };
    records(answer).iter().filter(|r| !at_start(r)).map(of).collect()
}

/// Were events lost? That can hide a violation, but never make one.
fn lost(answer: &Value) -> bool {
    let findings = answer["findings"].as_array().cloned().unwrap_or_default();
    findings.iter().any(|f| f["id"] == "trace-lost")
}

/// Watches until every expected rule was named, a few times: events may be lost on the way, and a thread is seen
/// when it is looked for, which a busy machine may do late. No attempt may name a rule that was not broken.
fn named(mode: &str, expected: &[&str]) -> Option<Value> {
    let expected: BTreeSet<String> = expected.iter().map(|r| (*r).to_owned()).collect();
    let mut last = None;
    let mut all_lost = true;
    for _ in 0..ATTEMPTS {
        let (status, answer) = watch(mode)?;
        let found = rules(&answer);
        assert!(found.is_subset(&expected), "{mode}: {}", answer["rules"]);
        let whole = found == expected;
        all_lost &= lost(&answer);
        last = Some((status, answer));
        if whole {
            break;
        }
    }
    let (status, answer) = last?;
    if rules(&answer) != expected {
        assert!(all_lost, "{mode}: {} {}", answer["rules"], answer["notes"]);
        skip("quiet", format!("{mode}: events were lost in each of {ATTEMPTS} attempts"));
        return None;
    }
    if !expected.is_empty() {
        assert_eq!(status, 1, "{mode}: {}", answer["verdict"]);
        assert!(
            answer["verdict"]["outcome"].as_str().unwrap().contains("not"),
            "{}",
            answer["verdict"]
        );
    }
    Some(answer)
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
    named("alloc", &["allocation"]);
    named("refused", &["policy-refused"]);
}

#[test]
fn a_lock_without_inheritance_is_named_with_the_thread_that_held_it() {
    let Some(answer) = named("non-pi", &["low-priority-waker", "non-pi-lock"]) else { return };
    let records = records(&answer);
    let lock = records.iter().find(|r| r["rule"] == "non-pi-lock").unwrap();
    let text = lock["worst"]["text"].as_str().unwrap();
    assert!(text.contains("held by low-") && text.contains("(ordinary)"), "{text}");
}

#[test]
fn a_call_that_waits_for_a_disk_is_named() {
    let Some((_, answer)) = watch("fsync") else { return };
    // Where the folder lies in memory, nothing waits.
    if rules(&answer).is_empty() {
        return skip("disk", "fsync did not wait here");
    }
    let records = records(&answer);
    assert!(
        records.iter().any(|r| r["site"].as_str().unwrap().starts_with("fsync")),
        "{records:?}"
    );
}

#[test]
fn a_chain_is_named_with_its_links() {
    let Some(answer) = named("pipeline", &["low-priority-waker", "pipeline-order"]) else { return };
    let records = records(&answer);
    let chain = records.iter().find(|r| r["rule"] == "pipeline-order").unwrap();
    assert_eq!(chain["site"], "ctl → low → last");
    assert_eq!(chain["name"], "low");
}

#[test]
fn a_stack_leads_through_a_library_without_frame_pointers_to_the_program() {
    let Some(answer) = named("relative", &["sleep-method"]) else { return };
    let records = records(&answer);
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
