// SPDX-License-Identifier: MIT OR Apache-2.0
//! store: run files go in, are listed and asked, and come out as they were.

use std::path::Path;
use std::process::Output;

use serde_json::Value;
use tailbound_core::runfile::write_run;

use crate::{call, folder, read, status, stderr, stdout, tailbound};

const RUN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hostile/data/run.tailbound.jsonl");

/// Calls `store` with these words on the store of the folder.
fn store(folder: &Path, words: &[&str]) -> Output {
    let mut all = vec!["store"];
    all.extend(words);
    all.extend(["--store", "s.sqlite"]);
    call(folder, &all)
}

/// What it answers, where it must.
fn answer(folder: &Path, words: &[&str]) -> String {
    let out = store(folder, words);
    assert_eq!(status(&out), 0, "{words:?}: {}", stderr(&out));
    stdout(&out)
}

fn json(folder: &Path, words: &[&str]) -> Value {
    serde_json::from_str(&answer(folder, words)).unwrap()
}

/// A run that began at `started`, within its deadline; its latest wake-up was 200 µs and `later_ns` late.
fn a_run(path: &Path, started: &str, later_ns: i64) {
    let mut run = read(Path::new(RUN));
    started.clone_into(&mut run.header.started);
    run.header.id = format!("of-{started}");
    for thread in &mut run.threads {
        thread.wakeup.add(200_000 + later_ns);
    }
    std::fs::write(path, write_run(&run, Vec::new()).unwrap()).unwrap();
}

/// A folder with the folder `old`: five runs of a January.
fn with_old_runs() -> tempfile::TempDir {
    let folder = folder();
    std::fs::create_dir(folder.path().join("old")).unwrap();
    for (day, later_ns) in (1..).zip([0, 40, 10, 20, 5]) {
        let path = folder.path().join(format!("old/{day}.tailbound.jsonl"));
        a_run(&path, &format!("2020-01-0{day}T00:00:00Z"), later_ns);
    }
    folder
}

#[test]
fn a_missing_store_is_named_and_not_made() {
    let folder = folder();
    for words in [
        &["ls"][..],
        &["get", "a"],
        &["query", "SELECT 1"],
        &["note", "a", "b"],
        &["prune", "--older-than", "1d"],
        &["rebuild"],
        &["backup", "b"],
        &["export", "--format", "csv"],
    ] {
        let out = store(folder.path(), words);
        assert_eq!(status(&out), 2, "{words:?}");
        let said = stderr(&out);
        assert!(said.contains("s.sqlite") && said.contains("store add"), "{words:?}: {said}");
    }
    assert!(!folder.path().join("s.sqlite").exists());
    let out = call(folder.path(), &["store", "ls", "--store", "mysql://x"]);
    assert_eq!(status(&out), 2);
    assert!(stderr(&out).contains("mysql"), "{}", stderr(&out));
}

#[test]
fn runs_are_added_once_and_what_is_no_run_is_named() {
    let folder = with_old_runs();
    let all = json(folder.path(), &["add", "old", RUN, "--json"]);
    assert_eq!(all["added"].as_array().map(Vec::len), Some(6), "{all}");
    let again = json(folder.path(), &["add", "old", "--json"]);
    assert_eq!((again["added"].as_array().map(Vec::len), &again["already"]), (Some(0), &5.into()));
    a_run(&folder.path().join("new.jsonl"), "2020-02-01T00:00:00Z", 0);
    std::fs::write(folder.path().join("text"), "no run\n").unwrap();
    let out = store(folder.path(), &["add", "text", "no-such-file", "new.jsonl"]);
    assert_eq!(status(&out), 2);
    assert!(stdout(&out).starts_with("1 of 3 runs added to s.sqlite"), "{}", stdout(&out));
    let said = stderr(&out);
    assert!(said.contains("text") && said.contains("no-such-file"), "{said}");
    assert_eq!(json(folder.path(), &["ls", "--json"])["runs"].as_array().map(Vec::len), Some(7));
}

#[test]
fn the_store_is_where_the_environment_says_and_runs_are_listed() {
    let folder = with_old_runs();
    answer(folder.path(), &["add", "old", "--system", "press 7"]);
    answer(folder.path(), &["add", RUN, "--system", "press 8"]);
    let list =
        json(folder.path(), &["ls", "--json", "--system", "press 7", "--until", "2020-01-05"]);
    assert_eq!(list["schema"], "tailbound-store-ls/1");
    let runs = list["runs"].as_array().unwrap();
    let began: Vec<_> = runs.iter().filter_map(|r| r["started"].as_str()).collect();
    assert_eq!(began.len(), 4);
    assert!(began.is_sorted_by(|a, b| a > b), "{began:?}");
    let mut command = tailbound();
    command.args(["store", "list", "-n", "1"]).env("TAILBOUND_STORE", "s.sqlite");
    let out = command.current_dir(folder.path()).output().unwrap();
    let text = stdout(&out);
    assert!(text.contains("press 8") && !text.contains("press 7"), "{text}");
    assert!(text.contains("1 of 6 runs"), "{text}");
}

#[test]
fn a_run_file_comes_back_byte_for_byte() {
    let folder = folder();
    answer(folder.path(), &["add", RUN]);
    let id = json(folder.path(), &["ls", "--json"])["runs"][0]["id"].as_str().unwrap().to_owned();
    let words = ["get", &id[..10], "-o", "back.jsonl"];
    assert_eq!(answer(folder.path(), &words).trim(), "back.jsonl");
    let original = std::fs::read(RUN).unwrap();
    assert_eq!(std::fs::read(folder.path().join("back.jsonl")).unwrap(), original);
    assert_eq!(status(&store(folder.path(), &words)), 2, "an existing file is kept");
    assert_eq!(store(folder.path(), &["get", &id, "-o", "-"]).stdout, original);
    let none = store(folder.path(), &["get", "no-such-run"]);
    assert_eq!(status(&none), 2);
    assert!(stderr(&none).contains("no-such-run"), "{}", stderr(&none));
}

#[test]
fn queries_read_and_change_nothing() {
    let folder = with_old_runs();
    answer(folder.path(), &["add", "old", "--system", "a, \"b\""]);
    let sql = "SELECT name, 7 AS seven FROM system";
    assert_eq!(
        answer(folder.path(), &["query", sql, "--csv"]),
        "name,seven\r\n\"a, \"\"b\"\"\",7\r\n"
    );
    assert_eq!(
        json(folder.path(), &["query", sql, "--json"]),
        serde_json::json!([{"name": "a, \"b\"", "seven": 7}])
    );
    assert!(answer(folder.path(), &["query", sql]).contains("seven"));
    for refused in
        ["DELETE FROM run", "ATTACH 'x' AS x", "PRAGMA user_version=7", "SELECT nonsense"]
    {
        let out = store(folder.path(), &["query", refused]);
        // A statement that reads and is wrong is the database's to refuse.
        let expected = if refused.starts_with("SELECT") { 3 } else { 2 };
        assert_eq!(status(&out), expected, "{refused}: {}", stderr(&out));
        assert!(!stderr(&out).is_empty());
    }
    let count = json(folder.path(), &["query", "SELECT COUNT(*) AS n FROM run", "--json"]);
    assert_eq!(count[0]["n"], 5);
}

#[test]
fn what_is_pruned_is_told_before_and_a_note_keeps_a_run() {
    let folder = with_old_runs();
    answer(folder.path(), &["add", "old"]);
    // The first, the worst and the last stay.
    let told = json(folder.path(), &["prune", "--older-than", "1y", "--json"]);
    let go = |told: &Value| told["go"].as_array().map(Vec::len);
    assert_eq!((go(&told), &told["deleted"]), (Some(2), &false.into()), "{told}");
    answer(
        folder.path(),
        &["note", "of-2020-01-03T00:00:00Z", "new power supply", "--author", "me"],
    );
    let notes = json(folder.path(), &["query", "SELECT author, message FROM annotation", "--json"]);
    assert_eq!(notes[0], serde_json::json!({"author": "me", "message": "new power supply"}));
    let text = answer(folder.path(), &["prune", "--older-than", "1y"]);
    assert!(text.starts_with("1 of 5 runs") && text.contains("--yes"), "{text}");
    let text = answer(folder.path(), &["prune", "--older-than", "365d", "--yes"]);
    assert!(text.starts_with("1 of 5 runs") && text.contains("were deleted"), "{text}");
    let list = answer(folder.path(), &["ls", "--json"]);
    assert!(!list.contains("2020-01-04") && list.contains("2020-01-02"), "{list}");
    let text = answer(folder.path(), &["rebuild", "-q"]);
    assert!(text.contains("from 4 run files"), "{text}");
    assert_eq!(answer(folder.path(), &["ls", "--json"]), list, "made again, it is the same");
    let wrong = store(folder.path(), &["prune", "--older-than", "soon"]);
    assert_eq!(status(&wrong), 2);
    assert!(stderr(&wrong).contains("90d"), "{}", stderr(&wrong));
}

#[test]
fn a_backup_is_one_file_and_is_restored() {
    let folder = with_old_runs();
    answer(folder.path(), &["add", "old", RUN]);
    let told = json(folder.path(), &["backup", "b.sqlite", "--json"]);
    assert_eq!((&told["schema"], &told["runs"]), (&"tailbound-store-backup/1".into(), &6.into()));
    let names = || {
        let entries = std::fs::read_dir(folder.path()).unwrap().flatten();
        entries.filter(|e| e.file_name().to_string_lossy().contains("b.sqlite")).count()
    };
    assert_eq!(names(), 1, "neither log nor scratch");
    assert_eq!(status(&store(folder.path(), &["backup", "b.sqlite"])), 2, "a file stays");
    answer(folder.path(), &["backup", "b.sqlite", "--force"]);
    let restore = |to: &str| call(folder.path(), &["store", "restore", "b.sqlite", "--store", to]);
    let back = restore("new.sqlite");
    assert_eq!(status(&back), 0, "{}", stderr(&back));
    assert!(stdout(&back).starts_with("6 runs of b.sqlite"), "{}", stdout(&back));
    assert_eq!(status(&restore("new.sqlite")), 2, "it has runs");
    let missing = call(folder.path(), &["store", "restore", "none", "--store", "other.sqlite"]);
    assert_eq!((status(&missing), folder.path().join("other.sqlite").exists()), (2, false));
    let id = json(folder.path(), &["ls", "--json"])["runs"][0]["id"].as_str().unwrap().to_owned();
    let get = |from: &str| call(folder.path(), &["store", "get", &id, "-o", "-", "--store", from]);
    assert_eq!(get("new.sqlite").stdout, get("s.sqlite").stdout);
}

#[test]
fn get_note_and_rebuild_answer_in_json() {
    let folder = folder();
    answer(folder.path(), &["add", RUN]);
    let id = json(folder.path(), &["ls", "--json"])["runs"][0]["id"].clone();
    let id = id.as_str().unwrap();
    let got = json(folder.path(), &["get", id, "-o", "r.jsonl", "--json"]);
    assert_eq!((got["run"].as_str(), got["file"].as_str()), (Some(id), Some("r.jsonl")));
    assert_eq!(status(&store(folder.path(), &["get", id, "-o", "-", "--json"])), 2);
    let noted = json(folder.path(), &["note", id, "warm", "--author", "me", "--json"]);
    assert_eq!((noted["author"].as_str(), noted["message"].as_str()), (Some("me"), Some("warm")));
    assert_eq!(json(folder.path(), &["rebuild", "--json"])["runs"], 1);
}

#[test]
fn an_export_is_whole_or_not_there_and_words_that_do_not_fit_are_refused() {
    let folder = with_old_runs();
    answer(folder.path(), &["add", "old", "--system", "press 7"]);
    let lines = answer(folder.path(), &["export", "--format", "csv"]);
    assert_eq!(lines.split_terminator("\r\n").count(), 6, "{lines}");
    let few = ["export", "--format", "csv", "--until", "2020-01-05", "-n", "2"];
    assert_eq!(answer(folder.path(), &few).split_terminator("\r\n").count(), 3);
    let to_file = ["export", "--format", "parquet", "-o", "runs.parquet", "--json"];
    let said = json(folder.path(), &to_file);
    assert_eq!((&said["schema"], &said["rows"]), (&"tailbound-store-export/1".into(), &5.into()));
    let bytes = std::fs::read(folder.path().join("runs.parquet")).unwrap();
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    assert_eq!(status(&store(folder.path(), &to_file)), 2, "an existing file stays");
    let report = json(folder.path(), &["export", "--format", "kcidb", "--origin", "my_lab"]);
    assert_eq!(report["tests"].as_array().map(Vec::len), Some(5));
    for (words, says) in [
        (&["--format", "kcidb"][..], "--origin"),
        (&["--format", "kcidb", "--origin", "My Lab"], "My Lab"),
        (&["--format", "kcidb", "--origin", "a", "--table", "histograms"], "--table"),
        (&["--format", "csv", "--origin", "a"], "--origin"),
        (&["--format", "csv", "--json"], "-o"),
    ] {
        let out = store(folder.path(), &[&["export"], words].concat());
        assert_eq!(status(&out), 2, "{words:?}");
        assert!(stderr(&out).contains(says), "{words:?}: {}", stderr(&out));
    }
}

#[test]
fn what_became_worse_is_told_and_is_the_exit_status() {
    let folder = folder();
    std::fs::create_dir(folder.path().join("all")).unwrap();
    // Of "worse" every later run has all its wake-ups 40 µs later.
    for day in 1..=28i64 {
        let path = folder.path().join(format!("all/{day:02}.tailbound.jsonl"));
        let mut run = read(Path::new(RUN));
        run.header.started = format!("2020-01-{day:02}T00:00:00Z");
        run.header.id = format!("of-{day}");
        for thread in &mut run.threads {
            let usual_ns = 30_000 + day * 37 % 11 * 10 + if day > 14 { 40_000 } else { 0 };
            for percent in 0..100 {
                thread.wakeup.add_many(usual_ns + percent * 20, 400);
            }
        }
        std::fs::write(path, write_run(&run, Vec::new()).unwrap()).unwrap();
    }
    answer(folder.path(), &["add", "all", "--system", "worse <1>"]);
    answer(folder.path(), &["add", RUN, "--system", "young"]);
    let ask = |words: &[&str], expected: i32| {
        let out = store(folder.path(), &[&["regressions", "--days", "36500"], words].concat());
        assert_eq!(status(&out), expected, "{words:?}: {}{}", stdout(&out), stderr(&out));
        stdout(&out)
    };
    let text = ask(&[], 1);
    assert!(text.starts_with("1 of 1 series became worse"), "{text}");
    assert!(text.contains("worse since 2020-01-15T00:00:00Z"), "{text}");
    let all: Value = serde_json::from_str(&ask(&["--json"], 1)).unwrap();
    assert_eq!(all["schema"], "tailbound-store-regressions/1");
    assert_eq!((&all["short"], &all["regressions"][0]["name"]), (&1.into(), &"worse <1>".into()));
    let mail = ask(&["--format", "mail"], 1);
    // Its µs are not ASCII.
    assert!(mail.starts_with("Subject: =?UTF-8?B?"), "{mail}");
    assert!(
        mail.contains("\n\n1 of 1 series became worse") && mail.contains("\nBefore: "),
        "{mail}"
    );
    let ktap = ask(&["--format", "ktap"], 1);
    assert!(ktap.starts_with("KTAP version 1\n1..2\n"), "{ktap}");
    assert_eq!(ktap.lines().filter(|l| l.starts_with("not ok ")).count(), 1, "{ktap}");
    assert_eq!(ktap.lines().filter(|l| l.contains(" # SKIP ")).count(), 1, "{ktap}");
    let junit = ask(&["--format", "junit"], 1);
    let xml = roxmltree::Document::parse(&junit).unwrap();
    let cases = |name: &str| xml.descendants().filter(|n| n.has_tag_name(name)).count();
    assert_eq!((cases("testcase"), cases("failure"), cases("skipped")), (2, 1, 1), "{junit}");
    ask(&["--system", "young"], 0);
    ask(&["--system", "nobody"], 2);
}
