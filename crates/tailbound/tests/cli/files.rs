// SPDX-License-Identifier: MIT OR Apache-2.0
//! show, report, compare, import: from files to answers, and mistakes in files located.

use std::io::Write as _;
use std::process::Stdio;

use crate::{call, folder, read, status, stderr, stdout, tailbound};

const STALLED: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../measure/tailbound-import/tests/fixtures");

fn a_run(folder: &std::path::Path, name: &str) {
    let out = call(
        folder,
        &["run", "-l", "300", "-q", "-o", name, "--warm-up", "10ms", "--load", "none"],
    );
    assert_eq!(status(&out), 0, "{}", stderr(&out));
}

#[test]
fn a_run_is_shown_as_text_json_and_pictures() {
    let folder = folder();
    a_run(folder.path(), "a.tailbound.jsonl");
    let text = stdout(&call(folder.path(), &["show", "a.tailbound.jsonl"]));
    assert!(text.starts_with("Measured"), "{text}");
    assert!(!text.contains('\x1b'), "no colour into a pipe");
    let json: serde_json::Value = serde_json::from_str(&stdout(&call(
        folder.path(),
        &["show", "--json", "a.tailbound.jsonl"],
    )))
    .unwrap();
    assert_eq!(json["verdict"]["outcome"], "measured");
    for which in ["histogram", "survival", "maxima"] {
        let svg = stdout(&call(folder.path(), &["show", "--svg", which, "a.tailbound.jsonl"]));
        assert!(svg.contains("<svg") && svg.contains("</svg>"), "{which}");
    }
    let coloured =
        stdout(&call(folder.path(), &["show", "--color", "always", "a.tailbound.jsonl"]));
    assert!(coloured.contains('\x1b'));
}

#[test]
fn runs_are_compared_and_reported_together() {
    let folder = folder();
    a_run(folder.path(), "a.tailbound.jsonl");
    a_run(folder.path(), "b.tailbound.jsonl");
    let out =
        call(folder.path(), &["compare", "a.tailbound.jsonl", "b.tailbound.jsonl", "-o", "c.html"]);
    assert_eq!(status(&out), 5, "too short for intervals: {}", stderr(&out));
    let text = stdout(&out);
    assert!(text.contains("p99") && text.contains("ratio"), "{text}");
    let html = std::fs::read_to_string(folder.path().join("c.html")).unwrap();
    assert!(html.contains("a.tailbound.jsonl") && html.contains("b.tailbound.jsonl"));
    let json: serde_json::Value = serde_json::from_str(&stdout(&call(
        folder.path(),
        &["compare", "--json", "a.tailbound.jsonl", "b.tailbound.jsonl"],
    )))
    .unwrap();
    assert!(json.is_object());
}

#[test]
fn another_tools_file_goes_wherever_a_run_goes() {
    let folder = folder();
    let fixtures = std::fs::read_dir(STALLED).unwrap().flatten();
    let json = fixtures
        .map(|e| e.path())
        .find(|p| {
            p.file_name().is_some_and(|n| {
                n.to_string_lossy().starts_with("cyclictest")
                    && n.to_string_lossy().ends_with(".json")
            })
        })
        .expect("a cyclictest sample");
    let path = json.to_str().unwrap();
    let out = call(folder.path(), &["import", path, "-o", "c.tailbound.jsonl"]);
    assert_eq!(status(&out), 0, "{}", stderr(&out));
    let run = read(&folder.path().join("c.tailbound.jsonl"));
    assert!(run.header.source.is_some_and(|s| !s.lost.is_empty()), "what it lost is said");
    for words in [
        &["show", path][..],
        &["report", path, "-o", "c.html"],
        &["compare", path, "c.tailbound.jsonl"],
    ] {
        let out = call(folder.path(), words);
        let expected = if words[0] == "compare" { 5 } else { 0 };
        assert_eq!(status(&out), expected, "{words:?}: {}", stderr(&out));
    }
}

#[test]
fn a_file_that_was_cut_off_is_a_shorter_run_and_a_broken_one_is_located() {
    let folder = folder();
    a_run(folder.path(), "a.tailbound.jsonl");
    let whole = std::fs::read(folder.path().join("a.tailbound.jsonl")).unwrap();
    let broken = folder.path().join("broken.tailbound.jsonl");
    let first = whole.iter().position(|b| *b == b'\n').unwrap();
    for cut in [first + 1, first + 40, whole.len() - 1, whole.len() / 2] {
        std::fs::write(&broken, &whole[..cut]).unwrap();
        let out = call(folder.path(), &["show", "broken.tailbound.jsonl"]);
        assert_eq!(status(&out), 0, "cut at {cut}: {}", stderr(&out));
    }
    let mut bad = whole.clone();
    bad.splice(first + 1..first + 2, *b"!!");
    std::fs::write(&broken, bad).unwrap();
    let out = call(folder.path(), &["show", "broken.tailbound.jsonl"]);
    assert_eq!(status(&out), 2);
    assert!(stderr(&out).contains("line 2"), "{}", stderr(&out));
    let newer = String::from_utf8_lossy(&whole).replacen("tailbound-run/1", "tailbound-run/9", 1);
    std::fs::write(&broken, newer).unwrap();
    let out = call(folder.path(), &["show", "broken.tailbound.jsonl"]);
    assert_eq!(status(&out), 2);
    assert!(stderr(&out).contains("newer tailbound"), "{}", stderr(&out));
    for empty in [&b""[..], b"\0\0\0\0", b"hello\n"] {
        std::fs::write(&broken, empty).unwrap();
        assert_eq!(status(&call(folder.path(), &["show", "broken.tailbound.jsonl"])), 2);
    }
}

#[test]
fn standard_input_and_a_reader_that_leaves() {
    let folder = folder();
    a_run(folder.path(), "a.tailbound.jsonl");
    let whole = std::fs::read(folder.path().join("a.tailbound.jsonl")).unwrap();
    let mut child = tailbound()
        .args(["show", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&whole).unwrap();
    let out = child.wait_with_output().unwrap();
    assert!(stdout(&out).starts_with("Measured"));
    let script = format!("{} show a.tailbound.jsonl | head -c 1", env!("CARGO_BIN_EXE_tailbound"));
    let out = std::process::Command::new("bash")
        .args(["-o", "pipefail", "-c", &script])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(out.status.success() && !stderr(&out).contains("panicked"), "{}", stderr(&out));
}

/// A list of samples in binary: imported as a stream into a run with seconds and stretches,
/// which every other verb reads; a column goes the same way without being imported first.
#[test]
fn long_lists_of_samples_are_runs() {
    let folder = folder();
    let samples =
        (0..300_000u32).map(|k| 3000 + k * 7919 % 2000 + if k == 250_000 { 90_000 } else { 0 });
    let bytes: Vec<u8> = samples.clone().flat_map(u32::to_le_bytes).collect();
    std::fs::write(folder.path().join("loop.u32"), bytes).unwrap();
    let lines: String = samples.map(|v| format!("{v}\n")).collect();
    std::fs::write(folder.path().join("loop.txt"), format!("# latency_ns\n{lines}")).unwrap();
    let guessed = call(folder.path(), &["show", "loop.u32"]);
    assert_eq!((status(&guessed), stderr(&guessed).contains("raw-u32")), (2, true));
    let words = ["import", "loop.u32", "-f", "raw-u32", "-i", "100us"];
    assert_eq!(status(&call(folder.path(), &words)), 0);
    let run = read(&folder.path().join("loop.tailbound.jsonl"));
    assert_eq!((run.seconds.len(), run.blocks.len(), run.threads[0].wakeup.n), (30, 30, 300_000));
    assert_eq!(run.seconds[25].argmax, 250_000);
    assert_eq!(run.end.unwrap().measured_ns, 30_000_000_000);
    let shown = call(folder.path(), &["show", "loop.tailbound.jsonl"]);
    assert!(stdout(&shown).contains("300,000 activations"), "{}", stdout(&shown));
    let column = call(folder.path(), &["show", "loop.txt"]);
    assert!(stdout(&column).contains("300,000"), "{}", stdout(&column));
    // Two files of the same samples, read at once.
    let words = ["report", "loop.tailbound.jsonl", "loop.txt", "-o", "both.html"];
    let both = call(folder.path(), &words);
    assert_eq!(status(&both), 0, "{}", stderr(&both));
    let page = std::fs::read_to_string(folder.path().join("both.html")).unwrap();
    assert!(page.contains("loop.txt") && page.contains("loop.tailbound.jsonl"));
    let gone = call(folder.path(), &["report", "loop.tailbound.jsonl", "gone.jsonl", "loop.u32"]);
    assert_eq!((status(&gone), stderr(&gone).contains("gone.jsonl: No such file")), (2, true));
}

/// A name that nobody gave is free; one that was given is refused before anything is measured.
#[test]
fn a_default_name_that_exists_fails_nothing() {
    let folder = folder();
    let words = ["run", "-l", "300", "-q", "--warm-up", "10ms", "--load", "none"];
    a_run(folder.path(), "a.tailbound.jsonl");
    let page = std::fs::read(folder.path().join("a.html")).unwrap();
    let given = words.iter().copied().chain(["-o", "a.tailbound.jsonl"]).collect::<Vec<_>>();
    assert_eq!(status(&call(folder.path(), &given)), 2, "a given name is not overwritten");
    // The page beside a run was named by nobody.
    std::fs::remove_file(folder.path().join("a.tailbound.jsonl")).unwrap();
    let out = call(folder.path(), &given);
    assert_eq!(status(&out), 0, "{}", stderr(&out));
    assert!(stdout(&out).contains("a-2.html"), "{}", stdout(&out));
    assert_eq!(std::fs::read(folder.path().join("a.html")).unwrap(), page);
    let out = call(folder.path(), &["report", "a.tailbound.jsonl"]);
    assert!(status(&out) == 0 && stderr(&out).contains("a-3.html"), "{}", stderr(&out));
    // Two at once, in one second: each has its own.
    for _ in 0..2 {
        let out = call(folder.path(), &words);
        assert_eq!(status(&out), 0, "{}", stderr(&out));
    }
}

/// The line that a report prints can be run as it stands, and measures again.
#[test]
fn the_line_to_repeat_repeats() {
    let folder = folder();
    let words = ["run", "-l", "300", "-q", "--warm-up", "10ms", "-L", "none", "--load-cmd"];
    let all = words.iter().copied().chain(["sleep 9 # it's long", "-o", "a.jsonl", "--force"]);
    let out = call(folder.path(), &all.collect::<Vec<_>>());
    assert_eq!(status(&out), 0, "{}", stderr(&out));
    let text = stdout(&out);
    let line = text.lines().find_map(|l| l.strip_prefix("Repeat: ")).expect("a whole line");
    assert!(!line.contains("a.jsonl") && !line.contains("--force"), "{line}");
    let again = std::process::Command::new("sh")
        .args(["-c", line])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(status(&again), 0, "{line}: {}", stderr(&again));
}

/// A run file is sent to strangers: its identity holds no name of the machine.
#[test]
fn the_identity_is_time_and_process() {
    let folder = folder();
    a_run(folder.path(), "a.tailbound.jsonl");
    let id = read(&folder.path().join("a.tailbound.jsonl")).header.id;
    let parts: Vec<&str> = id.split('-').collect();
    let [stamp, fraction, process] = parts[..] else { panic!("{id}") };
    assert!(stamp.ends_with('Z') && process.chars().all(|c| c.is_ascii_digit()), "{id}");
    assert!(fraction.len() == 8 && fraction.chars().all(|c| c.is_ascii_hexdigit()), "{id}");
}

#[test]
fn each_of_several_runs_in_a_file_gets_a_file_unless_one_is_chosen() {
    const LINE: &str =
        "T: 0 (    7) P:80 I:1000 C:     20 Min:      3 Act:    4 Avg:    4 Max:       9\n";
    let folder = folder();
    let file = folder.path().join("two.txt");
    std::fs::write(&file, [LINE, &LINE.replace("(    7)", "(    8)")].concat()).unwrap();
    let made = || {
        let names = folder.path().read_dir().unwrap();
        let mut names: Vec<_> =
            names.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names.retain(|n| n.ends_with(".jsonl"));
        names
    };
    let import = |words: &[&str]| call(folder.path(), &[&["import", "two.txt"], words].concat());
    assert_eq!(status(&import(&[])), 0);
    assert_eq!(made(), ["two.1.tailbound.jsonl", "two.2.tailbound.jsonl"]);
    assert_eq!(status(&import(&["--run", "2"])), 0);
    assert_eq!(made().last().map(String::as_str), Some("two.tailbound.jsonl"));
    for (words, hint) in [
        (&["--run", "3"][..], "--run 3"),
        (&["--run", "0"], "holds 2 runs"),
        (&["--json"], "--run N (1 to 2)"),
        (&["--out", "x"], "one run file"),
    ] {
        let out = import(words);
        assert_eq!(status(&out), 2, "{words:?}");
        assert!(stderr(&out).contains(hint), "{words:?}: {}", stderr(&out));
    }
    let told = stderr(&call(folder.path(), &["show", "two.txt"]));
    assert!(told.contains("holds 2 runs") && told.contains("--run N"), "{told}");
}

/// Pulses each ms, answered after 30 µs, but for those of `unanswered`.
fn capture(unanswered: &[u32]) -> String {
    let mut text = "Time [s],Channel 0,Channel 1\n0.000000000,0,0\n".to_owned();
    for k in 1..3000u32 {
        let at =
            |us: u32| format!("{}.{:06}", (k * 1000 + us) / 1_000_000, (k * 1000 + us) % 1_000_000);
        text.push_str(&format!("{},1,0\n", at(0)));
        if !unanswered.contains(&k) {
            text.push_str(&format!("{},1,1\n{},1,0\n", at(30), at(40)));
        }
        text.push_str(&format!("{},0,0\n", at(100)));
    }
    text
}

#[test]
fn a_capture_of_a_logic_analyser_is_judged_shown_and_compared() {
    let folder = folder();
    let import = |name: &str, text: &str, more: &[&str]| {
        std::fs::write(folder.path().join(name), text).unwrap();
        let lines =
            ["--stimulus", "Channel 0", "--answer", "1", "--sample-rate", "1MHz", "--force"];
        call(folder.path(), &[&["import", name], &lines[..], more].concat())
    };
    let out = import("good.csv", &capture(&[]), &["-d", "100us"]);
    assert_eq!(status(&out), 0, "{}{}", stdout(&out), stderr(&out));
    let text = stdout(&out);
    assert!(
        text.starts_with("Met: none of 2,999 pulses in 3.00 s came later than 100 µs"),
        "{text}"
    );
    assert!(!text.contains("a program is later"), "nothing is outside of it: {text}");
    // Three seconds are too short for a bound and for intervals: 5, as of any run.
    for (verb, more, expected) in [
        ("show", None, 0),
        ("report", None, 0),
        ("verify", None, 0),
        ("bound", None, 5),
        ("compare", Some("two.jsonl"), 5),
    ] {
        std::fs::copy(folder.path().join("good.tailbound.jsonl"), folder.path().join("two.jsonl"))
            .unwrap();
        let words: Vec<&str> = [verb, "good.tailbound.jsonl"].into_iter().chain(more).collect();
        let out = call(folder.path(), &words);
        assert_eq!(status(&out), expected, "{verb}: {}{}", stdout(&out), stderr(&out));
    }
    // One that was never answered is beyond every deadline, also one above the period.
    for deadline in ["100us", "500ms"] {
        let out = import("bad.csv", &capture(&[1500]), &["-d", deadline]);
        let text = stdout(&out).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(status(&out) == 1 && text.starts_with("Not met"), "{deadline}: {text}");
        assert!(text.contains("one pulse was not answered"), "{text}");
    }
    let out = call(folder.path(), &["show", "good.csv"]);
    let told = stderr(&out);
    assert!(
        status(&out) == 2 && told.contains("--stimulus CHANNEL") && told.contains("1 `Channel 1`"),
        "{told}"
    );
    let out = call(folder.path(), &["import", "good.csv", "--stimulus", "0"]);
    assert!(status(&out) == 2 && stderr(&out).contains("--answer"), "{}", stderr(&out));
}
