// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs in the kernel beside `--blame`: that they are used where they may be, that what is lost
//! without them is told, and that none is left.

use std::time::Duration;

use crate::observe::{able, tracing};
use crate::{folder, read, skip, status, stderr};

/// Programs of ours that the kernel has, by their names in /proc/PID/fdinfo of whoever holds one.
fn held_by(pid: u32) -> usize {
    let fds = std::fs::read_dir(format!("/proc/{pid}/fd"));
    let is = |e: &std::fs::DirEntry| {
        std::fs::read_link(e.path()).is_ok_and(|l| l.to_string_lossy().contains("bpf"))
    };
    fds.map_or(0, |all| all.flatten().filter(is).count())
}

#[test]
fn a_blamed_run_tells_whether_it_takes_stacks() {
    if !able() {
        return;
    }
    let dir = folder();
    let file = dir.path().join("r.jsonl");
    let exe = env!("CARGO_BIN_EXE_tailbound");
    let words = [exe, "run", "--blame=5us", "-D", "2s", "-L", "none", "-q", "-o", "r.jsonl"];
    let out = tracing(&words).current_dir(dir.path()).output().unwrap();
    assert_eq!(status(&out), 0, "{}", stderr(&out));
    let run = read(&file);
    let told = |e: &tailbound_core::record::Event| e.text.contains("kernel stacks are taken");
    let lost = run.findings.iter().find(|f| f.id == "no-stacks");
    match lost {
        None => assert!(run.events.iter().any(told), "{:?}", run.events),
        Some(lost) => assert!(lost.title.contains(": "), "a reason: {}", lost.title),
    }
    // Whoever kept a thread off its CPU, a stack is of functions, the place first: none is a program of
    // ours, which the kernel calls bpf_prog_ and sixteen digits.
    let own = |f: &String| {
        f.strip_prefix("bpf_prog_")
            .is_some_and(|rest| rest.bytes().take_while(u8::is_ascii_hexdigit).count() == 16)
    };
    for part in run.blames.iter().flat_map(|b| &b.parts) {
        assert!(part.stack.iter().all(|f| !f.is_empty() && !own(f)), "{part:?}");
    }
}

#[test]
fn nothing_of_a_killed_run_stays_in_the_kernel() {
    if !able() {
        return;
    }
    let dir = folder();
    let exe = env!("CARGO_BIN_EXE_tailbound");
    let words = [exe, "run", "--blame=1ms", "-D", "60s", "-L", "none", "-q", "-o", "r.jsonl"];
    let mut command = tracing(&words);
    command.current_dir(dir.path()).stdout(std::process::Stdio::null());
    let mut child = command.stderr(std::process::Stdio::null()).spawn().unwrap();
    let mut held = 0;
    for _ in 0..300 {
        held = held_by(child.id());
        if held >= 3 || child.try_wait().is_ok_and(|s| s.is_some()) {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    if held == 0 {
        return skip("bpf", "this kernel or user has no programs in the kernel");
    }
    // What its descriptors held went with the process: its number has none any more.
    assert_eq!(held_by(child.id()), 0);
}
