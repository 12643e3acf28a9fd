// SPDX-License-Identifier: MIT OR Apache-2.0
//! One context of a run is judged, and every command that speaks of one run's latency means it.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{call, folder, status, stderr, stdout};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../measure/tailbound-import/tests/fixtures")
        .join(name)
}

#[test]
fn all_commands_judge_the_same_context_of_an_import() {
    let folder = folder();
    let source = fixture("rtla-6.1_timerlat_hist.stdout.txt");
    let words = ["import", &source.to_string_lossy(), "-d", "1ms", "-o", "a.tailbound.jsonl"];
    let out = call(folder.path(), &words);
    assert!([0, 1, 5].contains(&status(&out)), "{}", stderr(&out));
    std::fs::copy(folder.path().join("a.tailbound.jsonl"), folder.path().join("b.tailbound.jsonl"))
        .unwrap();
    let json = |words: &[&str]| -> Value {
        let out = call(folder.path(), words);
        serde_json::from_str(&stdout(&out)).unwrap_or_else(|e| panic!("{e}: {}", stderr(&out)))
    };
    let shown = json(&["show", "a.tailbound.jsonl", "--json"]);
    let totals = shown["totals"].as_array().unwrap();
    let thread = totals.iter().find(|t| t["context"] == "thread").unwrap();
    let contexts: Vec<&Value> = totals.iter().map(|t| &t["context"]).collect();
    assert_eq!(contexts, ["irq", "thread"], "the fixture has no user thread");
    let statements = shown["verdict"]["statements"].to_string();
    assert!(statements.contains("outermost: `thread`"), "{statements}");
    assert_eq!(shown["verdict"]["due"], thread["due"]["n"]);
    let compared = json(&["compare", "a.tailbound.jsonl", "b.tailbound.jsonl", "--json"]);
    assert_eq!(compared["context"], "thread");
    let said = stdout(&call(folder.path(), &["compare", "a.tailbound.jsonl", "b.tailbound.jsonl"]));
    assert!(said.contains("The context `thread` is judged"), "{said}");
    let bound = json(&["bound", "a.tailbound.jsonl", "--json"]);
    assert!(bound.to_string().contains("\"context\":\"thread\""), "{bound}");
}
