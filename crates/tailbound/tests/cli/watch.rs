// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tailbound watch`: a program with planted waits within its cycle. What is asserted is what the program
//! does by its own text (its period, where it waits), never how long this machine takes for it.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::observe::{able, instances, tracing};
use crate::{PATIENCE, call, folder, skip, status, stderr};

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/watch/control.c");

/// The example, compiled; `None` without a C compiler.
fn control(folder: &Path) -> Option<String> {
    let program = folder.join("control");
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-pthread", "-o"]).arg(&program).arg(SOURCE).stderr(Stdio::null());
    if !cc.status().is_ok_and(|s| s.success()) {
        skip("cc", "a C compiler makes the watched program");
        return None;
    }
    Some(program.display().to_string())
}

fn watch(folder: &Path, words: &[&str]) -> Output {
    let all: Vec<&str> =
        [env!("CARGO_BIN_EXE_tailbound"), "watch", "-q"].iter().chain(words).copied().collect();
    tracing(&all).current_dir(folder).output().unwrap()
}

fn json(out: &Output) -> Value {
    serde_json::from_slice(&out.stdout).unwrap_or_else(|e| panic!("{e}: {}", stderr(out)))
}

fn thread<'a>(answer: &'a Value, name: &str) -> &'a Value {
    let all = answer["threads"].as_array().unwrap();
    all.iter().find(|t| t["name"] == name).unwrap_or_else(|| panic!("no {name}: {answer}"))
}

#[test]
fn period_and_waits_of_a_started_program_are_found() {
    let folder = folder();
    let Some(program) = able().then(|| control(folder.path())).flatten() else { return };
    let out = watch(
        folder.path(),
        &["--json", "-o", "w.jsonl", "--html", "w.html", "--", &program, "150", "10000", "3000"],
    );
    assert_eq!(status(&out), 0, "{}", stderr(&out));
    let answer = json(&out);
    assert_eq!(answer["command"]["code"], 0);
    let control = thread(&answer, "control");
    assert_eq!(control["pace"]["kind"], "periodic", "{}", control["pace"]);
    let period = control["pace"]["period_ns"].as_i64().unwrap();
    assert!((9_900_000..10_100_000).contains(&period), "{period}");
    assert_eq!(control["activation"]["wait"], "clock_nanosleep to an absolute time");
    assert_eq!(control["policy"], "fifo:60");
    let cycles = control["cycles"].as_u64().unwrap();
    assert!((100..=150).contains(&cycles), "{cycles}");
    // The planted service: each cycle waits in read for its answer.
    let causes = control["causes"].as_array().unwrap();
    let of = |phase: Option<&str>, word: &str| {
        let fits = |c: &&Value| {
            phase.is_none_or(|p| c["phase"] == p)
                && c["who"].as_str().is_some_and(|w| w.contains(word))
        };
        causes.iter().filter(fits).map(|c| c["cycles"].as_u64().unwrap()).sum::<u64>()
    };
    let read = of(Some("blocked"), "in read of descriptor");
    // A busy host may lose events: of those cycles it says so instead.
    let unknown = of(None, "events were lost") + of(None, "events are missing");
    assert!(read > 0 && (read + unknown) * 10 >= cycles * 9, "{causes:#?}");
    assert!(causes.iter().any(|c| c["who"].as_str().is_some_and(|w| w.contains("service"))));
    // To the nanosecond.
    for worst in control["worst"].as_array().unwrap() {
        let parts = worst["parts"].as_array().unwrap();
        let sum: i64 = parts.iter().map(|p| p["ns"].as_i64().unwrap()).sum();
        assert_eq!(sum, worst["latency_ns"].as_i64().unwrap());
    }
    let page = std::fs::read_to_string(folder.path().join("w.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("control"));
    for verb in [
        &["show", "w.jsonl"][..],
        &["report", "w.jsonl"],
        &["bound", "w.jsonl"],
        &["blame", "w.jsonl"],
        &["compare", "w.jsonl", "w.jsonl"],
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tailbound"));
        let out = command.args(verb).current_dir(folder.path()).output().unwrap();
        assert!([0, 5].contains(&status(&out)), "{verb:?} {}: {}", status(&out), stderr(&out));
        let text = String::from_utf8_lossy(&out.stdout);
        assert!(!text.contains("In doubt: thread 0 (response)"), "{verb:?}: {text}");
    }
}

#[test]
fn a_sleep_in_the_cycle_is_told_and_the_deadline_judges_the_response() {
    let folder = folder();
    let Some(program) = able().then(|| control(folder.path())).flatten() else { return };
    // The service's thread waits for a question in read, and sleeps 3 ms in each of its cycles.
    let words = ["--json", "--comm", "service", "--activation", "read", "--deadline", "1ms"];
    let words: Vec<&str> =
        words.into_iter().chain(["--", &program, "150", "10000", "3000"]).collect();
    let out = watch(folder.path(), &words);
    assert_eq!(status(&out), 1, "each response takes longer than the service: {}", stderr(&out));
    let answer = json(&out);
    assert_eq!(answer["verdict"]["outcome"], "not-met", "{}", answer["verdict"]);
    let service = thread(&answer, "service");
    let wait = service["activation"]["wait"].as_str().unwrap();
    assert!(wait.starts_with("read of descriptor"), "{wait}");
    let causes = service["causes"].as_array().unwrap();
    let sleeps = causes.iter().find(|c| {
        c["phase"] == "blocked" && c["who"].as_str().is_some_and(|w| w.contains("clock_nanosleep"))
    });
    let sleeps = sleeps.unwrap_or_else(|| panic!("{causes:#?}"));
    assert!(sleeps["worst_ns"].as_i64().unwrap() >= 3_000_000);
}

#[test]
fn a_running_process_is_watched_and_left_as_it_is() {
    let folder = folder();
    let Some(program) = able().then(|| control(folder.path())).flatten() else { return };
    let mut child = Command::new(&program).args(["1000000", "5000", "500"]).spawn().unwrap();
    let pid = child.id().to_string();
    let out = watch(folder.path(), &["--json", "--pid", &pid, "-D", "1500ms"]);
    let alive = child.try_wait().unwrap().is_none();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(alive, "it goes on");
    assert_eq!(status(&out), 0, "{}", stderr(&out));
    let answer = json(&out);
    let control = thread(&answer, "control");
    let period = control["pace"]["period_ns"].as_i64().unwrap();
    assert!((4_950_000..5_050_000).contains(&period), "{period}");
    assert!(answer["command"].is_null());
}

#[test]
fn a_signal_ends_both_and_nothing_is_left() {
    let folder = folder();
    let Some(program) = able().then(|| control(folder.path())).flatten() else { return };
    let exe = env!("CARGO_BIN_EXE_tailbound");
    let mut command =
        tracing(&[exe, "watch", "-q", "--json", "--", &program, "1000000", "5000", "500"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = child.id();
    let begun = Instant::now();
    while instances(pid).is_empty() && begun.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(Duration::from_millis(1500));
    let term = Command::new("kill").args(["-TERM", &pid.to_string()]).status().unwrap();
    assert!(term.success());
    let out = child.wait_with_output().unwrap();
    let answer = json(&out);
    assert_eq!(answer["command"]["signal"], 15, "handed on: {answer}");
    assert!(thread(&answer, "control")["cycles"].as_u64().unwrap() > 0);
    assert!(instances(pid).is_empty());
}

#[test]
fn what_cannot_be_watched_is_refused() {
    for (words, said) in [
        (&["watch"][..], "required"),
        (&["watch", "--pid", "1", "--", "true"], "cannot be used with"),
        (&["watch", "--pid", "999999999"], "no process"),
        (&["watch", "--period", "0us", "--", "true"], "above zero"),
        (&["watch", "--activation", "raed", "--", "true"], "did you mean `read`"),
        (&["watch", "--keep", "0", "--", "true"], "--keep"),
    ] {
        let out = call(Path::new("."), words);
        assert_eq!(status(&out), 2, "{words:?}: {}", stderr(&out));
        assert!(stderr(&out).contains(said), "{words:?}: {}", stderr(&out));
    }
}
