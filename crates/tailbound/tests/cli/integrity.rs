// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run file is believed as far as its records go: forged, changed, joined and cut off.
//!
//! No latency of this machine is asserted: what is compared stands in the same file.

use std::path::Path;

use super::{altered, call, folder, skip, status, stderr, stdout};
use tailbound_core::Run;
use tailbound_core::finding::Impact;
use tailbound_core::record::Line;
use tailbound_core::runfile::{read_line, read_run};
use tailbound_core::{Outcome, Verdict};

/// A run of all CPUs whose every wake-up is an exceedance, and its file.
fn failing(folder: &Path, name: &str, duration: &str) -> Vec<u8> {
    let out = call(
        folder,
        &["measure", "cyclic", "-D", duration, "-d", "100ns", "-i", "2ms", "-o", name, "--force"],
    );
    assert_eq!(status(&out), 1, "{}", stderr(&out));
    std::fs::read(folder.join(name)).unwrap()
}

fn lines(file: &[u8]) -> Vec<&[u8]> {
    file.split_inclusive(|b| *b == b'\n').collect()
}

fn is(line: &[u8], kind: &str) -> bool {
    line.starts_with(format!("{{\"type\":\"{kind}\"").as_bytes())
}

/// As a forger does who knows of digests: none is left, and the count is right.
fn without_digests(lines: &[Vec<u8>]) -> Vec<u8> {
    let kept: Vec<&Vec<u8>> = lines.iter().filter(|l| !is(l, "digest")).collect();
    let mut out = Vec::new();
    for (i, line) in kept.iter().enumerate() {
        match read_line(line) {
            Ok(Some(Line::End(mut end))) => {
                end.lines = i as u64;
                serde_json::to_writer(&mut out, &Line::End(end)).unwrap();
                out.push(b'\n');
            }
            _ => out.extend_from_slice(line),
        }
    }
    out
}

fn judged(file: &[u8]) -> Run {
    let mut run = read_run(file).unwrap_or_else(|e| panic!("{e}"));
    tailbound_stats::judge(&mut run);
    run
}

#[test]
fn a_forged_verdict_is_not_believed() {
    let folder = folder();
    let file = failing(folder.path(), "a.jsonl", "2s");
    let honest = judged(&file).verdict.unwrap();
    assert_eq!(honest.outcome, Outcome::NotMet);
    let forged: Vec<Vec<u8>> = lines(&file)
        .into_iter()
        .map(|line| match read_line(line) {
            Ok(Some(Line::Verdict(v))) => {
                let sentence = "Met: none came later; the latest was 362 ns.".to_owned();
                let v = Verdict { outcome: Outcome::Met, sentence, beyond: 0, ..v };
                let mut text = serde_json::to_vec(&Line::Verdict(v)).unwrap();
                text.push(b'\n');
                text
            }
            _ => line.to_vec(),
        })
        .collect();
    let path = folder.path().join("forged.jsonl");
    for (text, ids) in [
        (forged.concat(), &["file-altered", "file-verdict"][..]),
        (without_digests(&forged), &["file-verdict"]),
    ] {
        std::fs::write(&path, &text).unwrap();
        let shown = stdout(&call(folder.path(), &["show", "forged.jsonl"]));
        assert!(!shown.contains("Met: none came later"), "{shown}");
        assert!(shown.contains("the verdict in the file is `met`"), "{shown}");
        for verb in
            [&["show", "--json", "forged.jsonl"][..], &["report", "forged.jsonl", "-o", "-"]]
        {
            let out = stdout(&call(folder.path(), verb));
            assert!(ids.iter().all(|id| out.contains(id)), "{verb:?}: {out}");
        }
        let run = judged(&text);
        assert_ne!(run.verdict.unwrap().outcome, Outcome::Met);
    }
    // The same verdict is nothing to speak of.
    assert!(judged(&file).findings.iter().all(|f| !f.id.starts_with("file-")));
}

#[test]
fn what_is_missing_or_too_much_forbids_met() {
    let folder = folder();
    let out = call(folder.path(), &["measure", "cyclic", "-D", "2s", "-d", "10s", "-o", "a.jsonl"]);
    assert!([0, 5].contains(&status(&out)), "{}", stderr(&out));
    let file = std::fs::read(folder.path().join("a.jsonl")).unwrap();
    let all: Vec<Vec<u8>> = lines(&file).into_iter().map(<[u8]>::to_vec).collect();
    let without = |wanted: &dyn Fn(&[u8]) -> bool| -> Vec<u8> {
        let kept: Vec<Vec<u8>> = all.iter().filter(|l| !wanted(l)).cloned().collect();
        without_digests(&kept)
    };
    let of_0 = |l: &[u8], kind: &str| {
        l.starts_with(format!("{{\"type\":\"{kind}\",\"thread\":0,").as_bytes())
    };
    for (what, text) in [
        ("all seconds", without(&|l| is(l, "second"))),
        ("a thread", without(&|l| of_0(l, "thread"))),
        (
            "a thread and all of it",
            without(&|l| {
                ["thread", "second", "window", "block", "exceedance"].iter().any(|k| of_0(l, k))
            }),
        ),
        ("another run before it", [failing(folder.path(), "b.jsonl", "1s"), file.clone()].concat()),
        ("another run after it", [file.clone(), file.clone()].concat()),
        ("two runs, one cut off", [all[..all.len() - 3].concat(), file.clone()].concat()),
    ] {
        let run = judged(&text);
        assert_ne!(run.verdict.as_ref().unwrap().outcome, Outcome::Met, "{what}");
        let weighty = |i| matches!(i, Impact::Doubt | Impact::Unfit);
        let found = run.findings.iter().any(|f| f.id.starts_with("file-") && weighty(f.impact));
        // A CPU of the plan without a thread is an obstacle of the verdict's own.
        let silent = run.verdict.unwrap().sentence.contains("nothing was recorded");
        assert!(found || silent, "{what}: {:?}", run.findings);
    }
    altered::every_change_is_noticed("cyclic", &file);
    // Works that are killed take nothing along: the digest after the verdict vouches for it.
    let end = all.iter().position(|l| is(l, "verdict")).unwrap() + 2;
    let cut = judged(&all[..end].concat());
    assert!(cut.findings.iter().any(|f| f.id == "file-cut-after-verdict"));
    assert_eq!(cut.verdict.unwrap().outcome, judged(&file).verdict.unwrap().outcome);
}

#[test]
fn a_file_that_was_cut_off_tells_all_it_holds() {
    let folder = folder();
    let file = failing(folder.path(), "a.jsonl", "6s");
    let all = lines(&file);
    let path = folder.path().join("cut.jsonl");
    for at in (2..all.len()).filter(|at| !is(all[*at - 1], "end")) {
        let (cut, whole) = (all[..at].concat(), &all[..at]);
        let run = judged(&cut);
        let (mut n, mut max) = (std::collections::BTreeMap::new(), None);
        for line in whole {
            match read_line(line) {
                Ok(Some(Line::Second(s))) => {
                    *n.entry(s.thread).or_insert(0) += s.n;
                    max = max.max(Some(s.max_ns));
                }
                Ok(Some(Line::Exceedance(e))) => max = max.max(Some(e.error_ns)),
                Ok(Some(Line::Thread(t))) => max = max.max(t.wakeup.max_ns),
                _ => {}
            }
        }
        let (wakeups, due) = run.total("user");
        assert!(wakeups.max_ns == max, "after line {at}: {:?}, not {max:?}", wakeups.max_ns);
        for (thread, n) in n {
            let t = run.threads.iter().find(|t| t.thread == thread).unwrap();
            assert!(t.wakeup.n >= n, "after line {at}, thread {thread}");
            let binned = t.wakeup.late.total() + t.wakeup.early.total();
            assert_eq!(t.wakeup.n, binned + t.wakeup.unbinned, "after line {at}");
        }
        let verdict = run.verdict.as_ref().unwrap();
        assert_eq!(verdict.due, due.n, "after line {at}");
        let known_late = max.is_some_and(|max| max > 1);
        let expected = if known_late { Outcome::NotMet } else { Outcome::Undecided };
        assert_eq!(verdict.outcome, expected, "after line {at}: {}", verdict.sentence);
    }
    // Between two full records: sentence, table and bound agree.
    let at = all.iter().rposition(|l| is(l, "second")).unwrap() + 1;
    std::fs::write(&path, all[..at].concat()).unwrap();
    let latest = judged(&all[..at].concat()).total("user").0.max_ns.unwrap();
    let short = tailbound_core::units::format_ns_i64(latest);
    let shown = stdout(&call(folder.path(), &["show", "cut.jsonl"]));
    let bound = stdout(&call(folder.path(), &["bound", "cut.jsonl"]));
    for (verb, text) in [("show", &shown), ("bound", &bound)] {
        let contradicts = text.contains("none of") || text.contains("Nothing was recorded");
        assert!(!contradicts, "{verb}: {text}");
    }
    assert!(shown.contains(&short), "{short}: {shown}");
}

#[test]
fn signatures_are_made_and_looked_at() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = folder();
    failing(folder.path(), "a.jsonl", "1s");
    let run = |words: &[&str]| call(folder.path(), words);
    let made = run(&["sign", "--new-key", "-W", "--key", "k/mine.key", "a.jsonl"]);
    assert_eq!(status(&made), 0, "{}", stderr(&made));
    let key = folder.path().join("k/mine.key");
    assert_eq!(key.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(
        status(&run(&["sign", "--new-key", "-W", "--key", "k/mine.key"])),
        2,
        "never replaced"
    );
    assert_eq!(status(&run(&["sign", "--new-key", "-W", "--key", "other.key"])), 0);
    for (words, expected) in [
        (&["verify", "a.jsonl"][..], 0),
        (&["verify", "a.jsonl", "--key", "k/mine.pub"], 0),
        (&["verify", "a.jsonl", "--key", "other.pub"], 1),
        (&["verify", "a.jsonl", "--key", "k/mine.key"], 2),
        (&["verify", "a.jsonl", "--key", "absent.pub"], 2),
        (&["sign", "a.jsonl", "--key", "k/mine.key"], 2),
        (&["sign", "a.jsonl", "--key", "k/mine.key", "--force"], 0),
    ] {
        assert_eq!(status(&run(words)), expected, "{words:?}");
    }
    let answer = run(&["verify", "a.jsonl", "--key", "k/mine.pub", "--json"]);
    let answer: serde_json::Value = serde_json::from_slice(&answer.stdout).unwrap();
    assert_eq!(answer["files"][0]["signed"], true);
    assert_eq!(answer["files"][0]["digest"], "whole");
    let path = folder.path().join("a.jsonl");
    let file = std::fs::read(&path).unwrap();
    // Whoever rewrites the whole file can give it a right digest, but no signature.
    let mut run_again = read_run(&file[..]).unwrap();
    run_again.header.started = "2001-01-01T00:00:00Z".to_owned();
    let rewritten = tailbound_core::runfile::write_run(&run_again, Vec::new()).unwrap();
    std::fs::write(&path, rewritten).unwrap();
    assert_eq!(status(&run(&["verify", "a.jsonl"])), 0, "only a signature tells");
    assert_eq!(status(&run(&["verify", "a.jsonl", "--key", "k/mine.pub"])), 1);
    // One byte: the digest tells, and it is not signed.
    let at = file.windows(9).position(|w| w == b"\"max_ns\":").unwrap() + 9;
    let mut changed = file.clone();
    changed[at] = if changed[at] == b'1' { b'2' } else { b'1' };
    std::fs::write(folder.path().join("b.jsonl"), changed).unwrap();
    assert_eq!(status(&run(&["verify", "b.jsonl"])), 1);
    assert_eq!(status(&run(&["sign", "b.jsonl", "--key", "k/mine.key"])), 1);
    let cut = file.len() / 2;
    std::fs::write(folder.path().join("c.jsonl"), &file[..cut]).unwrap();
    assert_eq!(status(&run(&["verify", "c.jsonl"])), 5);
    let old: Vec<Vec<u8>> = lines(&file).into_iter().map(<[u8]>::to_vec).collect();
    std::fs::write(folder.path().join("d.jsonl"), without_digests(&old)).unwrap();
    assert_eq!(status(&run(&["verify", "d.jsonl"])), 5);
}

#[test]
fn the_one_liners_of_the_page_count_each_thread_once() {
    let folder = folder();
    let file = failing(folder.path(), "run.tailbound.jsonl", "3s");
    let threads = read_run(&file[..]).unwrap().threads;
    assert!(lines(&file).iter().filter(|l| is(l, "thread")).count() > threads.len());
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/run-file.md");
    let page = std::fs::read_to_string(page).unwrap();
    let jq =
        page.lines().filter(|l| l.starts_with("jq ") || l.starts_with("head ")).collect::<Vec<_>>();
    assert!(jq.len() >= 3, "{jq:?}");
    if !Path::new("/usr/bin/jq").exists() {
        return skip("jq", "jq is not installed");
    }
    for command in jq {
        let out = std::process::Command::new("sh")
            .args(["-c", command])
            .current_dir(folder.path())
            .output()
            .unwrap();
        let text = stdout(&out);
        assert!(out.status.success(), "{command}: {}", stderr(&out));
        if command.contains("max_ns") {
            assert_eq!(text.lines().count(), threads.len(), "{command}: {text}");
            let max = threads[0].wakeup.max_ns.unwrap();
            assert!(text.contains(&format!("\"max_ns\":{max}")), "{command}: {text}");
        }
        if command.contains("sha256sum") {
            let end = String::from_utf8_lossy(lines(&file).last().unwrap()).into_owned();
            let digest = text.split_whitespace().next().unwrap();
            assert!(end.contains(digest) && digest.len() == 64, "{command}: {text}");
        }
    }
}
