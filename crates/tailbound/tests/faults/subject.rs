// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is disturbed: a command line in a folder of its own, and how it goes on afterwards.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tailbound_sys::{boot, private, process};

use crate::fault::{Fault, LIMIT, wait};
use crate::files;
use crate::remains::remains;
use crate::small;

/// Statuses that are answers: met, not met, cannot be judged, undecided.
const ANSWERS: [i32; 4] = [0, 1, 3, 5];

/// A command line that is disturbed.
pub(crate) struct Subject {
    pub(crate) name: &'static str,
    words: Vec<&'static str>,
    /// Added to go on in the same folder after a fault.
    again: &'static [&'static str],
    /// Why it cannot run here, where it cannot.
    missing: Option<(&'static str, String)>,
}

/// A measurement under loads that hold files, sockets, mounts and children.
pub(crate) fn run() -> Subject {
    let words = "run -q -D 2s --warm-up 100ms --load hackbench:groups=1 --load file --load mmap \
                 --load timers -o r.tailbound.jsonl --report r.html";
    Subject { name: "run", words: split(words), again: &["--force"], missing: None }
}

/// A measurement that traces: instances, a guard process, settings of the kernel.
pub(crate) fn observed() -> Subject {
    let words = "run -q -D 1s --warm-up 100ms --load none --observe auto -o r.tailbound.jsonl \
                 --report r.html --cpu-dma-latency 0us";
    let missing = see_tracefs().err().map(|why| ("tracefs", why));
    Subject { name: "observed", words: split(words), again: &["--force"], missing }
}

/// Gives this thread, and what it starts, a tracefs where the machine has mounted none.
fn see_tracefs() -> Result<(), String> {
    const INSTANCES: &str = "/sys/kernel/tracing/instances";
    if Path::new(INSTANCES).is_dir() {
        return Ok(());
    }
    private::own_mounts().map_err(|e| e.to_string())?;
    boot::mount("tracefs", "/sys/kernel/tracing", "").map_err(|e| e.to_string())
}

/// Two variants in turn.
pub(crate) fn rounds() -> Subject {
    let mut words = split(
        "run -q --rounds 6 -D 200ms --warm-up 50ms --load none --policy other --out s.rounds --",
    );
    words.extend(["a:", "b: -i 2ms"]);
    Subject { name: "rounds", words, again: &[], missing: None }
}

/// A campaign of two steps.
pub(crate) fn campaign() -> Subject {
    let words = "campaign run small.toml --scale 1 -o c -q";
    Subject { name: "campaign", words: split(words), again: &["--resume"], missing: None }
}

/// A real kernel in virtual time.
pub(crate) fn lab() -> Subject {
    let words = "lab run -k debian:6.12-rt -l 300 -L none -o l.tailbound.jsonl --report l.html -q";
    let mut fetch = Command::new(env!("CARGO_BIN_EXE_tailbound"));
    let fetched = fetch.args(["lab", "kernel", "fetch", "-q", "debian:6.12-rt"]).output().unwrap();
    let missing = (!fetched.status.success()).then(|| {
        let why = String::from_utf8_lossy(&fetched.stderr);
        ("kernels", format!("Debian's kernels cannot be had: {why}"))
    });
    Subject { name: "lab", words: split(words), again: &["--force"], missing }
}

fn split(words: &'static str) -> Vec<&'static str> {
    words.split_whitespace().collect()
}

impl Subject {
    /// How long it takes when nothing disturbs it; `None`: it cannot run here.
    pub(crate) fn undisturbed(&self) -> Option<Duration> {
        if let Some((capability, why)) = &self.missing {
            tailbound_testing::skip(capability, why);
            return None;
        }
        // Whoever loses its parent becomes a child of this process, and is seen.
        process::become_subreaper().unwrap();
        let folder = self.folder();
        // Twice: the first one may have to make a snapshot, or fill a cache.
        for again in [&[][..], self.again] {
            let begun = Instant::now();
            let mut child = self.start(folder.path(), again);
            let status = wait(&mut child).expect("it never ends");
            let code = status.code();
            assert!(code.is_some_and(|c| ANSWERS.contains(&c)), "{}", output_text(folder.path()));
            if !again.is_empty() || self.again.is_empty() {
                let wrong = files::faults(folder.path());
                assert!(wrong.is_empty(), "{}, undisturbed: {wrong:?}", self.name);
                return Some(begun.elapsed());
            }
        }
        None
    }

    fn folder(&self) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        if self.name == "campaign" {
            let lines = |load: &str| {
                let rest = "interval = \"1ms\"\nwarm-up = \"100ms\"\npolicy = \"other\"";
                format!("loops = 800\n{rest}\nload = [\"{load}\"]")
            };
            let steps = [("first", "none"), ("second", "clock")];
            let steps = steps.map(|(id, load)| small::step(id, &lines(load))).concat();
            let text = small::head("[]") + &steps;
            std::fs::write(folder.path().join("small.toml"), text).unwrap();
        }
        folder
    }

    fn start(&self, folder: &Path, more: &[&str]) -> Child {
        // What it says goes where no file of the subject is looked for.
        let log = || File::options().append(true).create(true).open(log(folder)).unwrap();
        // Words of variants stand behind `--`.
        let at = self.words.iter().position(|w| *w == "--").unwrap_or(self.words.len());
        let (head, tail) = self.words.split_at(at);
        Command::new(env!("CARGO_BIN_EXE_tailbound"))
            .env("NO_COLOR", "1")
            .args(head)
            .args(more)
            .args(tail)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(log())
            .stderr(log())
            .spawn()
            .unwrap()
    }

    /// Disturbs it once, looks at what is left, and lets it go on in the same folder.
    pub(crate) fn disturb(&self, fault: Fault, at: Duration, place: &str, round: u32) {
        let folder = self.folder();
        let before = remains(0);
        let mut child = self.start(folder.path(), &[]);
        std::thread::sleep(at);
        let pid = child.id();
        let ended = fault.disturb(&mut child);
        let text = || output_text(folder.path());
        let status = ended.unwrap_or_else(|| panic!("{place}: it does not end: {}", text()));
        if fault.lets_it_end() {
            // Before it took its signals in hand, Ctrl-C ends it as it ends any program.
            let early = fault == Fault::Interrupt && status.code().is_none();
            let answered = status.code().is_some_and(|c| ANSWERS.contains(&c));
            assert!(early || answered, "{place}: {status}: {}", text());
        }
        nothing_is_left(pid, &before, place);
        let wrong = files::faults(folder.path());
        assert!(wrong.is_empty(), "{place}: {wrong:?}");
        // Nothing that a dead one held is in the way of the next, which ends well.
        if round == 0 {
            // Stopped before it had a folder, a campaign is begun, not resumed.
            let begun = self.name != "campaign" || folder.path().join("c").is_dir();
            let mut child = self.start(folder.path(), if begun { self.again } else { &[] });
            let status = wait(&mut child).unwrap_or_else(|| panic!("{place}: then it hangs"));
            let code = status.code();
            assert!(code.is_some_and(|c| ANSWERS.contains(&c)), "{place}: {status}: {}", text());
            nothing_is_left(child.id(), &before, place);
            let wrong = files::faults(folder.path());
            assert!(wrong.is_empty(), "{place}, and again: {wrong:?}");
        }
        drop(std::fs::remove_file(log(folder.path())));
    }
}

/// Beside the folder, so that it is no file of the subject.
fn log(folder: &Path) -> PathBuf {
    folder.with_extension("output")
}

fn output_text(folder: &Path) -> String {
    std::fs::read_to_string(log(folder)).unwrap_or_default()
}

/// Waits until no process and nothing else of `pid` is left.
fn nothing_is_left(pid: u32, before: &BTreeSet<String>, place: &str) {
    let begun = Instant::now();
    loop {
        while process::reap_any().is_some() {}
        let alive = process::descendants(process::own_pid());
        let more: Vec<String> = remains(pid).difference(before).cloned().collect();
        if alive.is_empty() && more.is_empty() {
            break;
        }
        if begun.elapsed() > LIMIT {
            let words = |pid: &process::Pid| {
                let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                format!("{pid} {}", String::from_utf8_lossy(&bytes).replace('\0', " "))
            };
            let alive: Vec<String> = alive.iter().map(words).collect();
            panic!("{place}: left behind: {alive:?} {more:?}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    // Objects of others go when they like; settings do not.
    let after = remains(pid);
    let setting = |s: &&String| s.starts_with("/proc/") || s.starts_with("/sys/");
    let gone: Vec<&String> = before.difference(&after).filter(setting).collect();
    assert!(gone.is_empty(), "{place}: changed {gone:?}");
}
