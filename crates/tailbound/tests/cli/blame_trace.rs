// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blame` of files that trace-cmd and perf recorded, and of texts. Their origin: the README of each folder of `tailbound-trace/tests/data`.

use std::path::Path;
use std::process::Command;

use crate::{call, folder, status, stderr, stdout};

const FILE: &str = "linux-6.1-rt-v7-zstd.dat";

fn copied(folder: &Path, name: &str, to: &str) {
    let from = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../explain/tailbound-trace/tests/data/trace-cmd");
    std::fs::copy(from.join(name), folder.join(to)).unwrap();
}

#[test]
fn a_trace_is_told_as_text_json_page_and_perfetto_trace() {
    let folder = folder();
    // By what is in it, whatever its name.
    copied(folder.path(), FILE, "mine.bin");
    let words = ["blame", "mine.bin", "--html", "p.html", "--perfetto", "p.pftrace"];
    let out = call(folder.path(), &words);
    assert_eq!(status(&out), 0, "{}", stderr(&out));
    let text = stdout(&out);
    for word in ["cyclictest", "clock: mono", "version 7", "no workqueue:workqueue_execute_start"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let length = |name: &str| folder.path().join(name).metadata().unwrap().len();
    assert!(length("p.html") > 10_000 && length("p.pftrace") > 10_000);
    let again = call(folder.path(), &words);
    assert_eq!(status(&again), 2, "existing files are kept: {}", stderr(&again));

    let out = call(folder.path(), &["blame", "mine.bin", "--json", "--comm", "cyclictest"]);
    let json: serde_json::Value = serde_json::from_str(&stdout(&out)).unwrap();
    assert_eq!(json["trace"]["clock"], "mono");
    assert_eq!(json["trace"]["records"], 581, "as trace-cmd report counts");
    let threads = json["threads"].as_array().unwrap();
    assert!(!threads.is_empty() && threads.iter().all(|t| t["name"] == "cyclictest"), "{json}");
}

#[test]
fn a_trace_that_cannot_serve_says_what_to_do() {
    let folder = folder();
    copied(folder.path(), "linux-6.12-rt-v6-two.dat", "whole.dat");
    let whole = std::fs::read(folder.path().join("whole.dat")).unwrap();
    std::fs::write(folder.path().join("cut.dat"), &whole[..whole.len() - 5000]).unwrap();
    let out = call(folder.path(), &["blame", "cut.dat", "--all"]);
    assert_eq!(status(&out), 0, "{}", stderr(&out));
    assert!(stdout(&out).contains("cut off at byte"), "{}", stdout(&out));
    std::fs::write(folder.path().join("short.dat"), &whole[..1000]).unwrap();
    let out = call(folder.path(), &["blame", "short.dat"]);
    assert_eq!(status(&out), 2);
    assert!(stderr(&out).contains("it ends at byte 1000"), "{}", stderr(&out));
    // The event is there under another name: as if it had not been recorded.
    let at = whole.windows(18).position(|w| w == b"name: sched_waking").unwrap();
    let mut without = whole;
    without[at + 6..at + 18].copy_from_slice(b"sched_nothin");
    std::fs::write(folder.path().join("without.dat"), &without).unwrap();
    let out = call(folder.path(), &["blame", "without.dat"]);
    assert_eq!(status(&out), 2);
    let text = stderr(&out);
    assert!(
        text.contains("no sched:sched_waking") && text.contains("trace-cmd record -C mono"),
        "{text}"
    );
}

#[test]
fn traces_as_text_are_told_in_the_same_words() {
    let folder = folder();
    let from =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../explain/tailbound-trace/tests/data/texts");
    for name in ["posted-wakeup_rt-6.5-rt.txt", "irqsoff-4.19.txt", "timehist-4.19.txt"] {
        std::fs::copy(from.join(name), folder.path().join(name)).unwrap();
    }
    let out = call(folder.path(), &["blame", "posted-wakeup_rt-6.5-rt.txt"]);
    assert_eq!(status(&out), 0, "{}", stderr(&out));
    let text = stdout(&out);
    for word in [
        "kernel code that cannot be preempted",
        "1.69 ms late on CPU 0 (cyclictest-217)",
        "(system call munmap)",
        "Linux 6.5.0-rt6",
        "What to do",
    ] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let out = call(folder.path(), &["blame", "irqsoff-4.19.txt"]);
    let text = stdout(&out);
    assert!(text.contains("a section of 259 µs on CPU 2 (tar-6143)"), "{text}");
    let out = call(folder.path(), &["blame", "timehist-4.19.txt", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&stdout(&out)).unwrap();
    assert_eq!(json["trace"]["format"], "timehist");
    assert_eq!(json["records"][0]["latency_ns"], 800_000);
    assert!(json["threads"][0].get("priority").is_none(), "not known: {json}");
}

/// `blame WORDS` with what `cat FILE | FILTER` writes on standard input.
fn piped(file: &Path, filter: &str, words: &[&str]) -> std::process::Output {
    let line =
        format!("{filter} < {} | {} blame \"$@\"", file.display(), env!("CARGO_BIN_EXE_tailbound"));
    let mut shell = Command::new("sh");
    shell.args(["-c", &line, "sh"]).args(words).output().unwrap()
}

#[test]
fn a_trace_comes_through_a_pipe_packed_or_not() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../explain/tailbound-trace/tests/data");
    let text = data.join("texts/irqsoff-4.19.txt");
    for filter in ["cat", "gzip"] {
        for name in ["-", "/dev/stdin"] {
            let out = piped(&text, filter, &[name]);
            assert_eq!(status(&out), 0, "{filter} {name}: {}", stderr(&out));
            assert!(stdout(&out).contains("a section of 259 µs on CPU 2 (tar-6143)"), "{filter}");
        }
    }
    // A run is one too; that it has no causes is said of the run.
    let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile/data/run.tailbound.jsonl");
    let out = piped(&run, "cat", &["-"]);
    assert!(stderr(&out).contains("made without --blame"), "{}", stderr(&out));
    for (file, tool) in
        [("perf/linux-6.18-mono.data", "perf"), ("trace-cmd/linux-6.12-rt-v6-two.dat", "trace-cmd")]
    {
        let out = piped(&data.join(file), "cat", &["-"]);
        assert_eq!(status(&out), 2);
        let said = format!(
            "a trace of {tool} is read in several places: give the name of the unpacked file"
        );
        assert!(stderr(&out).contains(&said), "{}", stderr(&out));
    }
}

#[test]
fn a_file_of_perf_is_told_in_the_same_words() {
    let folder = folder();
    let from = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../explain/tailbound-trace/tests/data/perf/linux-6.18-mono.data");
    std::fs::copy(&from, folder.path().join("perf.data")).unwrap();
    let out = call(folder.path(), &["blame", "perf.data", "--html", "p.html"]);
    assert_eq!(status(&out), 0, "{}", stderr(&out));
    for word in ["python3", "clock: mono", "A file of perf (6.1.187)"] {
        assert!(stdout(&out).contains(word), "{word}: {}", stdout(&out));
    }
    let out = call(folder.path(), &["blame", "perf.data", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&stdout(&out)).unwrap();
    assert_eq!(json["trace"]["recorder"], "6.1.187");
    assert!(json["records"].as_array().unwrap().len() > 5, "{json}");

    std::fs::write(folder.path().join("pipe.data"), b"PERFILE2\x10\0\0\0\0\0\0\0").unwrap();
    let out = call(folder.path(), &["blame", "pipe.data"]);
    assert_eq!(status(&out), 2);
    assert!(stderr(&out).contains("perf script -i FILE > FILE.txt"), "{}", stderr(&out));
}
