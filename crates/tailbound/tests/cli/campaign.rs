// SPDX-License-Identifier: MIT OR Apache-2.0
//! Campaigns: what is wrong is named, runs go on after a kill, and a page says what agrees with the
//! publication and what does not.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;
use tailbound_core::EndReason;
use tailbound_core::Run;

use crate::{PATIENCE, call, folder, read, skip, small, status, stderr, stdout, tailbound};

const STEPS: &str = r#"[[step]]
id = "first"
title = "The first"
told = "20,000 sleeps"
[step.run]
loops = 20000
interval = "1ms"
warm-up = "100ms"
policy = "other"
load = ["none"]
[[step]]
id = "tasks"
title = "Tasks"
told = "1 and 2 tasks"
tasks = "1-2"
[step.run]
loops = 30000
interval = "1ms"
warm-up = "100ms"
policy = "other"
load = ["none"]
[[step]]
id = "work"
title = "Work"
told = "some arithmetic, 5 times"
only-work = true
[step.run]
work = ["arithmetic:loops=2000"]
repeat = 5
[[figure]]
name = "mean"
step = "first"
statistic = "mean"
unit = "ns"
values = { any = MEAN }
[[claim]]
text = "never later than an hour"
left = "any first max"
is = "at-most"
right = "1h"
[[claim]]
text = "always later than an hour"
left = "any first min"
is = "above"
right = "1h"
"#;

/// A campaign file whose publication has this mean.
fn write(folder: &Path, mean: f64) -> PathBuf {
    let path = folder.join("small.toml");
    let text = small::head(r#"["the interval"]"#) + &STEPS.replace("MEAN", &format!("{mean:?}"));
    std::fs::write(&path, text).unwrap();
    path
}

fn json(folder: &Path, words: &[&str]) -> (i32, Value) {
    let out = call(folder, words);
    let value = serde_json::from_str(&stdout(&out));
    (status(&out), value.unwrap_or_else(|e| panic!("{e}: {} {}", stdout(&out), stderr(&out))))
}

fn run_file(folder: &Path, part: &str) -> PathBuf {
    folder.join("c/here").join(format!("{part}.tailbound.jsonl"))
}

fn identity(folder: &Path, part: &str) -> String {
    let run: Run = read(&run_file(folder, part));
    run.header.id
}

const SCALED: [&str; 10] =
    ["campaign", "run", "small.toml", "--scale", "0.01", "--system", "here", "-o", "c", "-q"];

#[test]
fn what_is_wrong_is_named_and_what_is_there_is_shown() {
    let folder = folder();
    let out = call(folder.path(), &["campaign", "list"]);
    assert_eq!(status(&out), 0, "{}", stderr(&out));
    for name in [
        "williams-redhat-2008",
        "williams-redhat-tuna",
        "mckenney-2009",
        "altera-2014",
        "altenberg-2016",
    ] {
        assert!(stdout(&out).contains(name));
        let out = call(folder.path(), &["campaign", "show", name]);
        assert_eq!(status(&out), 0, "{}", stderr(&out));
        assert!(stdout(&out).lines().all(|l| l.chars().count() <= 80), "{}", stdout(&out));
        // What is printed as a file is one.
        let toml = stdout(&call(folder.path(), &["campaign", "show", name, "--toml"]));
        std::fs::write(folder.path().join("own.toml"), toml).unwrap();
        let (code, own) = json(folder.path(), &["campaign", "show", "./own.toml", "--json"]);
        assert_eq!((code, &own["campaign"]["name"]), (0, &Value::from(name)));
    }
    let path = write(folder.path(), 1.0);
    let text = std::fs::read_to_string(&path)
        .unwrap()
        .replace("statistic = \"mean\"", "statistic = \"average\"");
    std::fs::write(&path, text).unwrap();
    let cases: [(&[&str], &str); 6] = [
        (&["campaign", "run", "small.toml"], "line 42"),
        (&["campaign", "run", "nosuch"], "there are williams-redhat-2008"),
        (&["campaign", "run", "osadl-farm", "--scale", "0"], "--scale 0"),
        (&["campaign", "run", "osadl-farm", "--only", "x"], "there are plot"),
        (&["campaign", "run", "osadl-farm", "--resume"], "no folder"),
        (&["campaign", "run", "altenberg-2016", "-k", "debian:6.12"], "give --scale"),
    ];
    for (words, hint) in cases {
        let out = call(folder.path(), words);
        assert_eq!(status(&out), 2, "{words:?}: {}", stderr(&out));
        assert!(stderr(&out).contains(hint), "{words:?}: {}", stderr(&out));
    }
    std::fs::create_dir(folder.path().join("full")).unwrap();
    std::fs::write(folder.path().join("full/mine"), "").unwrap();
    let out = call(folder.path(), &["campaign", "run", "osadl-farm", "-o", "full"]);
    assert!(status(&out) == 2 && stderr(&out).contains("holds no campaign"), "{}", stderr(&out));
}

#[test]
fn a_wrong_figure_of_the_text_differs_and_a_right_one_agrees() {
    let folder = folder();
    write(folder.path(), 1.0);
    let (code, page) = json(folder.path(), &[&SCALED[..], &["--json"]].concat());
    // A claim of the publication is false here.
    assert_eq!(code, 1, "{page}");
    assert_eq!(page["complete"], true);
    assert_eq!(page["figures"][0]["agrees"], false, "{}", page["figures"]);
    let mean = page["figures"][0]["value"]["value"].as_f64().unwrap();
    let word = |at: usize| page["claims"][at]["word"].as_str().unwrap_or_default().to_owned();
    // Of a hundredth of the events nothing is proven about a latest that was never reached.
    assert_eq!((word(0), word(1)), ("cannot-be-told".into(), "does-not-hold".into()));
    let lost = page["lost"].to_string();
    assert!(lost.contains("1/100") && lost.contains("3 of 5 repetitions"), "{lost}");
    let n = &page["systems"][0]["runs"][0]["share"];
    assert_eq!(n.as_f64().map(|s| (s * 1000.0).round()), Some(10.0));
    // The same runs beside a publication with the figures that were measured.
    write(folder.path(), mean);
    let (_, page) =
        json(folder.path(), &["campaign", "page", "c", "--campaign", "small.toml", "--json"]);
    assert_eq!(page["figures"][0]["agrees"], true, "{}", page["figures"]);
    let html = std::fs::read_to_string(folder.path().join("c/campaign.html")).unwrap();
    for part in ["href=\"here/first.html\"", "does not hold here", "What can no longer be claimed"]
    {
        assert!(html.contains(part), "{part}");
    }
    assert!(folder.path().join("c/here/work.html").exists());
    // The text for a terminal keeps to its width.
    let out = call(folder.path(), &["campaign", "page", "c"]);
    assert!(
        stdout(&out).lines().filter(|l| !l.contains('/')).all(|l| l.chars().count() <= 80),
        "{}",
        stdout(&out)
    );
    // Runs of another length are not taken for these, and not overwritten.
    write(folder.path(), 1.0);
    let words: Vec<&str> = SCALED.iter().map(|w| if *w == "0.01" { "0.02" } else { w }).collect();
    let out = call(folder.path(), &words);
    assert_eq!(status(&out), 2, "{}", stderr(&out));
    assert!(stderr(&out).contains("another --scale"), "{}", stderr(&out));
}

#[test]
fn after_a_kill_or_a_signal_the_same_words_go_on_and_complete_runs_are_kept() {
    let folder = folder();
    write(folder.path(), 1.0);
    // Long enough to be met in the second run: 200 s and 300 s times 0.02.
    let words: Vec<&str> = SCALED.iter().map(|w| if *w == "0.01" { "0.1" } else { w }).collect();
    for name in ["KILL", "INT"] {
        let mut child = tailbound()
            .args(&words)
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let next = if name == "KILL" { "tasks-1" } else { "tasks-2" };
        let file = run_file(folder.path(), next);
        let begun = Instant::now();
        while !std::fs::read_to_string(&file).is_ok_and(|t| t.contains("\"warm-up-over\"")) {
            if begun.elapsed() > PATIENCE {
                drop(child.kill());
                drop(child.wait());
                panic!("{next} never began");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        crate::send(child.id(), name);
        let ended = child.wait().unwrap();
        if name == "KILL" {
            // Nobody is left to measure on: the run's own process ends with its parent.
            let begun = Instant::now();
            while read(&file).end.is_none() && begun.elapsed() < PATIENCE {
                std::thread::sleep(Duration::from_millis(50));
            }
            let reason = read(&file).end.map(|e| e.reason);
            assert_eq!(reason, Some(EndReason::Interrupted), "it went on without its parent");
        } else {
            assert_eq!(ended.code(), Some(5), "not complete");
            let html = std::fs::read_to_string(folder.path().join("c/campaign.html")).unwrap();
            assert!(html.contains("not complete: interrupted") && html.contains("not run yet"));
        }
    }
    // What a power cut leaves: half a file of a run that was complete.
    let first = run_file(folder.path(), "first");
    let before = [identity(folder.path(), "first"), identity(folder.path(), "tasks-1")];
    let text = std::fs::read_to_string(&first).unwrap();
    std::fs::write(&first, text.split_at(text.len() / 2).0).unwrap();
    let out = call(folder.path(), &[&words[..], &["--resume"]].concat());
    assert_eq!(status(&out), 1, "{}", stderr(&out));
    let after = [identity(folder.path(), "first"), identity(folder.path(), "tasks-1")];
    assert_ne!(before[0], after[0], "a cut-off run is made again");
    assert_eq!(before[1], after[1], "a complete run is kept");
    for part in ["first", "tasks-1", "tasks-2", "work"] {
        let end = read(&run_file(folder.path(), part)).end;
        assert_eq!(end.map(|e| e.reason), Some(EndReason::Complete), "{part}");
    }
}

#[test]
fn both_kernels_of_the_lab_stand_side_by_side() {
    let folder = folder();
    let fetched = call(folder.path(), &["lab", "kernel", "fetch", "debian:6.12", "debian:6.12-rt"]);
    if status(&fetched) != 0 {
        skip("kernels", format!("Debian's kernels cannot be had: {}", stderr(&fetched)));
        return;
    }
    let words = [
        "campaign",
        "run",
        "williams-redhat-2008",
        "-k",
        "debian:6.12",
        "-k",
        "debian:6.12-rt",
        "--scale",
        "0.0002",
        "--only",
        "cyclictest",
        "-o",
        "c",
        "-q",
        "--json",
    ];
    let out = call(folder.path(), &words);
    if status(&out) == 3 {
        skip("lab", format!("the lab cannot run here: {}", stderr(&out)));
        return;
    }
    let page: Value = serde_json::from_str(&stdout(&out)).unwrap();
    let kinds: Vec<&str> =
        page["systems"].as_array().unwrap().iter().filter_map(|s| s["kind"].as_str()).collect();
    assert_eq!(kinds, ["stock", "preempt-rt"], "{page}");
    // The other step was not asked for.
    assert_eq!((status(&out), &page["complete"]), (5, &Value::from(false)));
    let max = page["figures"].as_array().unwrap().iter().filter(|f| f["figure"] == "max");
    let measured: Vec<&str> = max.filter_map(|f| f["measured_on"].as_str()).collect();
    assert_eq!(measured, ["debian:6.12 (lab)", "debian:6.12-rt (lab)"]);
    assert!(page["differs"].to_string().contains("virtual time"), "{}", page["differs"]);
}

#[test]
fn a_page_of_two_texts_is_refused() {
    let folder = folder();
    for (system, text) in [("a", "mckenney-2009"), ("b", "williams-redhat-2008")] {
        let shipped = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join(format!("../../campaigns/{text}.toml"));
        std::fs::create_dir(folder.path().join(system)).unwrap();
        std::fs::copy(shipped, folder.path().join(system).join("campaign.toml")).unwrap();
    }
    let out = call(folder.path(), &["campaign", "page", "a", "b"]);
    assert_eq!(status(&out), 2, "{}", stderr(&out));
    let said = stderr(&out);
    assert!(said.contains("williams-redhat-2008") && said.contains("shows one campaign"), "{said}");
}
