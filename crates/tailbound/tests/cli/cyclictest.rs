// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tailbound cyclictest`, also when it is called by that name: what scripts of cyclictest see.
//!
//! Not here: layouts and options one by one (`tailbound-cyclictest`).

use std::os::unix::fs::symlink;
use std::process::Command;

use tailbound_core::runfile::read_run;

use crate::{LOCK_FOLDER, call, folder, status, stderr, stdout};

#[test]
fn under_its_name_it_is_read_back_and_leaves_a_run_file() {
    let folder = folder();
    let name = folder.path().join("cyclictest");
    symlink(env!("CARGO_BIN_EXE_tailbound"), &name).unwrap();
    let words = ["-q", "-l", "50", "-i1000", "-h 4", "--laptop", "--json=j.json"];
    let mut command = Command::new(&name);
    command.args(words).env(LOCK_FOLDER, "/nonexistent").current_dir(folder.path());
    let out = command.output().unwrap();
    assert_eq!(status(&out), 0, "{}", stderr(&out));
    let text = stdout(&out);
    let total = text.lines().find_map(|l| l.strip_prefix("# Total: ")).unwrap();
    let over = text.lines().find_map(|l| l.strip_prefix("# Histogram Overflows: ")).unwrap();
    let number = |text: &str| text.trim().parse::<u64>().unwrap();
    let run = folder.path().join("j.json.tailbound.jsonl");
    let run = read_run(std::fs::read(run).unwrap().as_slice()).unwrap();
    let wakeup = &run.threads[0].wakeup;
    assert_eq!(number(total) + number(over), wakeup.n, "{text}");
    assert!(!run.header.plan.raw, "the samples went to the histogram");
    assert_eq!(run.header.plan.activations, 50);

    let words = ["import", "j.json", "-o", "back.tailbound.jsonl"];
    let out = call(folder.path(), &words);
    assert_eq!(status(&out), 0, "{}", stderr(&out));
    let back = std::fs::read(folder.path().join("back.tailbound.jsonl")).unwrap();
    let back = &read_run(back.as_slice()).unwrap().threads[0].wakeup;
    let us = |ns: Option<i64>| ns.map(|ns| ns / 1000);
    assert_eq!(
        (back.n, us(back.min_ns), us(back.max_ns)),
        (wakeup.n, us(wakeup.min_ns), us(wakeup.max_ns))
    );
}

#[test]
fn a_break_ends_it_and_a_run_file_that_cannot_be_written_does_not() {
    let folder = folder();
    // An ordinary thread has a timer slack of 50 us: nothing wakes it within 1 us.
    let words = ["cyclictest", "-q", "-b", "0", "-D", "1", "--laptop"];
    assert!(!stdout(&call(folder.path(), &words)).contains("Thread Ids"), "0 is no limit");
    let mut command = crate::tailbound();
    command.env("TAILBOUND_CYCLICTEST_OUT", "no/such/folder/r.jsonl").current_dir(folder.path());
    command.args(["cyclictest", "-b", "1", "-l", "1000000", "--laptop"]);
    let out = command.output().unwrap();
    assert_eq!(status(&out), 0, "{}", stderr(&out));
    assert!(stderr(&out).contains("no run file"), "{}", stderr(&out));
    let text = stdout(&out);
    let (frames, end) = text.split_once("# Thread Ids: ").unwrap();
    let lines: Vec<&str> = end.lines().collect();
    let [tid, thread, value] = lines.as_slice() else { panic!("{end}") };
    let tid = tid.trim_start_matches('0');
    assert_eq!(thread.strip_prefix("# Break thread: "), Some(tid));
    let value: u64 = value.strip_prefix("# Break value: ").unwrap().parse().unwrap();
    assert!(value > 1, "{end}");
    assert!(frames.starts_with("policy: other/other: loadavg: "), "{frames}");
    assert!(frames.contains(&format!("T: 0 ({tid:>5}) P: 0 I:1000 C:")), "{frames}");
}
