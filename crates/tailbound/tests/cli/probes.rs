// SPDX-License-Identifier: MIT OR Apache-2.0
//! What holds for every probe of the catalogue, whatever it measures: it begins or says why it
//! cannot, its run file is whole and accounts for its events, and kill -9 leaves nothing behind.

use std::collections::BTreeSet;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use tailbound_probe::{CATALOGUE, PlanOption, ProbeKind};

use crate::remains::remains;
use crate::{
    PATIENCE, call, call_admitted, folder, is_root, read, skip, status, stderr, stdout, tailbound,
};

/// What a probe must be told, which no default can say; and what has to stay open for it.
pub(crate) fn told(kind: &str) -> (Vec<String>, Option<(OwnedFd, OwnedFd)>) {
    match kind {
        "answer-udp" => (vec!["--address".to_owned(), "127.0.0.1:0".to_owned()], None),
        "answer-uart" => {
            let ends =
                tailbound_sys::terminal::pair(tailbound_sys::terminal::WindowSize::USUAL).unwrap();
            let name = format!("/proc/self/fd/{}", ends.1.as_raw_fd());
            let port = std::fs::read_link(name).unwrap().to_string_lossy().into_owned();
            (vec!["--port".to_owned(), port], Some(ends))
        }
        // No machine of CI has such a chip: the refusal names it.
        "answer-gpio" => {
            let words = ["--chip", "gpiochip4000000", "--in", "0", "--answer", "1"];
            (words.map(str::to_owned).to_vec(), None)
        }
        _ => (Vec::new(), None),
    }
}

/// Marks the processes of one kill, children of children too.
const MARK: &str = "TAILBOUND_TEST_MARK";

#[test]
fn each_begins_or_says_what_it_lacks_and_its_file_is_whole() {
    let folder = folder();
    for kind in CATALOGUE {
        let file = format!("{}.jsonl", kind.name);
        let words = ["measure", kind.name, "-q", "--warm-up", "100ms", "-D", "400ms", "-o", &file];
        let (more, _ends) = told(kind.name);
        let more: Vec<&str> = more.iter().map(String::as_str).collect();
        let out = call_admitted(folder.path(), &[&words[..], &["--json"], &more].concat());
        let (code, said) = (status(&out), stderr(&out));
        let path = folder.path().join(&file);
        if code == 3 && !path.exists() {
            assert!(said.contains(kind.name), "{}: {said}", kind.name);
            // One line, what is missing and what to do: more than the words "cannot".
            assert!(said.len() > kind.name.len() + 40, "{}: {said}", kind.name);
            skip("every-probe", said);
            continue;
        }
        assert!([0, 1, 3, 5].contains(&code), "{}: {code} {said}", kind.name);
        let answer: serde_json::Value = serde_json::from_slice(&out.stdout)
            .unwrap_or_else(|e| panic!("{}: {e}: {}", kind.name, stdout(&out)));
        let run = read(&path);
        assert_eq!(run.header.plan.probe, kind.name);
        assert_eq!(run.header.plan.event.as_deref(), kind.event, "{}", kind.name);
        let end = run.end.as_ref().unwrap_or_else(|| panic!("{}: cut off", kind.name));
        assert_eq!(end.reason, tailbound_core::EndReason::Complete, "{}: {said}", kind.name);
        let outcome = run.verdict.as_ref().unwrap().outcome;
        assert_eq!(i32::from(outcome.exit_status()), code, "{}", kind.name);
        assert_eq!(answer["verdict"]["exit_status"], code, "{}", kind.name);
        assert!(
            run.threads.iter().any(|t| t.context == tailbound_core::Context::User),
            "{}: nobody judged",
            kind.name
        );
        assert!(run.threads.iter().all(|t| t.ended == "complete"), "{}", kind.name);
        let slots: BTreeSet<u32> = run.threads.iter().map(|t| t.thread).collect();
        assert_eq!(slots.len(), run.threads.len(), "{}: a record slot twice", kind.name);
        let mut show = vec!["show", &file];
        let text = stdout(&call(folder.path(), &show));
        assert!(text.contains(kind.event.unwrap_or("activation")), "{}: {text}", kind.name);
        show[0] = "report";
        assert_eq!(status(&call(folder.path(), &show)), 0, "{}", kind.name);
    }
}

#[test]
fn words_that_mean_nothing_are_refused_before_anything_starts() {
    let folder = folder();
    let refused = |words: &[&str], hint: &str| {
        let out = call(folder.path(), words);
        assert_eq!(status(&out), 2, "{words:?}: {}", stderr(&out));
        assert!(stderr(&out).contains(hint), "{words:?}: {}", stderr(&out));
    };
    refused(&["run", "-D", "1s", "--load", "none", "--probe", "nosuch"], "nosuch");
    refused(&["run", "-D", "1s", "--load", "none", "--probe", "cyclic:x=1"], "no option");
    for kind in CATALOGUE {
        let spec = format!("{}:nosuch=1", kind.name);
        refused(&["run", "-D", "1s", "--load", "none", "--probe", &spec], "no option `nosuch`");
        refused(&["measure", kind.name, "-D", "1s", "--nosuch", "1"], "--nosuch");
        let spec = format!("run -D 1s --load none --sleep timerfd --probe {}", kind.name);
        if !kind.takes.contains(&PlanOption::Sleep) {
            refused(&spec.split(' ').collect::<Vec<_>>(), "--sleep");
        }
        for option in kind.options.iter().filter(|o| !o.default.is_empty()) {
            let flag = format!("--{}", option.name);
            let out = call(folder.path(), &["measure", kind.name, "-D", "1s", &flag, "§"]);
            assert_eq!(status(&out), 2, "{} {flag}: {}", kind.name, stderr(&out));
            assert!(stderr(&out).contains(option.name), "{} {flag}: {}", kind.name, stderr(&out));
        }
    }
}

/// Processes that were started with `mark` in their environment, whoever their parent is now.
fn marked(mark: &str) -> Vec<String> {
    let wanted = format!("{MARK}={mark}");
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        if environment.split(|b| *b == 0).any(|word| word == wanted.as_bytes()) {
            let words = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let words = String::from_utf8_lossy(&words).replace('\0', " ");
            // A process that has ended and was not yet collected has no words.
            if !words.is_empty() {
                found.push(format!("{} {words}", entry.file_name().to_string_lossy()));
            }
        }
    }
    found
}

/// Starts a long run of a probe and waits until it measures; `None` where it says what it
/// lacks, which is another test.
fn measuring(
    folder: &Path,
    kind: &ProbeKind,
    more: &[String],
    file: &str,
    mark: &str,
) -> Option<Child> {
    let more: Vec<&str> = more.iter().map(String::as_str).collect();
    measuring_with(folder, kind.name, &more, file, mark)
}

#[expect(clippy::zombie_processes, reason = "every caller waits for it")]
fn measuring_with(
    folder: &Path,
    probe: &str,
    options: &[&str],
    file: &str,
    mark: &str,
) -> Option<Child> {
    let mut child = tailbound()
        .args(["measure", probe])
        .args(options)
        .args(["-q", "--warm-up", "100ms", "-D", "60s", "-o", file])
        .current_dir(folder)
        .env(MARK, mark)
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(folder.join(format!("{file}.err"))).unwrap())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        let text = std::fs::read_to_string(folder.join(file)).unwrap_or_default();
        if text.contains("\"warm-up-over\"") {
            return Some(child);
        }
        if child.try_wait().unwrap().is_some() {
            return None;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(child.kill());
    panic!("{probe} never began");
}

#[test]
fn kill_9_leaves_nothing_of_any_probe() {
    if !is_root() {
        return skip("root", "other users see too little to tell what was left behind");
    }
    let _alone = crate::real_time_work();
    let folder = folder();
    for kind in CATALOGUE {
        let before = remains(0);
        let mark = format!("{}-{}", kind.name, std::process::id());
        let file = format!("{mark}.jsonl");
        let (more, _ends) = told(kind.name);
        let begun = measuring(folder.path(), kind, &more, &file, &mark);
        let Some(mut child) = begun else { continue };
        std::thread::sleep(Duration::from_millis(100));
        let pid = child.id();
        child.kill().unwrap();
        child.wait().unwrap();
        // A guard may need a moment to clean up, and what tests beside this one hold goes by itself.
        let killed = Instant::now();
        let left =
            || (marked(&mark), remains(pid).difference(&before).cloned().collect::<Vec<_>>());
        let clean =
            |(alive, more): &(Vec<String>, Vec<String>)| alive.is_empty() && more.is_empty();
        let mut found = left();
        while !clean(&found) && killed.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(50));
            found = left();
        }
        assert!(clean(&found), "{} left {found:?}", kind.name);
        // Objects of others go when they like; settings do not.
        let setting = |s: &&String| s.starts_with("/proc/") || s.starts_with("/sys/");
        let after = remains(pid);
        let gone: Vec<&String> = before.difference(&after).filter(setting).collect();
        assert!(gone.is_empty(), "{} took away {gone:?}", kind.name);
        // What was measured until then is a valid shorter run.
        let run = read(&folder.path().join(&file));
        let said = std::fs::read_to_string(folder.path().join(format!("{file}.err")));
        let events: Vec<&str> = run.events.iter().map(|e| e.text.as_str()).collect();
        assert!(run.end.is_none(), "{}: {:?} {events:?} {said:?}", kind.name, run.end);
    }
}

/// The owner of the lock is killed in each trial, so that Ctrl-C mostly comes while a new one begins, which none does any more.
#[test]
fn ctrl_c_gives_the_result_so_far_while_a_process_begins() {
    let _alone = crate::real_time_work();
    let folder = folder();
    for n in 0..5 {
        let file = format!("{n}.jsonl");
        let options = ["--deaths", "1", "-a", "0"];
        let Some(mut child) = measuring_with(folder.path(), "pi-process", &options, &file, "")
        else {
            return skip("rt", "no real-time priority here");
        };
        std::thread::sleep(Duration::from_millis(20 + 7 * n));
        crate::send(child.id(), "INT");
        let status = child.wait().unwrap();
        let said = std::fs::read_to_string(folder.path().join(format!("{file}.err"))).unwrap();
        let run = read(&folder.path().join(&file));
        let end = run.end.as_ref().unwrap_or_else(|| panic!("no last line, {status:?}: {said}"));
        assert_eq!(end.reason, tailbound_core::EndReason::Interrupted, "{said}");
    }
}

#[test]
fn ctrl_c_gives_the_result_so_far_of_any_probe() {
    let _alone = crate::real_time_work();
    let folder = folder();
    for kind in CATALOGUE {
        let file = format!("{}-int.jsonl", kind.name);
        let (more, _ends) = told(kind.name);
        let begun = measuring(folder.path(), kind, &more, &file, "");
        let Some(mut child) = begun else { continue };
        let path = folder.path().join(&file);
        let mut ended = None;
        std::thread::sleep(Duration::from_millis(200));
        crate::send(child.id(), "INT");
        let asked = Instant::now();
        while ended.is_none() && asked.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(20));
            ended = child.try_wait().unwrap();
        }
        if ended.is_none() {
            drop(child.kill());
            panic!("{} does not end by Ctrl-C", kind.name);
        }
        let run = read(&path);
        let end = run.end.as_ref();
        let said = std::fs::read_to_string(path.with_extension("jsonl.err")).unwrap_or_default();
        let end = end.unwrap_or_else(|| panic!("{}: no last line, {ended:?}: {said}", kind.name));
        assert_eq!(end.reason, tailbound_core::EndReason::Interrupted, "{}", kind.name);
        assert!(run.verdict.is_some(), "{}", kind.name);
        super::altered::every_change_is_noticed(kind.name, &std::fs::read(&path).unwrap());
    }
}
