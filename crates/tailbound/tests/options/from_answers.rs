// SPDX-License-Identifier: MIT OR Apache-2.0
//! The figures that the pages `docs/from-*.md` name stand in the answers: each word of the second column of a table
//! below `## Figures` or `## Report` is in the text, JSON, report or file of a short run.
//!
//! Not here: whether a figure is right (`tailbound-stats`), rows that take tracing (`tests/cli/observe.rs`).

use std::path::Path;
use std::process::Command;

use super::from_pages::{cell, docs, spans};

/// Words of a page that stand for others in the runs below.
const STANDS_FOR: &[(&str, &str)] =
    &[("fifo:80", "other"), ("every 200 µs", "every 10"), ("every 100 µs", "every 10")];
/// Words that stand in no answer of such a run, and where they do.
const ELSEWHERE: &[(&str, &str)] = &[
    ("last", "the live view"),
    ("CPU 0 irq", "runs with --observe"),
    ("CPU 0 thread", "runs with --observe"),
    ("CPU 0 user", "runs with --observe"),
];

/// What the program says, as text.
fn said(folder: &Path, words: &[&str]) -> String {
    #[expect(clippy::disallowed_methods, reason = "the program itself, which is waited for")]
    let mut command = Command::new(env!("CARGO_BIN_EXE_tailbound"));
    let out = command.args(words).current_dir(folder).env("NO_COLOR", "1").output();
    let out = out.expect("the program");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(!text.is_empty(), "{words:?}: {}", String::from_utf8_lossy(&out.stderr));
    text
}

/// All that a short run and a loop that never sleeps say.
fn answers(folder: &Path) -> String {
    let run = "run -q -p other -a 0 -i 10ms -l 40 --warm-up 100ms -L syscalls --raw -o r.jsonl --report r.html";
    let busy = "measure busy -q -p other -a 0 -D 300ms --warm-up 100ms -o b.jsonl";
    let mut all: String = [run, busy, "show r.jsonl", "show --json r.jsonl", "show --json b.jsonl"]
        .iter()
        .map(|words| said(folder, &words.split(' ').collect::<Vec<_>>()))
        .collect();
    for file in ["r.jsonl", "r.html", "b.jsonl"] {
        all.push_str(&std::fs::read_to_string(folder.join(file)).expect("a file"));
    }
    all
}

#[test]
fn figures_that_the_pages_name_stand_in_the_answers() {
    let folder = tempfile::tempdir().expect("a folder");
    let all = answers(folder.path());
    let mut looked = 0;
    for path in docs() {
        let page = std::fs::read_to_string(&path).expect("a page");
        let mut figures = false;
        for line in page.lines() {
            if let Some(title) = line.strip_prefix("## ") {
                figures = matches!(title, "Figures" | "Report");
            }
            if !figures || !line.starts_with("| ") {
                continue;
            }
            for word in spans(&cell(line)).filter(|w| !w.starts_with('-')) {
                if ELSEWHERE.iter().any(|(w, _)| *w == word) {
                    continue;
                }
                let stands = STANDS_FOR.iter().find(|(w, _)| *w == word).map_or(word, |(_, s)| s);
                looked += 1;
                let stands = stands.replace("cpuN", "cpu0");
                assert!(all.contains(&stands), "{}: no answer has `{word}`", path.display());
            }
        }
    }
    assert!(looked > 40, "{looked}");
}
