// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is done when a wake-up is late and when the run is over: commands, signals, a trace; and that nothing of it is left.
//!
//! Late is what no machine can avoid: an ordinary thread is woken more than a microsecond after its time.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tailbound_core::finding::Impact;
use tailbound_core::{EndReason, Run};

use crate::observe::{able, instances, tracing};
use crate::{PATIENCE, call, folder, is_root, read, send, skip, status, stderr, tailbound};

const MEASURE: [&str; 9] =
    ["measure", "cyclic", "-q", "-o", "r.jsonl", "--policy", "other", "--warm-up", "10ms"];

fn measure<'a>(rest: &[&'a str]) -> Vec<&'a str> {
    MEASURE.iter().copied().chain(rest.iter().copied()).collect()
}

/// A child that is not left behind.
struct Guarded(Child);

impl Drop for Guarded {
    fn drop(&mut self) {
        // Where it has ended already there is nothing to kill.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn begun(words: &[&str], folder: &Path) -> Guarded {
    let mut command = tailbound();
    command.args(words).current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null());
    Guarded(command.spawn().unwrap())
}

/// Waits until `is` holds.
fn soon(what: &str, mut is: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is() {
        assert!(begun.elapsed() < PATIENCE, "{what} never came");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Is there a process with these words?
fn is_running(words: &[&str]) -> bool {
    let line = words.join("\0");
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|p| std::fs::read(p.path().join("cmdline")).ok());
    lines.into_iter().any(|l| String::from_utf8_lossy(&l).trim_end_matches('\0') == line)
}

fn text(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap_or_default()
}

fn variable(text: &str, name: &str) -> String {
    let prefix = format!("TAILBOUND_{name}=");
    let mut lines = text.lines().filter_map(|l| l.strip_prefix(&prefix));
    lines.next_back().unwrap_or_else(|| panic!("no {name} in {text}")).to_owned()
}

fn notes(run: &Run) -> Vec<&str> {
    run.events.iter().filter(|e| e.event == "on-late").map(|e| e.text.as_str()).collect()
}

#[test]
fn a_late_wake_up_runs_a_command_and_sends_a_signal_and_the_file_says_so() {
    let folder = folder();
    let sleeper = Command::new("sleep").arg("600").spawn().unwrap();
    let mut sleeper = Guarded(sleeper);
    let whom = format!("{}:TERM", sleeper.0.id());
    let late = "env >late.txt; exit 3";
    let words = ["-b", "1us", "-D", "10m", "--signal", &whom, "--on-late", late];
    let end =
        ["--on-threshold", "shell,command=echo first,second >rtla.txt", "--on-end", "env >end.txt"];
    let out = call(folder.path(), &measure(&[&words[..], &end].concat()));
    assert_eq!(status(&out), 1, "{}", stderr(&out));
    let run = read(&folder.path().join("r.jsonl"));
    assert_eq!(run.end_reason(), EndReason::Rule);

    let told = text(folder.path(), "late.txt");
    let number = |name| variable(&told, name).parse::<i64>().unwrap();
    assert_eq!(
        [variable(&told, "EVENT"), variable(&told, "CONTEXT"), variable(&told, "LIMIT_NS")],
        ["late", "user", "1000"]
    );
    let of = |e: &&tailbound_core::record::ExceedanceRecord| {
        e.error_ns == number("LATENCY_NS") && e.t_ns == number("T_NS")
    };
    let one = run.exceedances.iter().find(of).expect("a wake-up of the run");
    assert_eq!(one.activation.to_string(), variable(&told, "CYCLE"));
    assert_eq!(one.thread.to_string(), variable(&told, "THREAD"));
    let file = folder.path().canonicalize().unwrap().join("r.jsonl");
    assert_eq!(variable(&told, "FILE"), file.display().to_string());
    assert_eq!(text(folder.path(), "rtla.txt"), "first,second\n");

    use std::os::unix::process::ExitStatusExt as _;
    let ended = sleeper.0.wait().unwrap();
    assert_eq!(ended.signal(), Some(15), "it got the signal");
    let notes = notes(&run);
    for note in [
        "rtla.txt`: exit status 0 after",
        "sent SIGTERM to process",
        "exit 3`: exit status 3 after",
    ] {
        assert_eq!(notes.iter().filter(|n| n.contains(note)).count(), 1, "{note}: {notes:?}");
    }
    assert!(run.findings.iter().any(|f| f.id == "acted" && f.title.contains("failed once")));

    let told = text(folder.path(), "end.txt");
    assert_eq!([variable(&told, "EVENT"), variable(&told, "STATUS")], ["end", "1"]);
    assert_eq!(variable(&told, "VERDICT"), run.verdict.unwrap().outcome.word());
}

#[test]
fn a_run_that_is_to_go_on_acts_on_ten_and_counts_the_others() {
    let folder = folder();
    let words = ["-b", "1us", "-i", "2ms", "-D", "2s", "--on-threshold", "continue"];
    let late = ["--on-late", "echo >>late.txt", "--on-end", "false"];
    let out = call(folder.path(), &measure(&[&words[..], &late].concat()));
    let run = read(&folder.path().join("r.jsonl"));
    assert_eq!(run.end_reason(), EndReason::Complete, "it went on");
    let times = text(folder.path(), "late.txt").lines().count();
    assert!((1..=10).contains(&times), "{times}");
    assert_eq!(notes(&run).len(), times);
    let acted = run.findings.iter().find(|f| f.id == "acted").expect("it says so");
    assert!(acted.title.contains("more that were kept one by one started nothing"), "{acted:?}");
    assert!(stderr(&out).contains("--on-end: `false`: exit status 1"), "{}", stderr(&out));
}

#[test]
fn a_killed_run_leaves_no_command_behind() {
    let folder = folder();
    let late = "sleep 4342 & echo >begun; sleep 4343; wait";
    let words =
        measure(&["-d", "1us", "-D", "10m", "--on-late", late, "--on-end", "echo >end.txt"]);
    let mut run = begun(&words, folder.path());
    soon("the command", || is_running(&["sleep", "4342"]) && is_running(&["sleep", "4343"]));
    run.0.kill().unwrap();
    run.0.wait().unwrap();
    soon("their end", || !is_running(&["sleep", "4342"]) && !is_running(&["sleep", "4343"]));
    assert_eq!(text(folder.path(), "end.txt"), "");
}

#[test]
fn ctrl_c_ends_the_command_and_the_end_is_acted_on() {
    let folder = folder();
    let late = "sleep 4344 & sleep 4345; wait";
    let words = measure(&["-d", "1us", "-D", "10m", "--on-late", late, "--on-end", "env >end.txt"]);
    let mut run = begun(&words, folder.path());
    soon("the command", || is_running(&["sleep", "4344"]) && is_running(&["sleep", "4345"]));
    send(run.0.id(), "INT");
    soon("its end", || run.0.try_wait().unwrap().is_some());
    assert!(!is_running(&["sleep", "4344"]) && !is_running(&["sleep", "4345"]));
    let run = read(&folder.path().join("r.jsonl"));
    assert_eq!(run.end_reason(), EndReason::Interrupted);
    assert!(notes(&run).iter().any(|n| n.contains("ended with the run")), "{:?}", notes(&run));
    assert_eq!(variable(&text(folder.path(), "end.txt"), "EVENT"), "end");
}

#[test]
fn a_guard_ends_all_of_a_command_when_its_time_is_over() {
    let folder = folder();
    let guard = |limit: &str, words: &[&str]| {
        let all = [&["action-guard", limit, "--"], words].concat();
        status(&call(folder.path(), &all))
    };
    assert_eq!(guard("200", &["setsid sleep 4346 & sleep 4347"]), 124);
    assert!(!is_running(&["sleep", "4346"]) && !is_running(&["sleep", "4347"]));
    // What it leaves running ends with it.
    assert_eq!(guard("60000", &["sleep 4348 & exit 7"]), 7);
    assert!(!is_running(&["sleep", "4348"]));
    // Whatever a variable holds, it is a word.
    let odd = "ODD=it's \"a\" $(touch owned); `touch owned` \\";
    assert_eq!(guard("60000", &["printf %s \"$ODD\" >odd.txt", odd]), 0);
    assert_eq!(format!("ODD={}", text(folder.path(), "odd.txt")), odd);
    assert!(!folder.path().join("owned").exists());
}

#[test]
fn what_is_wrong_is_refused_before_anything_starts() {
    let folder = folder();
    std::fs::write(folder.path().join("c.toml"), "on-late = \"true\"\n").unwrap();
    let late = ["--on-late", "true"];
    let cases: [(&[&str], &str); 16] = [
        (&["measure", "cyclic", late[0], late[1]], "add --deadline TIME, --break TIME"),
        (&["measure", "cyclic", "-d", "1ms", "--on-late", " "], "--on-late: write a command"),
        (
            &["measure", "cyclic", "-d", "1ms", "--on-threshold", "tell"],
            "the actions are trace[,file=FILE]",
        ),
        (
            &["measure", "cyclic", "-d", "1ms", "--on-threshold", "signal,num=2"],
            "signal,num=N,pid=PID",
        ),
        (&["measure", "cyclic", "--on-end", "shel,command=true"], "the actions are"),
        (
            &["measure", "cyclic", "-d", "1ms", "--signal", "x"],
            "the number of a process, or `parent`",
        ),
        (&["measure", "cyclic", "-d", "1ms", "--signal", "1:TERM"], "process 1"),
        (&["measure", "cyclic", "-d", "1ms", "--signal", "2147483647"], "No such process"),
        (&["measure", "cyclic", "--break", "0s"], "--break: must be more than 0"),
        (&["measure", "cyclic", "--break-irq", "5"], "--break-irq: `5` has no unit"),
        (&["measure", "cyclic", "--break-irq", "5us", "--blame"], "cannot be given with --blame"),
        (
            &["measure", "cyclic", "--trace", "t.dat", "--observe", "auto"],
            "cannot be given with --observe",
        ),
        (&["run", "--trace", "a.dat", "--on-end", "trace,file=b.dat"], "two files are named"),
        (
            &["run", "--until", "exceedance", "-d", "1ms", "--on-threshold", "continue"],
            "ends the run there",
        ),
        (
            &["run", "--rounds", "2", "--on-end", "true", "--", "a:", "b: -i 2ms"],
            "--rounds makes several",
        ),
        // What was received from others has no word for a command at a threshold.
        (&["run", "-c", "c.toml", "-d", "1ms", "--yes"], "unknown field `on-late`"),
    ];
    for (words, hint) in cases {
        let out = call(folder.path(), words);
        assert_eq!(status(&out), 2, "{words:?}: {}", stderr(&out));
        assert!(stderr(&out).contains(hint), "{words:?} lacks `{hint}`: {}", stderr(&out));
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no file is left behind");
}

#[test]
fn without_root_a_trace_is_refused_by_its_name() {
    if is_root() {
        return skip("an ordinary user", "root may trace");
    }
    let folder = folder();
    let out = call(folder.path(), &measure(&["-d", "1us", "--trace", "t.dat"]));
    assert_eq!(status(&out), 3, "{}", stderr(&out));
    assert!(stderr(&out).contains("--trace"), "{}", stderr(&out));
}

#[test]
fn the_trace_around_the_latest_wake_up_is_a_file_of_trace_cmd() {
    if !able() {
        return;
    }
    let folder = folder();
    let trace = |words: &[&str]| {
        let exe = [env!("CARGO_BIN_EXE_tailbound")];
        let all = [&exe[..], &measure(words)].concat();
        let child = tracing(&all).current_dir(folder.path()).stdout(Stdio::null()).spawn();
        let mut child = Guarded(child.unwrap());
        let pid = child.0.id();
        assert_eq!(child.0.wait().unwrap().code(), Some(1));
        assert_eq!(instances(pid).len(), 0, "nothing is left in tracefs");
    };
    let late = "test -s t.dat && echo \"$TAILBOUND_TRACE\" >there.txt";
    // The trace is on before the first activation.
    trace(&["-b", "1us", "-D", "10m", "--warm-up", "1s", "--trace", "t.dat", "--on-late", late]);
    let run = read(&folder.path().join("r.jsonl"));
    assert!(run.findings.iter().any(|f| f.id == "trace-kept"), "{:?}", run.findings);
    let file = folder.path().canonicalize().unwrap().join("t.dat");
    assert_eq!(text(folder.path(), "there.txt").trim(), file.display().to_string());
    let out = call(folder.path(), &["blame", "t.dat", "--all", "--json"]);
    assert_eq!(status(&out), 0, "{}", stderr(&out));
    let out = call(folder.path(), &measure(&["-b", "1us", "--force", "--trace", "t.dat"]));
    assert!(!stderr(&out).contains("t.dat"), "{}", stderr(&out));
    let out = call(folder.path(), &["measure", "cyclic", "-b", "1us", "--trace", "t.dat"]);
    assert!(status(&out) == 2 && stderr(&out).contains("--force"), "{}", stderr(&out));
    match Command::new("trace-cmd").args(["report", "t.dat"]).current_dir(folder.path()).output() {
        Ok(report) => {
            let report = String::from_utf8_lossy(&report.stdout).into_owned();
            assert!(report.contains("sched_switch") && report.contains("hrtimer_expire_entry"));
        }
        Err(_) => skip("trace-cmd", "it is not installed"),
    }
}

#[test]
fn a_late_interrupt_ends_the_run_and_fails_it() {
    if !able() {
        return;
    }
    let folder = folder();
    let exe = [env!("CARGO_BIN_EXE_tailbound")];
    // No interrupt comes within a nanosecond.
    let words = [
        "--break-irq",
        "1ns",
        "--observe",
        "tracepoints",
        "-D",
        "10m",
        "--on-late",
        "env >late.txt",
    ];
    let all = [&exe[..], &measure(&words)].concat();
    let child = tracing(&all).current_dir(folder.path()).stdout(Stdio::null()).spawn();
    let mut child = Guarded(child.unwrap());
    assert_eq!(child.0.wait().unwrap().code(), Some(1));
    let run = read(&folder.path().join("r.jsonl"));
    assert_eq!(run.end_reason(), EndReason::Rule);
    let until = run.events.iter().find(|e| e.event == "until").expect("it says why");
    assert!(
        until.text.starts_with("ended at the first interrupt later than 1 ns"),
        "{}",
        until.text
    );
    assert!(run.findings.iter().any(|f| f.id == "irq-late" && f.impact == Impact::Violation));
    let told = text(folder.path(), "late.txt");
    assert_eq!([variable(&told, "CONTEXT"), variable(&told, "THREAD")], ["irq", ""]);
}
