// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's tracing beside a run: what it must hold, and that nothing of it is left
//! however the run ends. Each run has a tracefs of its own mount namespace; trace instances
//! are the kernel's all the same.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tailbound_core::Run;
use tailbound_core::record::{Fact, ThreadRecord};

use crate::{PATIENCE, call, folder, is_root, read, skip, status, stderr};

const MOUNT: &str = "{ mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing; } && exec \"$@\"";

/// A command that sees tracefs.
pub(crate) fn tracing(words: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", MOUNT, "sh"]).args(words).env("NO_COLOR", "1");
    command
}

/// Can tracefs be had here, and does it name threads by the numbers that they have here?
pub(crate) fn able() -> bool {
    // Source: include/linux/proc_ns.h, PROC_PID_INIT_INO.
    let own = std::fs::read_link("/proc/self/ns/pid");
    if own.is_ok_and(|own| own.as_os_str() != "pid:[4026531836]") {
        skip(
            "tracefs",
            "this is a PID namespace, as in a container: threads have other numbers in the kernel's trace",
        );
        return false;
    }
    let able = is_root()
        && tracing(&["test", "-d", "/sys/kernel/tracing/instances"])
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|s| s.success());
    if !able {
        skip("tracefs", "tracefs needs root and a kernel that has it");
    }
    able
}

/// Instances of the run `pid` that exist now.
pub(crate) fn instances(pid: u32) -> Vec<String> {
    let out = tracing(&["ls", "/sys/kernel/tracing/instances"]).output().unwrap();
    let own = format!("tailbound-{pid}-");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    text.lines().filter(|l| l.starts_with(&own)).map(str::to_owned).collect()
}

fn run_in(folder: &Path, words: &[&str]) -> Child {
    let exe = env!("CARGO_BIN_EXE_tailbound");
    let always =
        [exe, "run", "-o", "r.jsonl", "--warm-up", "200ms", "-q", "-L", "none", "-i", "2ms"];
    let all: Vec<&str> = always.iter().chain(words).copied().collect();
    let mut command = tracing(&all);
    command.current_dir(folder).stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Waits until its trace runs.
fn observing(folder: &Path, child: &mut Child) {
    let begun = Instant::now();
    loop {
        let text = std::fs::read_to_string(folder.join("r.jsonl")).unwrap_or_default();
        if text.contains("\"warm-up-over\"") {
            return;
        }
        let ended = child.try_wait().unwrap();
        assert!(ended.is_none() && begun.elapsed() < PATIENCE, "{ended:?} {text}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn of<'a>(run: &'a Run, thread: u32, context: &str) -> &'a ThreadRecord {
    let found = run.threads.iter().find(|t| t.thread == thread && t.context.as_str() == context);
    found.unwrap_or_else(|| panic!("thread {thread} has no context {context}"))
}

#[test]
fn impossible_wishes_are_refused_with_a_way_out() {
    let folder = folder();
    let refused = |words: &[&str]| {
        let all: Vec<&str> =
            ["run", "-q", "-D", "1s", "-o", "r.jsonl"].iter().chain(words).copied().collect();
        let out = call(folder.path(), &all);
        assert!(!folder.path().join("r.jsonl").exists());
        (status(&out), stderr(&out))
    };
    let (code, text) = refused(&["--observe", "everything"]);
    assert!(code == 2 && text.contains("auto, timerlat"), "{code} {text}");
    let (code, text) = refused(&["--observe", "tracepoints", "--clock", "realtime"]);
    assert!(code == 2 && text.contains("absolute"), "{code} {text}");
    if able() {
        // As in a container, threads have other numbers here than in the kernel's trace.
        let exe = env!("CARGO_BIN_EXE_tailbound");
        let inside = ["unshare", "--pid", "--fork", "--mount-proc", exe, "run", "-q", "-D", "1s"];
        let words = ["-o", "r.jsonl", "--observe", "tracepoints"];
        let mut command = tracing(&[&inside[..], &words].concat());
        let out = command.current_dir(folder.path()).output().unwrap();
        let text = stderr(&out);
        assert!(status(&out) == 3 && text.contains("PID namespace"), "{text}");
        assert!(!folder.path().join("r.jsonl").exists());
        let tracers = tracing(&["cat", "/sys/kernel/tracing/available_tracers"]).output().unwrap();
        if !String::from_utf8_lossy(&tracers.stdout).contains("timerlat") {
            let out = run_in(folder.path(), &["-D", "1s", "--observe", "timerlat"]);
            let out = out.wait_with_output().unwrap();
            assert!(status(&out) == 3 && stderr(&out).contains("CONFIG_TIMERLAT_TRACER"));
        }
    }
}

#[test]
fn tracepoints_split_the_way_of_each_wake_up() {
    if !able() {
        return;
    }
    let folder = folder();
    let mut child = run_in(folder.path(), &["-D", "2s", "--observe", "tracepoints"]);
    let pid = child.id();
    assert!(child.wait().unwrap().code().is_some());
    let run = read(&folder.path().join("r.jsonl"));
    assert_eq!(
        run.threads.first().map(|t| t.context.as_str()),
        Some("irq"),
        "the order of the way"
    );
    for thread in 0..u32::try_from(run.header.plan.cpus.len()).unwrap() {
        let [irq, way, user] = ["irq", "thread", "user"].map(|c| of(&run, thread, c));
        let count = |name: &str| way.counters.get(name).copied().unwrap_or(u64::MAX);
        let lost = irq.dropped.values().sum::<u64>();
        // A timer for each wake-up, unless it was due already when it was to be set.
        assert!(irq.wakeup.n > 0 && count("timers_set") <= 1000);
        if lost == 0 {
            // Kernels leave out a switch now and then without counting it as lost: 6.18 one of
            // 2000, and 305 of 1000 once beside a whole test suite. What counts is that it is said.
            let unseen = count("timers_unseen");
            assert!(unseen < count("timers_set"), "{:?}", way.counters);
            assert!(irq.wakeup.n.abs_diff(way.wakeup.n) <= unseen, "{:?}", way.counters);
            // Nothing comes before the interrupt: a late one is late in every column.
            assert!(unseen > 0 || way.wakeup.max_ns >= irq.wakeup.max_ns);
        }
        // The kernel's end of the way comes before the user's.
        let earliest = |t: &ThreadRecord| t.wakeup.min_ns.unwrap();
        assert!(earliest(irq) >= 0, "a timer does not expire early");
        assert!(way.wakeup.n == 0 || earliest(irq) < earliest(way));
        // A wake-up that was due when it was to be slept for needs no timer and may be earliest,
        // and one whose switch the kernel left out is in one column and not in the next: only
        // where every column holds every wake-up are their minima and means of the same ones.
        let whole = irq.wakeup.n == way.wakeup.n && way.wakeup.n == user.wakeup.n;
        if whole && count("timers_unseen") == 0 {
            assert!(earliest(way) < earliest(user));
            assert!(irq.wakeup.mean() < way.wakeup.mean());
        }
    }
    assert!(run.findings.iter().any(|f| f.id == "observed"));
    let machine = run.header.machine.get("kernel.trace_instances").map(Fact::text);
    assert!(machine.is_some_and(|m| !m.contains(&pid.to_string())), "its own is not the machine's");
    assert!(run.self_cost.contains_key("trace_read_ns"));
    assert_eq!(instances(pid), Vec::<String>::new());
}

#[test]
fn periodic_timers_are_seen_too() {
    if !able() {
        return;
    }
    for means in ["timerfd", "posix-timer"] {
        let folder = folder();
        let mut child =
            run_in(folder.path(), &["-D", "1s", "--observe", "tracepoints", "--sleep", means]);
        assert!(child.wait().unwrap().code().is_some());
        let run = read(&folder.path().join("r.jsonl"));
        let irq = of(&run, 0, "irq");
        // How many of them a kernel leaves out is its affair.
        assert!(irq.wakeup.n > 0, "{means}: {:?}", irq.counters);
    }
}

#[test]
fn nothing_is_left_however_it_ends() {
    if !able() {
        return;
    }
    for signal in ["INT", "TERM", "KILL"] {
        let folder = folder();
        let mut child = run_in(folder.path(), &["-D", "60s", "--observe", "tracepoints"]);
        observing(folder.path(), &mut child);
        let pid = child.id();
        assert_eq!(instances(pid).len(), 1);
        crate::send(pid, signal);
        assert!(child.wait().is_ok());
        let begun = Instant::now();
        while !instances(pid).is_empty() {
            // After a kill it is the guard's to remove.
            assert!(signal == "KILL" && begun.elapsed() < PATIENCE, "{signal}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

#[test]
fn what_a_killed_run_and_its_guard_left_the_next_run_removes() {
    if !able() {
        return;
    }
    // No process has this number: the kernel's highest is 2^22.
    let left = "/sys/kernel/tracing/instances/tailbound-9999999-1";
    // A run of another test program may be there before ours, and tells it then.
    let is_told = |_| {
        assert!(tracing(&["mkdir", "-p", left]).status().unwrap().success());
        let folder = folder();
        let mut child = run_in(folder.path(), &["-D", "1s", "--observe", "tracepoints"]);
        assert!(child.wait().unwrap().code().is_some());
        assert_eq!(instances(9_999_999), Vec::<String>::new());
        let run = read(&folder.path().join("r.jsonl"));
        run.events.iter().any(|e| e.event == "observe" && e.text.contains("9999999"))
    };
    assert!((0..5).any(is_told));
}
