// SPDX-License-Identifier: MIT OR Apache-2.0
//! However a run ends, what was measured is there, and nothing else is.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use tailbound_core::verdict::Outcome;

use crate::{PATIENCE, call, folder, is_root, read, skip, status, stderr, stdout, tailbound};

/// Starts a long run and waits until it measures.
#[expect(clippy::zombie_processes, reason = "every caller waits for it")]
fn start(folder: &Path, words: &[&str]) -> Child {
    let mut child = tailbound()
        .args(["run", "-o", "r.tailbound.jsonl", "--warm-up", "100ms", "-q", "--load", "none"])
        .args(words)
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let file = folder.join("r.tailbound.jsonl");
    let begun = Instant::now();
    loop {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        if text.contains("\"warm-up-over\"") {
            return child;
        }
        if begun.elapsed() > PATIENCE {
            drop(child.kill());
            panic!("it never began: {text}");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Waits until `file` holds `mark`.
fn holds(file: &Path, mark: &str) {
    let begun = Instant::now();
    while !std::fs::read_to_string(file).unwrap_or_default().contains(mark) {
        assert!(begun.elapsed() < PATIENCE, "{mark} never came");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn signal(child: &Child, name: &str) {
    crate::send(child.id(), name);
}

fn wait(child: &mut Child, limit: Duration) -> Option<i32> {
    let begun = Instant::now();
    while begun.elapsed() < limit {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status.code().unwrap_or(-1));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(child.kill());
    None
}

#[test]
fn a_signal_ends_the_measurement_first_and_the_result_so_far_is_whole() {
    for name in ["INT", "TERM", "HUP"] {
        let folder = folder();
        let mut child = start(folder.path(), &["-D", "10m", "-d", "10s", "--load", "clock"]);
        holds(&folder.path().join("r.tailbound.jsonl"), "\"type\":\"second\"");
        signal(&child, name);
        let code = wait(&mut child, PATIENCE);
        let run = read(&folder.path().join("r.tailbound.jsonl"));
        let end = run.end.as_ref().expect("a last line");
        assert_eq!(end.reason, tailbound_core::EndReason::Interrupted, "{name}");
        assert!(run.threads.iter().all(|t| t.wakeup.n > 0 && t.ended == "stopped"), "{name}");
        let verdict = run.verdict.as_ref().unwrap();
        assert_ne!(
            verdict.outcome,
            Outcome::Met,
            "{name}: a cut-off run is never met: {}",
            verdict.sentence
        );
        assert_eq!(code, Some(i32::from(verdict.outcome.exit_status())), "{name}");
        assert!(run.events.iter().any(|e| e.event == "stopped" && e.text.contains(name)), "{name}");
        let html = std::fs::read_to_string(folder.path().join("r.html")).unwrap();
        assert!(html.contains("</html>"), "{name}: the report is there");
    }
}

#[test]
fn a_thread_that_sleeps_for_an_hour_is_woken_to_end() {
    let folder = folder();
    let mut child = start(folder.path(), &["-i", "1h", "-l", "3", "--warm-up", "0s"]);
    std::thread::sleep(Duration::from_millis(300));
    signal(&child, "TERM");
    assert!(wait(&mut child, PATIENCE).is_some(), "still asleep");
    assert_eq!(
        read(&folder.path().join("r.tailbound.jsonl")).end.unwrap().reason,
        tailbound_core::EndReason::Interrupted
    );
}

#[test]
fn killed_it_leaves_a_valid_shorter_run_and_no_load() {
    let folder = folder();
    let mark = format!("tailbound-test-{}", std::process::id());
    let mut child = start(
        folder.path(),
        &[
            "-D",
            "10m",
            "--load",
            "hackbench:groups=1",
            "--load-cmd",
            &format!("sleep 4242 & : {mark}; sleep 4243; wait"),
        ],
    );
    // Seconds, and snapshots of the histograms, which come every few of them.
    holds(&folder.path().join("r.tailbound.jsonl"), "\"type\":\"second\"");
    holds(&folder.path().join("r.tailbound.jsonl"), "\"ended\":\"running\"");
    child.kill().unwrap();
    child.wait().unwrap();
    let run = read(&folder.path().join("r.tailbound.jsonl"));
    assert!(run.end.is_none(), "it says that it was cut off");
    assert!(run.seconds.iter().map(|s| s.n).sum::<u64>() > 0, "what was flushed is there");
    let begun = Instant::now();
    while !left(&mark).is_empty() && begun.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(left(&mark), Vec::<String>::new(), "load processes outlive the run");
    let known: u64 = run.threads.iter().map(|t| t.wakeup.late.total()).sum();
    assert!(known > 0, "the histograms so far are there: {known}");
    assert!(run.threads.iter().all(|t| t.ended == "running"));
    let out = call(folder.path(), &["show", "r.tailbound.jsonl"]);
    assert_eq!(status(&out), 0, "{}", stderr(&out));
    assert!(stdout(&out).contains("cut off"), "{}", stdout(&out));
    let out = call(folder.path(), &["report", "r.tailbound.jsonl"]);
    assert_eq!(status(&out), 0, "{}", stderr(&out));
}

/// Processes whose command line holds `mark` or is one of the marked shell's sleeps.
fn left(mark: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(bytes) = std::fs::read(entry.path().join("cmdline")) else { continue };
        let line = String::from_utf8_lossy(&bytes).replace('\0', " ");
        if line.contains(mark) || line.trim() == "sleep 4242" || line.trim() == "sleep 4243" {
            found.push(line);
        }
    }
    found
}

#[test]
fn a_file_that_cannot_be_written_loses_nothing() {
    let folder = folder();
    let out = call(
        folder.path(),
        &["measure", "cyclic", "-l", "100", "-q", "-o", "/dev/full", "--force"],
    );
    assert_eq!(status(&out), 3, "{}", stderr(&out));
    let text = stderr(&out);
    let saved = text.split("saved as ").nth(1).unwrap_or_else(|| panic!("{text}")).trim();
    let run = read(Path::new(saved));
    assert!(run.threads.iter().all(|t| t.wakeup.n + t.missed.n == 100));
    std::fs::remove_file(saved).unwrap();
}

#[test]
fn a_full_disk_is_noticed_before_anything_is_started() {
    if !is_root() {
        return skip("root", "mounting a small file system needs root");
    }
    let folder = folder();
    let small = folder.path().join("small");
    std::fs::create_dir(&small).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=64k none {0} && cd {0} && exec {1} run -D 10m -q -o r.tailbound.jsonl",
        small.display(),
        env!("CARGO_BIN_EXE_tailbound")
    );
    let begun = Instant::now();
    let out =
        std::process::Command::new("unshare").args(["-m", "sh", "-c", &script]).output().unwrap();
    assert_eq!(out.status.code(), Some(3), "{}", stderr(&out));
    assert!(stderr(&out).contains("no room"), "{}", stderr(&out));
    assert!(begun.elapsed() < PATIENCE, "nothing was started");
}

#[test]
fn a_lost_terminal_ends_it_like_a_signal() {
    if std::process::Command::new("script").arg("--version").output().is_err() {
        return skip("root", "there is no script(1) to make a terminal with");
    }
    let folder = folder();
    let exe = env!("CARGO_BIN_EXE_tailbound");
    // Tests under nohup or in the background of a shell inherit ignored signals, which is no
    // property of the program; and not every shell replaces itself by its last command.
    let run = format!("exec {exe} run -D 10m --load none --warm-up 100ms -o r.tailbound.jsonl");
    let mut terminal = std::process::Command::new("env")
        .args(["--default-signal=HUP,INT,QUIT", "script", "-q", "-c", &run, "/dev/null"])
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let file = folder.path().join("r.tailbound.jsonl");
    holds(&file, "\"warm-up-over\"");
    // The master side goes away: the kernel hangs up the terminal.
    terminal.kill().unwrap();
    terminal.wait().unwrap();
    // It does not run on without a terminal.
    holds(&file, "\"type\":\"end\"");
    assert_eq!(read(&file).end.unwrap().reason, tailbound_core::EndReason::Interrupted);
}

/// signal(7)
const SIGINT: u32 = 2;

/// Has it a thread beside its first that was made when SIGINT was blocked? It is the first that waits for signals, and
/// `SigBlk` of a thread in sigtimedwait(2) leaves out what it waits for. The others have the mask of the instant they were made.
fn measures(child: &Child) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", child.id()));
    tasks.into_iter().flatten().flatten().any(|task| {
        let first = task.file_name().to_str() == Some(&child.id().to_string());
        let status = std::fs::read_to_string(task.path().join("status")).unwrap_or_default();
        let blocked = status
            .lines()
            .find_map(|line| u64::from_str_radix(line.strip_prefix("SigBlk:")?.trim(), 16).ok());
        !first && blocked.is_some_and(|set| set >> (SIGINT - 1) & 1 == 1)
    })
}

/// A start that is refused, or ended before anything was measured, costs nothing that was there.
#[test]
fn an_older_result_stays_until_the_new_measurement_begins() {
    let folder = folder();
    let file = folder.path().join("r.tailbound.jsonl");
    let old = "an older result\n".repeat(1000);
    std::fs::write(&file, &old).unwrap();
    let words = ["run", "-o", "r.tailbound.jsonl", "--force", "-q", "--report", "-"];
    let same = |what: &str| assert_eq!(std::fs::read_to_string(&file).unwrap(), old, "{what}");
    let nowhere = ["--load", "disk:path=/nonexistent/folder", "-D", "1s"];
    let out = call(folder.path(), &[&words[..], &nowhere].concat());
    assert_ne!(status(&out), 0, "{}", stderr(&out));
    same("a load that cannot start");
    // In the warm-up: by a signal, and by a kill.
    for name in ["INT", "KILL"] {
        let mut child = tailbound()
            .args(words)
            .args(["--load", "none", "-D", "10m", "--warm-up", "10m", "-p", "other"])
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // A thread that looks at the machine comes before, and has no signal blocked: what is sent then ends the run too early, or is lost
        // where these tests were started with SIGINT ignored, as a shell starts what it has in the background.
        let begun = Instant::now();
        while !measures(&child) {
            assert!(begun.elapsed() < PATIENCE, "it never began");
            std::thread::sleep(Duration::from_millis(50));
        }
        same("while it warms up");
        signal(&child, name);
        assert!(wait(&mut child, PATIENCE).is_some(), "{name}: it goes on");
        same(name);
    }
    // Where the file system has no nameless files, a kill leaves a hidden one.
    let hidden = |e: &std::fs::DirEntry| e.file_name().to_string_lossy().starts_with(".tailbound-");
    let names = std::fs::read_dir(folder.path()).unwrap().flatten();
    let names: Vec<_> = names.filter(|e| !hidden(e)).collect();
    assert_eq!(names.len(), 1, "nothing else is left: {names:?}");
    // And from then on the name stands for the new run, however it ends.
    let mut child = start(folder.path(), &["-D", "10m", "--force", "-p", "other"]);
    signal(&child, "KILL");
    assert!(wait(&mut child, Duration::from_secs(60)).is_some());
    assert!(read(&file).end.is_none());
}

/// Room for a month is looked for at the start, and taken for minutes.
#[test]
fn a_long_run_takes_room_in_steps_and_leaves_others_some() {
    if !is_root() {
        return skip("root", "mounting a file system in memory needs root");
    }
    let folder = folder();
    let small = folder.path().join("small");
    std::fs::create_dir(&small).unwrap();
    let exe = env!("CARGO_BIN_EXE_tailbound");
    let words = "-q -o r.tailbound.jsonl --load none -p other -a 0 --warm-up 10ms";
    let mounted = |size: &str, then: &str| {
        let script =
            format!("mount -t tmpfs -o size={size} none {0} && cd {0} && {then}", small.display());
        std::process::Command::new("unshare").args(["-m", "sh", "-c", &script]).output().unwrap()
    };
    let out = mounted("64m", &format!("exec {exe} run -D 240h {words}"));
    assert_eq!(out.status.code(), Some(3), "{}", stderr(&out));
    assert!(stderr(&out).contains("left for others"), "{}", stderr(&out));
    // Ten days, 350 MB: a kill leaves a hundredth of that taken.
    let out = mounted(
        "1g",
        &format!(
            "{{ {exe} run -D 240h {words} & i=0; until grep -q warm-up-over r.tailbound.jsonl; \
             do sleep 0.1; i=$((i+1)); [ $i -lt 600 ] || exit 9; done 2>/dev/null; \
             kill -9 $!; wait $! 2>/dev/null; du -k r.tailbound.jsonl; ls -A; }}"
        ),
    );
    let said = stdout(&out);
    if said.is_empty() && stderr(&out).contains("lies in memory") {
        return skip("root", "less than half a gigabyte of memory is available");
    }
    let taken_kib: u64 =
        said.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(u64::MAX);
    assert!((100..4096).contains(&taken_kib), "{said} {}", stderr(&out));
    assert_eq!(said.lines().count(), 2, "one file: {said}");
}
