// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long to measure, runs that end by a rule, and a series of runs.

use crate::{call, folder, read, status, stderr, stdout};

#[test]
fn a_plan_says_how_long_and_refuses_what_it_cannot_answer() {
    let folder = folder();
    let json = |words: &[&str]| -> serde_json::Value {
        let out = call(folder.path(), words);
        assert_eq!(status(&out), 0, "{}", stderr(&out));
        serde_json::from_str(&stdout(&out)).unwrap()
    };
    let day = json(&["plan", "--deadline", "100us", "--rate", "1/24h", "--json"]);
    let seconds = day["rate"]["plan"]["needed"][0]["each_s"].as_f64().unwrap();
    assert!((seconds - 86_400.0 * 20f64.ln()).abs() < 1.0, "{seconds}");
    let five_nines = json(&["plan", "--share", "99.999%", "--loops", "10000000", "--json"]);
    assert_eq!(five_nines["share"]["given"]["allowed"], 83);
    for (words, hint) in [
        (&["plan"][..], "--rate"),
        (&["plan", "--rate", "24h"], "1/24h"),
        (&["plan", "--share", "150%"], "99.999%"),
        (&["plan", "--decimals", "2"], "--pilot"),
        (&["plan", "--duration", "12h", "--loops", "5"], "one of them"),
        (&["plan", "--rate", "1/1h", "--confidence", "95"], "0.95"),
    ] {
        let out = call(folder.path(), words);
        assert_eq!(status(&out), 2, "{words:?}");
        assert!(stderr(&out).contains(hint), "{words:?} lacks `{hint}`: {}", stderr(&out));
    }
}

#[test]
fn a_rule_ends_the_run_and_the_file_says_why() {
    let folder = folder();
    let measure = |rest: &[&str]| {
        let mut words =
            vec!["measure", "cyclic", "-q", "-o", "-", "--policy", "other", "--warm-up", "10ms"];
        words.extend(rest);
        let out = call(folder.path(), &words);
        let run = tailbound_core::runfile::read_run(out.stdout.as_slice()).unwrap();
        let why = run.events.iter().find(|e| e.event == "until").map(|e| e.text.clone());
        (run, why.unwrap_or_default())
    };
    // A deadline that nothing can keep: the first second ends what would have taken a minute.
    let (run, why) = measure(&["--until", "demonstrated", "-d", "1us", "--rate", "1/20s"]);
    assert!(why.starts_with("not demonstrated"), "{why}");
    assert!(run.measured_ns() < run.header.plan.duration_ns());
    assert_eq!(run.end.unwrap().reason, tailbound_core::EndReason::Rule);
    // One that everything keeps: the planned three seconds show it.
    let (run, why) = measure(&["--until", "demonstrated", "-d", "10s", "--rate", "1/1s"]);
    assert!(why.starts_with("shown"), "{why}");
    assert_eq!((run.measured_ns(), run.end.unwrap().reason.as_str()), (3_000_000_000, "complete"));
    // As cyclictest's -b: the first later wake-up ends it, and the file says which one it was.
    let (run, why) = measure(&["-b", "1us", "-D", "1m"]);
    assert!(why.starts_with("ended at the first wake-up later than 1.00 µs: it was "), "{why}");
    assert_eq!(run.end.as_ref().unwrap().reason, tailbound_core::EndReason::Rule);
    assert!(run.measured_ns() < run.header.plan.duration_ns());
    let (run, why) = measure(&["--break", "10s", "-t", "-l", "200"]);
    assert_eq!(
        (why.as_str(), run.end.unwrap().reason.as_str()),
        ("no wake-up was later than 10.0 s", "complete")
    );
    let short =
        ["measure", "cyclic", "--until", "demonstrated", "-d", "1ms", "--rate", "1/1h", "-D", "1m"];
    let out = call(folder.path(), &short);
    assert_eq!(status(&out), 2);
    assert!(stderr(&out).contains("2 h 59 min"), "{}", stderr(&out));
}

#[test]
fn a_series_that_became_worse_fails() {
    let folder = folder();
    // Made up: what a run of this machine would hold is this machine's affair.
    let mut random = tailbound_stats::random::Random::new(3);
    let mut column = "# latency_ns\n".to_owned();
    for _ in 0..5000 {
        column.push_str(&format!("{:.0}\n", 50_000.0 - 4_000.0 * random.uniform().ln()));
    }
    std::fs::write(folder.path().join("c.txt"), column).unwrap();
    let out = call(folder.path(), &["import", "c.txt", "--interval", "200us", "-o", "c.jsonl"]);
    assert_eq!(status(&out), 0, "{}", stderr(&out));
    let made_up = read(&folder.path().join("c.jsonl"));
    let series = folder.path().join("series");
    std::fs::create_dir(&series).unwrap();
    // The same figures in every run, and from the thirteenth on half of them a millisecond later.
    for i in 0..24usize {
        let mut run = made_up.clone();
        run.header.id = format!("run-{i}");
        run.header.started = format!("2026-01-01T{i:02}:00:00Z");
        if i >= 12 {
            run.header
                .machine
                .insert("kernel.release".to_owned(), tailbound_core::record::Fact::of("9.9.9"));
            for t in &mut run.threads {
                t.wakeup.add_many(1_000_000 + 1000 * i as i64, t.wakeup.n);
            }
        }
        let path = series.join(format!("{i:02}.tailbound.jsonl"));
        tailbound_core::runfile::write_run(&run, std::fs::File::create(path).unwrap()).unwrap();
    }
    let out = call(folder.path(), &["history", "series", "--json"]);
    assert_eq!(status(&out), 1, "{}", stderr(&out));
    let json: serde_json::Value = serde_json::from_str(&stdout(&out)).unwrap();
    let change = &json["series"][0]["changes"][0];
    assert_eq!(
        (change["at"].as_u64(), change["worse"].as_bool()),
        (Some(12), Some(true)),
        "{json}"
    );
    let facts = change["facts"].as_array().unwrap();
    assert!(facts.iter().any(|f| f["name"] == "kernel.release" && f["after"] == "9.9.9"));
    let picture = stdout(&call(folder.path(), &["history", "series", "--svg"]));
    assert!(picture.contains("<svg") && picture.contains("worse from 13"));
    let out = call(folder.path(), &["history", "."]);
    assert_eq!(status(&out), 2, "a folder without a run file");
}
