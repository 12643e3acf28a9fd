// SPDX-License-Identifier: MIT OR Apache-2.0
//! This version's reader on files of a made-up next version: more fields at every object, more
//! line types between all lines, another word wherever a word stands.
//!
//! The files are those of all importers and the examples of docs/run-file.md,
//! which have every line type.

use std::fmt::Write as _;

use serde_json::{Value, json};
use tailbound_core::runfile::{read_run, write_run};
use tailbound_import::{Options, import_with};

const FIELD: &str = "later_field";
const ENTRY: &str = "later.entry";
/// Objects whose names are data: an entry of a later version is one of the same kind.
const MAPS: [&str; 8] =
    ["machine", "facts", "values", "counters", "dropped", "p2", "options", "files"];

/// A header with every part that a header may have.
fn full_header() -> Value {
    json!({
        "type": "header", "schema": "tailbound-run/1", "tool": "tailbound 9", "id": "i",
        "started": "2026-01-01T00:00:00Z", "command": ["tailbound"],
        "plan": {
            "name": "n", "probe": "cyclic", "options": {"with": "polling"}, "event": "trial",
            "property": "it holds", "interval_ns": 200_000, "activations": 10, "warm_up_ns": 0,
            "cpus": "0-1", "policy": "other", "clock": "monotonic", "means": "nanosleep",
            "loads": ["hackbench:groups=4"],
            "requirement": {"deadline_ns": 100_000, "early_ns": 5, "class": "safe",
                            "rate": "1/24h", "confidence": 0.95},
            "cpu_dma_latency_us": 0, "raw": true, "paranoid": false, "observe": "tracepoints",
            "tasks": 2, "spread": {"share": 0.5, "seed": 1}, "timer_slack_ns": 1,
            "work": {"works": ["messages"], "repeat": 3},
            "until": {"rule": "precision", "precision": 0.1, "quantiles": [0.5]}
        },
        "machine": {"kernel.release": {"value": "rt"}, "a": {"unknown": "why"},
                    "b": {"not-applicable": "why"}},
        "source": {"tool": "t", "format": "f", "file": "x", "lost": ["all"]},
        "lab": {
            "arch": "arm", "machine": "virt", "cpu": "max", "smp": 2, "memory_mib": 512,
            "shift": 3, "seed": 1, "accelerator": "tcg", "qemu": "QEMU 10",
            "kernel": {"name": "debian:6.12", "package": "p 1", "sha256": "00"},
            "append": "quiet", "command_line": "quiet", "initramfs_sha256": "00",
            "files": {"/bin/x": "00"}, "guest_sha256": "00",
            "job": {"campaign": "", "arguments": ["-x"], "settings": [["a", "b"]], "limit_s": 9,
                    "tester": {"command": ["x"], "format": "column", "file": "y"}}
        },
        "round": {"series": "s", "variant": "v", "round": 0, "rounds": 3, "place": 0, "seed": 1}
    })
}

/// Run files by name, as lines.
fn files() -> Vec<(String, Vec<Value>)> {
    let lines = |file: &[u8]| -> Vec<Value> {
        let text = String::from_utf8_lossy(file);
        text.lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}"))).collect()
    };
    let page = include_str!("../../../../../docs/run-file.md");
    let examples: Vec<&str> = page.lines().filter(|l| l.starts_with("{\"type\":")).collect();
    let mut examples = lines(examples.join("\n").as_bytes());
    if let Some(header) = examples.first_mut() {
        *header = full_header();
    }
    let mut out = vec![("docs/run-file.md".to_owned(), examples)];
    let folder = std::fs::read_dir(super::folder()).unwrap_or_else(|e| panic!("{e}"));
    for path in folder.filter_map(Result::ok).map(|e| e.path()).filter(|p| p.is_file()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let imported = import_with(None, &name, &super::bytes(&name), &Options::default());
        let Ok(run) = imported else { continue };
        out.push((name, lines(&write_run(&run, Vec::new()).unwrap_or_default())));
    }
    assert!(out.len() > 20, "{} files", out.len());
    out
}

/// As a file; its own digest, which a later version would make of its own lines, is left out.
fn text(lines: &[Value]) -> String {
    let mut out = String::new();
    for line in lines {
        let mut line = line.clone();
        if let Some(end) = line.as_object_mut().filter(|o| o["type"] == "end") {
            end.insert("lines".to_owned(), json!(lines.len() - 1));
            end.remove("sha256");
        }
        // Our own lines begin with their type, and later ones will.
        let kind = line.as_object_mut().and_then(|o| o.remove("type")).unwrap_or_default();
        let rest = line.to_string();
        let comma = if rest == "{}" { "" } else { "," };
        let _ = writeln!(out, "{{\"type\":{kind}{comma}{}", rest.trim_start_matches('{'));
    }
    out
}

/// What this version makes of it, as lines; the reader's own findings apart.
fn again(name: &str, file: &str) -> Vec<Value> {
    let run = read_run(file.as_bytes()).unwrap_or_else(|e| panic!("{name}: {e}"));
    let written = write_run(&run, Vec::new()).unwrap_or_default();
    let lines = String::from_utf8_lossy(&written).into_owned();
    let lines = lines.lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}")));
    lines.filter(|l: &Value| !["finding", "end"].iter().any(|k| l["type"] == *k)).collect()
}

/// Adds to every object what a later version might.
fn grow(value: &mut Value, map: bool) {
    match value {
        Value::Object(fields) => {
            for (name, inner) in fields.iter_mut() {
                grow(inner, MAPS.contains(&name.as_str()));
            }
            if !map {
                fields.insert(FIELD.to_owned(), json!({"nested": [1, {"deep": null}]}));
            } else if let Some(one) = fields.values().next().cloned() {
                fields.insert(ENTRY.to_owned(), one);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|i| grow(i, false)),
        _ => {}
    }
}

/// Takes that away again, where this version keeps it.
fn shrink(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove(FIELD);
            fields.remove(ENTRY);
            fields.values_mut().for_each(shrink);
        }
        Value::Array(items) => items.iter_mut().for_each(shrink),
        _ => {}
    }
}

#[test]
fn more_fields_and_more_line_types_change_nothing() {
    for (name, lines) in files() {
        let before = again(&name, &text(&lines));
        let mut later = Vec::new();
        for (i, line) in lines.iter().enumerate() {
            let mut line = line.clone();
            // A fact's value may be anything; it is no object of ours.
            grow(&mut line, false);
            later.push(line);
            if i + 1 < lines.len() {
                later.push(json!({"type": "later-kind", "t_ns": i, "nested": {"a": [1, 2]}}));
            }
        }
        let mut after = again(&name, &text(&later));
        after.iter_mut().for_each(shrink);
        assert!(before == after, "{name}: more fields or line types changed what was read");
    }
}

/// Places of words: a text of small letters and hyphens alone, but the type of a line.
fn words(value: &Value, at: &str, out: &mut Vec<String>) {
    let word = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
    match value {
        Value::Object(fields) => {
            for (name, inner) in fields.iter().filter(|(name, _)| *name != "type") {
                let name = name.replace('~', "~0").replace('/', "~1");
                words(inner, &format!("{at}/{name}"), out);
            }
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(i, v)| words(v, &format!("{at}/{i}"), out));
        }
        Value::String(s) if word(s) => out.push(at.to_owned()),
        _ => {}
    }
}

#[test]
fn another_word_anywhere_is_kept_as_it_stands() {
    let mut places = std::collections::BTreeSet::new();
    for (name, lines) in files() {
        let mut changed = lines.clone();
        for line in changed.iter_mut().filter(|l| l["type"] != "raw") {
            let mut found = Vec::new();
            words(line, "", &mut found);
            for pointer in &found {
                *line.pointer_mut(pointer).unwrap_or(&mut Value::Null) = json!("from-later");
            }
            places.extend(found);
        }
        let file = text(&changed);
        let run = read_run(file.as_bytes()).unwrap_or_else(|e| panic!("{name}: {e}"));
        let kept = write_run(&run, Vec::new()).unwrap_or_default();
        let kept = String::from_utf8_lossy(&kept).into_owned();
        for word in ["\"clock\":", "\"means\":", "\"context\":", "\"ended\":", "\"reason\":"] {
            let whole = format!("{word}\"from-later\"");
            assert!(!file.contains(word) || kept.contains(&whole), "{name}: {word}");
        }
        assert!(!run.ended_as_planned(), "{name}: an end that is not known is no planned one");
        assert!(run.unknown_words().contains(&"clock `from-later`".to_owned()), "{name}");
    }
    for place in [
        "/plan/clock",
        "/plan/means",
        "/plan/policy",
        "/plan/observe",
        "/plan/until/rule",
        "/plan/requirement/class",
        "/lab/arch",
        "/lab/accelerator",
        "/context",
        "/ended",
        "/impact",
        "/outcome",
        "/reason",
        "/event",
    ] {
        assert!(places.contains(place), "{place} was never another word");
    }
}

#[test]
fn a_mark_or_another_encoding_of_a_source_is_read_or_named() {
    let name = "rtla-6.1_timerlat_hist.stdout.txt";
    let plain = super::bytes(name);
    let marked = [b"\xef\xbb\xbf".as_slice(), &plain].concat();
    let import = |bytes: &[u8]| import_with(None, name, bytes, &Options::default());
    let threads = |bytes: &[u8]| import(bytes).map(|r| r.threads).map_err(|e| e.to_string());
    assert!(threads(&plain).is_ok() && threads(&plain) == threads(&marked));
    let wide: Vec<u8> = [0xff, 0xfe]
        .into_iter()
        .chain(String::from_utf8_lossy(&plain).encode_utf16().flat_map(u16::to_le_bytes))
        .collect();
    let refused = threads(&wide).unwrap_err();
    assert!(refused.contains("UTF-16LE") && refused.contains("iconv"), "{refused}");
}
