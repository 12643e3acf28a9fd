// SPDX-License-Identifier: MIT OR Apache-2.0
//! A signal ends every verb, whatever it reads: streams that never end, streams that never bring anything, files of
//! zeros without end, helper programs that ignore signals.
//!
//! A signal that ends nothing is blocked and never taken: such a program would stay for ever. So the limits here are
//! generous, and no test depends on how quick this host is.

use std::fs::File;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tailbound_sys::process;

use crate::{folder, tailbound};

/// What a verb is given to read.
#[derive(Clone, Copy, Debug)]
enum Input {
    /// A pipe that nobody writes to, and nobody closes.
    Silent,
    /// Zeros without end.
    Zeros,
    /// One line again and again.
    Lines(&'static str),
}

const INPUTS: [Input; 4] = [
    Input::Silent,
    Input::Zeros,
    Input::Lines("T: 0 ( 1) P:80 I:1000 C: 1 Min: 1 Act: 1 Avg: 1 Max: 1"),
    Input::Lines(r#"{"type":"second","thread":0}"#),
];
/// Those that are to end a verb: SIGINT, SIGTERM, SIGHUP, SIGQUIT of signal(7). One that this process ignores (under
/// nohup, or behind a shell's `&`) is ignored by its children too, and rightly.
fn signals() -> Vec<i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|l| l.strip_prefix("SigIgn:")).unwrap().trim();
    let ignored = u64::from_str_radix(ignored, 16).unwrap();
    [2, 15, 1, 3].into_iter().filter(|signal| ignored & (1 << (signal - 1)) == 0).collect()
}

/// Verbs that read what their words name, with `-`, a stream's name or a file of many zeros for it.
fn verbs() -> Vec<Vec<&'static str>> {
    [
        "show -",
        "show /dev/stdin",
        "report -",
        "bound -",
        "history -",
        "compare - -",
        "decide -",
        "export -",
        "import -",
        "import -f cyclictest /dev/stdin",
        "import -f raw-u64 -",
        "verify -",
        "run -c /dev/stdin",
        "measure cyclic -c /dev/stdin",
        "campaign show /dev/stdin",
        "campaign run /dev/stdin",
        "tasks /dev/stdin",
        "blame /dev/stdin",
        "check --root /dev/stdin",
        "tune apply /dev/stdin",
        "lab run --target /dev/stdin",
        "lab matrix /dev/stdin",
        "lab repeat /dev/stdin",
        "lab run -k path:/dev/stdin",
        "lab kernel build --source debian:linux-source-6.12 --patch /dev/stdin --name x",
        "lab kernel build --source /dev/stdin --name x",
        "lab kernel build --source ZEROS --name x",
        "lab run -k path:ZEROS",
        "lab repeat ZEROS",
        "import ZEROS",
        "import -f jitterdebugger-raw ZEROS",
        "show ZEROS",
        "verify ZEROS",
        "blame ZEROS",
        "check --root ZEROS",
    ]
    .iter()
    .map(|words| words.split(' ').collect())
    .collect()
}

fn started(here: &Path, words: &[&str], input: Input) -> (Child, Option<Child>) {
    let mut writer = None;
    let stdin = match input {
        Input::Zeros => Stdio::from(File::open("/dev/zero").unwrap()),
        Input::Silent | Input::Lines(_) => {
            let line = if let Input::Lines(line) = input { line } else { "" };
            let words = if line.is_empty() { ["sleep", "600"] } else { ["yes", line] };
            let [program, word] = words;
            let made = std::process::Command::new(program).arg(word).stdout(Stdio::piped()).spawn();
            let pipe = writer.insert(made.unwrap()).stdout.take().unwrap();
            Stdio::from(pipe)
        }
    };
    let child = tailbound()
        .args(words)
        .current_dir(here)
        .env("TAILBOUND_LAB", here.join("lab"))
        .stdin(stdin)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    (child, writer)
}

/// How it ended, within so long.
fn ended(child: &mut Child, within: Duration) -> Option<ExitStatus> {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        if began.elapsed() > within {
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_signal_ends_every_verb_whatever_it_reads() {
    let folder = folder();
    let here = folder.path();
    // Sparse: it takes no disk. Larger than what is read of any file.
    File::create(here.join("ZEROS")).unwrap().set_len(1 << 40).unwrap();
    let (verbs, signals) = (verbs(), signals());
    let mut all = Vec::new();
    for (at, words) in verbs.iter().enumerate() {
        let inputs = if words.contains(&"ZEROS") { &INPUTS[..1] } else { &INPUTS[..] };
        for (n, input) in inputs.iter().enumerate() {
            all.push((words, *input, signals[(at + n) % signals.len()]));
        }
    }
    let mut failed = Vec::new();
    // Some at once: most of them only wait.
    for some in all.chunks(8) {
        let mut running: Vec<_> =
            some.iter().map(|(words, input, _)| started(here, words, *input)).collect();
        // Most refuse what they read meanwhile; who still reads is asked to end.
        std::thread::sleep(Duration::from_millis(400));
        for ((child, _), (_, _, signal)) in running.iter_mut().zip(some) {
            if child.try_wait().unwrap().is_none() {
                process::kill(process::Pid(child.id().cast_signed()), *signal).unwrap();
            }
        }
        for ((child, writer), (words, input, signal)) in running.iter_mut().zip(some) {
            match ended(child, Duration::from_secs(30)) {
                Some(status) => {
                    let by = status.signal().is_none_or(|by| by == *signal);
                    let code = status.code().is_none_or(|c| (0..=5).contains(&c) && c != 4);
                    if !(by && code) {
                        failed.push(format!("{words:?}, {input:?}: {status}"));
                    }
                }
                None => {
                    failed.push(format!("{words:?}, {input:?}: signal {signal} does not end it"));
                    child.kill().unwrap();
                    child.wait().unwrap();
                }
            }
            if let Some(writer) = writer {
                writer.kill().unwrap();
                writer.wait().unwrap();
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
    let left: Vec<_> = std::fs::read_dir(here).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(left.iter().all(|n| n == "ZEROS" || n == "lab"), "{left:?}");
}
