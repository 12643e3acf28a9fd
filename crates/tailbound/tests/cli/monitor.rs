// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tailbound monitor`: a thread of the test that is SCHED_FIFO is found and counted in the kernel. What is asserted is that its
//! wake-ups are there, never how long one took.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::observe::{able, instances, tracing};
use crate::{PATIENCE, folder, is_root, skip};

/// Sleeps 10 ms again and again as `fifo:10`; the kernel ends it if it ever runs for a second.
const SLEEPER: &str = "ulimit -R 1000000 2>/dev/null; exec chrt -f 10 sh -c 'i=0; while [ $i -lt 100000 ]; do sleep 0.01; i=$((i+1)); done'";

/// Ends with the test.
pub(crate) struct Ends(pub(crate) Child);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.kill().unwrap_or_default();
        self.0.wait().map(drop).unwrap_or_default();
    }
}

fn page(port: u16) -> Option<String> {
    let mut client = TcpStream::connect(("127.0.0.1", port)).ok()?;
    client.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").ok()?;
    let mut text = String::new();
    client.read_to_string(&mut text).ok()?;
    Some(text)
}

/// A port that is free now.
pub(crate) fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn a_real_time_thread_is_counted_in_each_window() {
    if !is_root() {
        return skip("root", "programs in the kernel need it");
    }
    let sleeper = Command::new("bash").args(["-c", SLEEPER]).stderr(Stdio::null()).spawn();
    let Ok(sleeper) = sleeper.map(Ends) else { return skip("bash", "it starts a thread") };
    let folder = folder();
    let out = folder.path().join("m.jsonl");
    let port = free_port();
    let mut monitor = Command::new(env!("CARGO_BIN_EXE_tailbound"));
    monitor.args(["monitor", "--every", "1s", "--threshold", "1ns", "-D", "1min", "--out"]);
    monitor.arg(&out).args(["--listen", &format!("127.0.0.1:{port}")]);
    let mut monitor = Ends(monitor.stderr(Stdio::piped()).spawn().unwrap());
    let began = Instant::now();
    let lines = || -> Vec<Value> {
        let text = std::fs::read_to_string(&out).unwrap_or_default();
        text.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
    };
    let of = |all: &[Value], kind: &str| all.iter().filter(|l| l["type"] == kind).count();
    while of(&lines(), "window") < 2 {
        if let Some(ended) = monitor.0.try_wait().unwrap() {
            let mut why = String::new();
            monitor.0.stderr.take().unwrap().read_to_string(&mut why).unwrap();
            assert_eq!(ended.code(), Some(3), "{why}");
            return skip("bpf", why);
        }
        assert!(began.elapsed() < PATIENCE, "{:?}", lines());
        std::thread::sleep(Duration::from_millis(100));
    }
    let page = page(port).unwrap();
    assert!(
        page.contains("tailbound_wakeup_wait_seconds_count{comm=\"sleep\",policy=\"fifo:10\"}"),
        "{page}"
    );
    // As a service manager ends it.
    let pid = monitor.0.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert_eq!(monitor.0.wait().unwrap().code(), Some(0));
    drop(sleeper);
    let all = lines();
    assert_eq!((of(&all, "begin"), of(&all, "end")), (1, 1));
    assert_eq!(all.last().unwrap()["type"], "end");
    assert!(of(&all, "late") > 0);
    let windows: Vec<&Value> = all.iter().filter(|l| l["type"] == "window").collect();
    assert_eq!(all.last().unwrap()["windows"], windows.len());
    let threads = windows.iter().flat_map(|w| w["threads"].as_array().unwrap());
    let ours: Vec<&Value> = threads.filter(|t| t["policy"] == "fifo:10").collect();
    assert!(!ours.is_empty(), "{windows:?}");
    for thread in ours {
        let n = thread["n"].as_u64().unwrap();
        let counts = thread["histogram"]["count"].as_array().unwrap();
        assert_eq!(counts.iter().map(|c| c.as_u64().unwrap()).sum::<u64>(), n, "{thread}");
        let longest = thread["histogram"]["upper_ns"].as_array().unwrap().last().unwrap();
        let worst = thread["worst"]["wait_ns"].as_u64().unwrap();
        assert!(worst <= longest.as_u64().unwrap().max(7), "{thread}");
        assert!(thread["worst"]["before"]["comm"].is_string());
    }
}

/// The files of the recorder.
fn dumps(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<_> = entries.map(|e| e.unwrap().path()).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "dat"));
    paths.sort();
    paths
}

#[test]
fn a_late_wake_up_has_a_file_that_blame_reads_and_a_kill_leaves_no_instance() {
    if !able() {
        return;
    }
    let sleeper = Command::new("bash").args(["-c", SLEEPER]).stderr(Stdio::null()).spawn();
    let Ok(_sleeper) = sleeper.map(Ends) else { return skip("bash", "it starts a thread") };
    let folder = folder();
    let (out, late) = (folder.path().join("m.jsonl"), folder.path().join("late"));
    let mut monitor = tracing(&[env!("CARGO_BIN_EXE_tailbound"), "monitor"]);
    monitor.args(["--every", "1s", "--threshold", "1ns", "-D", "1min", "--keep", "2"]);
    monitor.arg("--record").arg(&late).arg("--out").arg(&out);
    let mut monitor = Ends(monitor.stderr(Stdio::piped()).spawn().unwrap());
    let began = Instant::now();
    let lines = || -> Vec<Value> {
        let text = std::fs::read_to_string(&out).unwrap_or_default();
        text.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
    };
    let dump = loop {
        let all = lines();
        // In its window too, which names the latest of a thread; and kept still.
        let windows = all.iter().filter(|l| l["type"] == "window");
        let threads = windows.flat_map(|w| w["threads"].as_array().unwrap());
        let recorded: Vec<&Value> = threads.map(|t| &t["recorded"]["file"]).collect();
        let kept = dumps(&late);
        let mut dumped = all.iter().filter(|l| l["type"] == "dump");
        if let Some(dump) = dumped.find(|d| {
            let is_kept = kept.iter().any(|k| k.to_str() == d["file"].as_str());
            // The first may be of a wake-up before the recording began.
            is_kept && recorded.contains(&&d["file"]) && d["culprit"]["cause"].is_string()
        }) {
            break dump.clone();
        }
        if let Some(ended) = monitor.0.try_wait().unwrap() {
            let mut why = String::new();
            monitor.0.stderr.take().unwrap().read_to_string(&mut why).unwrap();
            assert_eq!(ended.code(), Some(3), "{why}");
            return skip("bpf", why);
        }
        assert!(began.elapsed() < PATIENCE, "{all:?}");
        std::thread::sleep(Duration::from_millis(100));
    };
    let blamed = Command::new(env!("CARGO_BIN_EXE_tailbound"))
        .args(["blame", "--json", "--above", "1ns"])
        .arg(dump["file"].as_str().unwrap())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&blamed.stdout);
    assert!(blamed.status.success(), "{text}{}", String::from_utf8_lossy(&blamed.stderr));
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["trace"]["damaged"], 0, "{text}");
    // Unless they are hidden from root itself.
    let kallsyms = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    if kallsyms.lines().any(|l| !l.starts_with("0000000000000000 ")) {
        let unnamed = format!("{text}{}", String::from_utf8_lossy(&blamed.stderr));
        assert!(!unnamed.contains("does not tell the kernel's functions"), "{unnamed}");
    }
    // Its instance goes although it cannot say so any more.
    let pid = monitor.0.id();
    assert_eq!(instances(pid).len(), 1);
    assert!(Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap().success());
    monitor.0.wait().unwrap();
    while !instances(pid).is_empty() {
        assert!(began.elapsed() < PATIENCE, "{:?}", instances(pid));
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_trace_instance_counts_the_same_threads_and_a_kill_leaves_none() {
    if !able() {
        return;
    }
    let sleeper = Command::new("bash").args(["-c", SLEEPER]).stderr(Stdio::null()).spawn();
    let Ok(sleeper) = sleeper.map(Ends) else { return skip("bash", "it starts a thread") };
    let folder = folder();
    let out = folder.path().join("m.jsonl");
    let mut monitor = tracing(&[env!("CARGO_BIN_EXE_tailbound"), "monitor", "--by", "instance"]);
    monitor.args(["--every", "1s", "--threshold", "1ns", "--probe", "-D", "1min", "--out"]);
    let mut monitor = Ends(monitor.arg(&out).stderr(Stdio::piped()).spawn().unwrap());
    let lines = || -> Vec<Value> {
        let text = std::fs::read_to_string(&out).unwrap_or_default();
        text.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
    };
    // Its shell lives from one window to the next, what it starts does not.
    let (shell, own) = (sleeper.0.id(), "tailbound-probe");
    let threads = || -> Vec<Value> {
        let windows = lines().into_iter().filter(|l| l["type"] == "window");
        windows.flat_map(|w| w["threads"].as_array().unwrap().clone()).collect()
    };
    let is_counted = |threads: &[Value]| {
        let of_shell = threads.iter().any(|t| t["tid"] == shell && t["n"].as_u64() > Some(1));
        of_shell && threads.iter().any(|t| t["comm"] == own)
    };
    until(&mut monitor, || is_counted(&threads()).then_some(())).unwrap();
    let all = lines();
    assert_eq!(all[0]["way"], "instance");
    assert!(all.iter().any(|l| l["type"] == "late" && l["policy"] == "fifo:10"), "{all:?}");
    for thread in threads() {
        if thread["tid"] == shell {
            assert_eq!((&thread["policy"], &thread["kernel"]), (&"fifo:10".into(), &false.into()));
        }
        assert_eq!(thread["probe"] == true, thread["comm"] == own, "{thread}");
        let counts = thread["histogram"]["count"].as_array().unwrap();
        let n: u64 = counts.iter().map(|c| c.as_u64().unwrap()).sum();
        assert_eq!(Some(n), thread["n"].as_u64(), "{thread}");
    }
    let pid = monitor.0.id();
    assert_eq!(instances(pid).len(), 1);
    assert!(Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap().success());
    monitor.0.wait().unwrap();
    let began = Instant::now();
    while !instances(pid).is_empty() {
        assert!(began.elapsed() < PATIENCE, "{:?}", instances(pid));
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn what_does_not_go_together_is_said() {
    for (words, why) in [
        (
            &["--by", "instance", "--threshold", "1ms", "--record", "d"][..],
            "--record needs --by bpf",
        ),
        (&["--starving", "1s"], "--starving: 1s is below 2.00 s"),
        (&["--starving", "off", "--boost-starving", "20us/1s"], "needs --starving TIME"),
        (&["--boost-starving", "1s/20us"], "write for example 20us/1s"),
        (&["--probe", "one"], "no CPU's number"),
        (&["--probe", "65000"], "65000"),
    ] {
        if words[0] == "--probe" && !is_root() {
            continue;
        }
        let out = Command::new(env!("CARGO_BIN_EXE_tailbound")).arg("monitor").args(words).output();
        let out = out.unwrap();
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        // A kernel without any way says that first.
        assert!(out.status.code() == Some(3) || said.contains(why), "{words:?}: {said}");
        assert!(matches!(out.status.code(), Some(2 | 3)), "{words:?}: {said}");
    }
}

/// Waits until `done` gives something; `None`: this machine cannot, which was said.
pub(crate) fn until<T>(monitor: &mut Ends, mut done: impl FnMut() -> Option<T>) -> Option<T> {
    let began = Instant::now();
    loop {
        if let Some(found) = done() {
            return Some(found);
        }
        if let Some(ended) = monitor.0.try_wait().unwrap() {
            let mut why = String::new();
            let stderr = monitor.0.stderr.take();
            stderr.map(|mut s| s.read_to_string(&mut why)).transpose().unwrap();
            assert_eq!(ended.code(), Some(3), "{why}");
            skip("bpf", why);
            return None;
        }
        assert!(began.elapsed() < PATIENCE, "it waits in vain");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_full_disk_is_counted_and_it_goes_on_when_there_is_room_again() {
    if !is_root() {
        return skip("root", "programs in the kernel need it");
    }
    let folder = folder();
    let script = "mount -t tmpfs -o size=64k tmpfs \"$1\" || exit 3; exec \"$0\" monitor --every 1s -D 2min --out \"$1/m\"";
    let mut monitor = Command::new("unshare");
    monitor.args(["-m", "sh", "-c", script, env!("CARGO_BIN_EXE_tailbound")]).arg(folder.path());
    let said = tempfile::NamedTempFile::new().unwrap();
    let Ok(monitor) = monitor.stderr(said.reopen().unwrap()).spawn() else {
        return skip("unshare", "it mounts a small disk");
    };
    let mut monitor = Ends(monitor);
    let failures = || {
        let text = std::fs::read_to_string(said.path()).unwrap();
        text.matches("could not be written").count()
    };
    // As the monitor sees it.
    let inside = format!("/proc/{}/root{}", monitor.0.id(), folder.path().display());
    let (file, filler) = (format!("{inside}/m"), format!("{inside}/filler"));
    let windows = || -> Vec<Value> {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let whole: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        whole.into_iter().filter(|l| l["type"] == "window").collect()
    };
    let Some(before) = until(&mut monitor, || Some(windows()).filter(|w| !w.is_empty())) else {
        return;
    };
    assert_eq!(before.last().unwrap()["not_written"], 0);
    let fill = || {
        let mut filler = std::fs::File::options().create(true).append(true).open(&filler).unwrap();
        while filler.write_all(&[b'x'; 64]).is_ok() {}
    };
    fill();
    let had = std::fs::metadata(&file).unwrap().len();
    until(&mut monitor, || {
        // The last page of the file has room left.
        fill();
        (failures() >= 2).then_some(())
    })
    .unwrap();
    // What there was of a window is taken back.
    assert!(std::fs::metadata(&file).unwrap().len() <= had + 4096);
    std::fs::remove_file(&filler).unwrap();
    let counted = || windows().into_iter().find(|w| w["not_written"].as_u64() > Some(0));
    let after = until(&mut monitor, counted).unwrap();
    assert!(after["window"].as_u64() > before.last().unwrap()["window"].as_u64());
}

#[test]
fn a_hangup_opens_the_file_again_and_a_reader_that_goes_ends_it() {
    if !is_root() {
        return skip("root", "programs in the kernel need it");
    }
    let folder = folder();
    let (out, old) = (folder.path().join("m"), folder.path().join("m.1"));
    let mut monitor = Command::new(env!("CARGO_BIN_EXE_tailbound"));
    monitor.args(["monitor", "--every", "1h", "--out"]).arg(&out);
    let mut monitor = Ends(monitor.stderr(Stdio::piped()).spawn().unwrap());
    let begun = |text: String| text.contains("\"begin\"").then_some(());
    let read = || std::fs::read_to_string(&out).unwrap_or_default();
    if until(&mut monitor, || begun(read())).is_none() {
        return;
    }
    std::fs::rename(&out, &old).unwrap();
    let pid = monitor.0.id().to_string();
    assert!(Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
    // No window ends within the hour: it is the signal that did it.
    until(&mut monitor, || begun(read())).unwrap();
    drop(monitor);

    let mut monitor = Command::new(env!("CARGO_BIN_EXE_tailbound"));
    monitor.args(["monitor", "--every", "1s", "-D", "10min"]);
    let mut monitor = Ends(monitor.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    drop(monitor.0.stdout.take());
    let began = Instant::now();
    while monitor.0.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < PATIENCE, "nobody reads it, and it goes on");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(monitor.0.wait().unwrap().code(), Some(0));
}
