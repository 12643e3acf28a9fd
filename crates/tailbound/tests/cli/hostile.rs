// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that mean harm, as the program meets them: nothing of theirs reaches the terminal as more
//! than text, and nothing that is no regular file is waited for.

use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tailbound_core::printable::is_harmful;

use crate::{call, folder, status, stderr, stdout, tailbound};

const RUN: &str = include_str!("../hostile/data/run.tailbound.jsonl");
const LAB: &str = include_str!("../hostile/data/lab.tailbound.jsonl");
/// Clears a screen, rings, begins a sequence in one byte, sets a title, turns the direction.
const EVIL: &str = "\u{1b}[2Jx\u{7}\u{9b}2J\u{1b}]0;t\u{7}\u{202e}\u{2066}\u{7f}\u{8}\r";

fn replaced(value: &mut Value) {
    match value {
        Value::String(s) => s.push_str(EVIL),
        Value::Array(all) => all.iter_mut().for_each(replaced),
        Value::Object(all) => all.values_mut().for_each(replaced),
        _ => {}
    }
}

/// Every string of the run file one after the other, with its line broken or not by it.
fn variants(file: &str) -> Vec<String> {
    let lines: Vec<Value> = file.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let mut out = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        for key in line.as_object().unwrap().keys() {
            let mut evil = line.clone();
            replaced(&mut evil[key]);
            if evil != *line {
                let mut all = lines.clone();
                all[at] = evil;
                out.push(all.iter().map(|l| format!("{l}\n")).collect());
            }
        }
    }
    out
}

fn harmless(out: &Output, what: &str) {
    for text in [stdout(out), stderr(out)] {
        let found = text.find(is_harmful);
        assert!(found.is_none(), "{what}: {:?}", text.get(found.unwrap_or(0).saturating_sub(60)..));
    }
    assert!((0..=5).contains(&status(out)) && status(out) != 4, "{what}: {}", stderr(out));
}

#[test]
fn no_string_of_a_file_or_name_of_a_folder_commands_the_terminal() {
    let folder = folder();
    let here = folder.path();
    let name = "evil\u{1b}[2J\u{202e}.tailbound.jsonl";
    let all: Vec<String> = variants(RUN).into_iter().chain(variants(LAB)).collect();
    assert!(all.len() > 60, "{}", all.len());
    for (i, file) in all.iter().enumerate() {
        std::fs::write(here.join(name), file).unwrap();
        harmless(&call(here, &["show", name]), &format!("show, {i}"));
        if i % 6 == 0 {
            for words in [&["show", "--json"][..], &["bound"], &["history"], &["compare", name]] {
                let words: Vec<&str> = words.iter().copied().chain([name]).collect();
                harmless(&call(here, &words), &format!("{words:?}, {i}"));
            }
        }
    }
    let toml = format!("deadline = {EVIL:?}\nx{EVIL} = 1\n");
    std::fs::write(here.join("evil.toml"), toml).unwrap();
    for words in [
        &["run", "-c", "evil.toml"][..],
        &["campaign", "run", "evil.toml"],
        &["campaign", "show", "evil.toml"],
        &["lab", "run", "--target", "evil.toml"],
        &["lab", "repeat", name],
        &["import", "evil.toml"],
        &["show", "not\u{1b}[2Jthere"],
        &["history", "\u{1b}[2J"],
    ] {
        harmless(&call(here, words), &format!("{words:?}"));
    }
}

/// Runs it with a generous limit, so that a program that waits fails the test and not the stage.
fn ends(folder: &Path, words: &[&str]) -> Output {
    let mut all = vec!["60", env!("CARGO_BIN_EXE_tailbound")];
    all.extend(words);
    let out = Command::new("timeout").args(all).current_dir(folder).output().unwrap();
    assert_ne!(status(&out), 124, "{words:?} waits for ever");
    out
}

#[test]
fn what_is_no_regular_file_is_refused_and_streams_that_are_named_are_read() {
    let folder = folder();
    let here = folder.path();
    let made = Command::new("mkfifo").arg(here.join("a.tailbound.jsonl")).status().unwrap();
    assert!(made.success());
    let _listens = UnixListener::bind(here.join("b.tailbound.jsonl")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", here.join("c.tailbound.jsonl")).unwrap();
    std::fs::create_dir(here.join("d.tailbound.jsonl")).unwrap();
    for (name, is) in [("a", "named pipe"), ("b", "socket"), ("c", "device"), ("d", "folder")] {
        let file = format!("{name}.tailbound.jsonl");
        for words in [
            &["show", &file][..],
            &["bound", &file],
            &["report", &file],
            &["import", &file],
            &["run", "-c", &file],
            &["lab", "repeat", &file],
            &["lab", "run", "--target", &file],
            &["campaign", "show", &file],
        ] {
            // As names of runs, folders mean all that is in them; these hold none.
            let out = ends(here, words);
            assert!((2..=3).contains(&status(&out)), "{words:?}: {}", stderr(&out));
            assert!(name == "d" || stderr(&out).contains(is), "{words:?}: {}", stderr(&out));
        }
    }
    let out = ends(here, &["history", "."]);
    assert!(status(&out) == 2 && stderr(&out).contains("not a regular file"), "{}", stderr(&out));
    std::fs::write(here.join("run"), RUN).unwrap();
    for name in ["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"] {
        let mut cat =
            Command::new("cat").arg(here.join("run")).stdout(Stdio::piped()).spawn().unwrap();
        let pipe = cat.stdout.take().unwrap();
        let out = tailbound().args(["show", name]).stdin(pipe).output().unwrap();
        assert!(cat.wait().unwrap().success());
        assert_eq!(status(&out), 0, "{name}: {}", stderr(&out));
    }
}
