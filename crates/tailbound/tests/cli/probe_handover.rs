// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hand-overs as their users meet them: every due one accounted for in every arrangement, a
//! planted stall fails the run, places that do not exist are refused, and kill -9 leaves neither
//! a process nor an object of any kind behind.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use tailbound_core::Run;
use tailbound_core::record::ThreadRecord;

use crate::{
    PATIENCE, call, folder, folder_for_everybody, is_root, read, skip, status, stderr, tailbound,
};

const MEDIA: [&str; 13] = [
    "signal",
    "futex",
    "pi-futex",
    "condvar",
    "semaphore",
    "sysv-semaphore",
    "mqueue",
    "pipe",
    "socket",
    "eventfd",
    "epoll",
    "io-uring",
    "barrier",
];
const INTERVAL: &str = "2ms";
const PLANNED: u64 = 200;

/// Runs a probe for 0.4 s; `None` where this machine cannot, with a reason.
fn run(folder: &Path, words: &[&str]) -> Option<Run> {
    let name = words.join("_").replace("--", "");
    let file = format!("{name}.jsonl");
    let mut all = vec!["measure"];
    all.extend(words);
    all.extend(["-q", "--warm-up", "50ms", "-i", INTERVAL, "-D", "400ms", "--out", &file]);
    let out = call(folder, &all);
    if status(&out) == 3 && !folder.join(&file).exists() {
        skip("media", stderr(&out).trim().lines().next().unwrap_or_default());
        return None;
    }
    assert!([0, 1, 5].contains(&status(&out)), "{words:?}: {}", stderr(&out));
    Some(read(&folder.join(file)))
}

fn of<'a>(run: &'a Run, context: &str) -> Vec<&'a ThreadRecord> {
    run.threads.iter().filter(|t| t.context.as_str() == context).collect()
}

/// Every context of the run has each planned hand-over, made or missed.
fn whole(run: &Run, what: &str) {
    for t in &run.threads {
        let due = t.wakeup.n + t.missed.n;
        assert_eq!(due, PLANNED, "{what}: {} of thread {}", t.context, t.thread);
        assert_eq!(t.ended, "complete", "{what}");
    }
    for t in of(run, "user") {
        assert!(t.wakeup.min_ns.is_some_and(|ns| ns > 0), "{what}: received before it was sent");
    }
}

#[test]
fn each_medium_accounts_for_every_hand_over() {
    let folder = folder();
    for medium in MEDIA {
        for between in ["threads", "processes"] {
            let words = [medium, "--between", between];
            let Some(run) = run(folder.path(), &words) else { continue };
            whole(&run, medium);
            let (to, from) = (of(&run, "user").len(), of(&run, "send").len());
            assert_eq!((to, from), (run.header.plan.cpus.len(), to), "{medium} {between}");
        }
    }
}

#[test]
fn arrangements_record_what_they_promise() {
    let folder = folder();
    let check = |words: &[&str], contexts: &[(&str, usize)]| {
        let Some(run) = run(folder.path(), words) else { return };
        whole(&run, &words.join(" "));
        for (context, n) in contexts {
            let all = of(&run, context);
            let n = if *n == 0 { run.header.plan.cpus.len() } else { *n };
            assert_eq!(all.len(), n, "{words:?}: {context}");
        }
    };
    let there_and_back = [("round-trip", 0), ("return", 0), ("user", 0), ("send", 0)];
    check(&["pipe", "--round-trip", "yes"], &there_and_back);
    check(&["pi-futex", "--round-trip", "yes", "--where", "same"], &there_and_back);
    check(&["mqueue", "--round-trip", "yes", "--between", "processes"], &there_and_back);
    check(&["signal", "--hops", "5"], &[("user", 5), ("ring", 1), ("send", 1)]);
    check(&["eventfd", "--hops", "3", "--between", "processes"], &[("user", 3), ("ring", 1)]);
    check(&["condvar", "--receivers", "4"], &[("user", 4), ("send", 1)]);
    check(&["barrier", "--receivers", "3", "--between", "processes"], &[("user", 3)]);
    for carrier in ["unix-stream", "unix-dgram", "tcp", "udp"] {
        check(&["socket", "--carrier", carrier], &[("user", 0)]);
    }
}

#[test]
fn a_ring_is_as_late_as_its_hops_together() {
    let folder = folder();
    let Some(run) = run(folder.path(), &["futex", "--hops", "3"]) else { return };
    let sum = |context: &str| -> i128 {
        of(&run, context).iter().filter_map(|t| t.wakeup.sums.as_ref()).map(|s| s.s1).sum()
    };
    // The whole has the hops in it, and what each spends before it hands on.
    assert!(sum("ring") >= sum("user"), "{} < {}", sum("ring"), sum("user"));
}

#[test]
fn a_sender_that_stalls_fails_the_run() {
    let folder = folder();
    for between in ["threads", "processes"] {
        let file = format!("{between}.jsonl");
        let out = call(
            folder.path(),
            &[
                "measure",
                "futex",
                "--between",
                between,
                "--plant",
                "stall",
                "-q",
                "--warm-up",
                "20ms",
                "-D",
                "500ms",
                "--deadline",
                "4ms",
                "-o",
                &file,
            ],
        );
        assert_eq!(status(&out), 1, "{between}: {}", stderr(&out));
        let run = read(&folder.path().join(file));
        for t in of(&run, "user") {
            assert!(t.wakeup.max_ns.is_some_and(|ns| ns >= 5_000_000), "{between}");
            // Those that fell due meanwhile were missed, and are there.
            assert!(t.missed.n >= 4 && t.wakeup.n + t.missed.n == 500, "{between}");
        }
    }
}

#[test]
fn what_makes_no_sense_or_is_not_there_is_refused() {
    let folder = folder();
    let refused = |words: &[&str]| {
        let mut all = vec!["measure"];
        all.extend(words);
        let out = call(folder.path(), &all);
        (status(&out), stderr(&out))
    };
    let (code, said) = refused(&["futex", "--where", "moon"]);
    assert!(code == 2 && said.contains("same, sibling, other, node"), "{code} {said}");
    let (code, said) = refused(&["pipe", "--hops", "3", "--round-trip", "yes"]);
    assert!(code == 2 && said.contains("round trip"), "{code} {said}");
    let (code, said) = refused(&["signal", "--hops", "65"]);
    assert!(code == 2 && said.contains("outside 1 to 64"), "{code} {said}");
    let (code, said) = refused(&["socket", "--carrier", "pigeon"]);
    assert!(code == 2 && said.contains("unix-dgram"), "{code} {said}");
    let (code, said) = refused(&["eventfd", "--policy", "deadline:100us/1ms"]);
    // 3: this user may not even ask.
    assert!([2, 3].contains(&code) && said.contains("SCHED_DEADLINE"), "{code} {said}");
    let nodes = std::fs::read_to_string("/sys/devices/system/node/online").unwrap_or_default();
    if nodes.trim() == "0" {
        let (code, said) = refused(&["futex", "--where", "node"]);
        assert!(code == 3 && said.contains("NUMA node"), "{code} {said}");
    }
}

/// Semaphore sets and message queues of this machine, by the kernel's own lists.
fn objects() -> BTreeSet<String> {
    let sets = std::fs::read_to_string("/proc/sysvipc/sem").unwrap_or_default();
    let ids = sets.lines().skip(1).filter_map(|l| l.split_whitespace().nth(1));
    let mut all: BTreeSet<String> = ids.map(|id| format!("semaphores {id}")).collect();
    for folder in ["/dev/mqueue", "/dev/shm"] {
        let names = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let ours = names.map(|e| e.file_name().to_string_lossy().into_owned());
        all.extend(ours.filter(|n| n.contains("tailbound")).map(|n| format!("{folder}/{n}")));
    }
    all
}

#[test]
fn kill_leaves_nothing_behind() {
    if !is_root() {
        return skip("root", "real-time threads and namespaces need root");
    }
    let before = objects();
    for (medium, between) in [
        ("sysv-semaphore", "processes"),
        ("mqueue", "processes"),
        ("pipe", "processes"),
        ("sysv-semaphore", "threads"),
    ] {
        let folder = folder();
        let mut child = tailbound()
            .args(["measure", medium, "--between", between, "-q", "-D", "60s", "-o", "run.jsonl"])
            .current_dir(folder.path())
            .env("TAILBOUND_TEST_HANDOVER", medium)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Until it measures: its file has the first second.
        let begun = Instant::now();
        let measures = || {
            std::fs::read_to_string(folder.path().join("run.jsonl"))
                .is_ok_and(|text| text.contains("\"type\":\"second\""))
        };
        while !measures() && begun.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(50));
        }
        assert!(measures(), "{medium}: it never began");
        let own = children(child.id());
        assert_eq!(own.is_empty(), between == "threads", "{medium} {between}: {own:?}");
        child.kill().unwrap();
        child.wait().unwrap();
        let gone = || own.iter().all(|pid| !Path::new(&format!("/proc/{pid}")).exists());
        let killed = Instant::now();
        while !(gone() && objects().is_subset(&before)) && killed.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(gone(), "{medium}: its processes outlive it");
        let left: Vec<String> = objects().difference(&before).cloned().collect();
        assert!(left.is_empty(), "{medium} left {left:?}");
    }
}

#[test]
fn a_guardian_removes_the_semaphores_of_an_ordinary_user() {
    if !is_root() {
        return skip("root", "becoming another user needs root");
    }
    let (folder, exe) = folder_for_everybody();
    let mut child = std::process::Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"])
        .args(["--bounding-set=-all", "--"])
        .arg(&exe)
        .args(["measure", "sysv-semaphore", "-q", "-D", "60s", "-o", "run.jsonl"])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Field 5 of the list is the owner.
    let theirs = || {
        let sets = std::fs::read_to_string("/proc/sysvipc/sem").unwrap_or_default();
        sets.lines().filter(|l| l.split_whitespace().nth(4) == Some("65534")).count()
    };
    let within = |wanted: &dyn Fn() -> bool| {
        let begun = Instant::now();
        while !wanted() && begun.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(20));
        }
        wanted()
    };
    let measures = within(&|| folder.path().join("run.jsonl").exists() && theirs() > 0);
    let guarded = within(&|| !children(child.id()).is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(measures && guarded, "it never began");
    assert!(within(&|| theirs() == 0), "its semaphores outlive it");
}

/// Processes whose parent is `pid`.
fn children(pid: u32) -> Vec<u32> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = all.filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|p| {
        std::fs::read_to_string(format!("/proc/{p}/stat")).is_ok_and(|stat| {
            let after = stat.rsplit_once(')').map(|(_, rest)| rest.to_owned());
            after.and_then(|r| r.split_whitespace().nth(1)?.parse().ok()) == Some(pid)
        })
    })
    .collect()
}
