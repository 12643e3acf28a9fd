// SPDX-License-Identifier: MIT OR Apache-2.0
//! What scripts read of answers stays: keys of `--json` and their types, and the figures of run files of earlier versions.
//!
//! `promised/VERSION-*.tailbound.jsonl` were written by the version in their name, and `figures.txt` by the same: no later
//! one writes either again. `answers.txt` is the list of keys.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tailbound_testing::names;

use crate::{call, folder, status, stderr, stdout};

const EARLIER: [&str; 5] =
    ["0.1.0-busy", "0.1.0-cyclic", "0.1.0-handover", "0.1.0-run", "0.1.0-work"];

const RUN: &str = "0.1.0-run.tailbound.jsonl";
const CYCLIC: &str = "0.1.0-cyclic.tailbound.jsonl";
const BUSY: &str = "0.1.0-busy.tailbound.jsonl";

/// Questions whose answers need no particular machine.
const QUESTIONS: &[&[&str]] = &[
    &["show", RUN],
    &["show", BUSY],
    &["show", "--worst", "3", RUN],
    &["compare", RUN, CYCLIC],
    &["bound", RUN],
    &["history", "."],
    &["plan", "-d", "100us", "--rate", "1/24h"],
    &["verify", RUN],
    &["response", "model.toml"],
    &["blame", "trace.txt"],
    &["blame", "trace.dat"],
    &["campaign", "show", "altenberg-2016"],
    &["tune", "settings"],
    &["tune", "profiles"],
    &["store", "add", RUN, CYCLIC],
    &["store", "ls"],
    &["store", "regressions"],
    &["store", "query", "SELECT count(*) AS n FROM run"],
];

const MODEL: &str = r#"
task = [
    { name = "a", priority = 3, period = "7ms", wcet = "1ms", deadline = "5ms" },
    { name = "b", priority = 2, period = "20ms", wcet = "4ms" },
]
"#;

/// Of these objects the keys are names of facts, of settings, of columns.
fn is_data(path: &str) -> bool {
    let end = path.rsplit(['.', ' ']).next().unwrap_or_default();
    ["machine", "after", "options", "values", "facts", "counters", "rows[]"].contains(&end)
}

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/promised")
}

/// A folder with the files that the questions are about.
fn filled() -> tempfile::TempDir {
    let folder = folder();
    for name in EARLIER {
        let name = format!("{name}.tailbound.jsonl");
        std::fs::copy(data().join(&name), folder.path().join(name)).unwrap();
    }
    std::fs::write(folder.path().join("model.toml"), MODEL).unwrap();
    let traces = Path::new(env!("CARGO_MANIFEST_DIR"));
    let traces = traces.join("../explain/tailbound-trace/tests/data");
    for (from, to) in [
        ("texts/timehist-4.19.txt", "trace.txt"),
        ("trace-cmd/linux-6.1-rt-v7-zstd.dat", "trace.dat"),
    ] {
        std::fs::copy(traces.join(from), folder.path().join(to)).unwrap();
    }
    folder
}

fn answer(folder: &Path, question: &[&str]) -> Value {
    let mut words = [question, &["--json"]].concat();
    if question[0] == "store" {
        words.extend(["--store", "s.sqlite"]);
    }
    let out = call(folder, &words);
    let said = serde_json::from_str(&stdout(&out));
    said.unwrap_or_else(|e| panic!("{question:?}: {}: {e}: {}", status(&out), stderr(&out)))
}

#[test]
fn keys_of_answers_and_their_types_stay() {
    let folder = filled();
    let mut now = BTreeSet::new();
    for question in QUESTIONS {
        let verb = question.iter().take_while(|w| w.chars().all(|c| c.is_ascii_lowercase()));
        let verb: Vec<&str> = verb.copied().collect();
        let said = answer(folder.path(), question);
        names::of_answer(&said, &format!("{}: ", verb.join(" ")), &is_data, &mut now);
    }
    tailbound_testing::promised(&data().join("answers.txt"), &now);
}

#[test]
fn run_files_of_earlier_versions_give_the_figures_that_they_gave() {
    let folder = filled();
    let figures = std::fs::read_to_string(data().join("figures.txt")).unwrap();
    let figures: Vec<&str> = figures.lines().filter(|l| !l.starts_with('#')).collect();
    for name in EARLIER {
        let now = answer(folder.path(), &["show", &format!("{name}.tailbound.jsonl")]);
        let mut n = 0;
        for figure in figures.iter().filter(|l| l.starts_with(&format!("{name} "))) {
            let mut words = figure.splitn(3, ' ').skip(1);
            let (place, then) = (words.next().unwrap(), words.next().unwrap());
            let then: Value = serde_json::from_str(then).unwrap();
            let Some(now) = now.pointer(place) else { panic!("{figure}: there is none now") };
            let same = match (then.as_f64(), now.as_f64()) {
                // As written, but for the last digits of what is computed.
                (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * a.abs().max(b.abs()),
                _ => then == *now,
            };
            assert!(same, "{figure}: now {now}");
            n += 1;
        }
        assert!(n > 10, "{name}: {n} figures");
    }
}
