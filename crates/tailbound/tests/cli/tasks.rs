// SPDX-License-Identifier: MIT OR Apache-2.0
//! tasks: from a model to bounds, changes and an exit status.

use crate::{call, folder, status, stderr, stdout};

const MODEL: &str = r#"
task = [
  { name = "a", priority = 3, period = "7ms", wcet = "3ms" },
  { name = "b", priority = 2, period = "12ms", wcet = "3ms" },
  { name = "c", priority = 1, period = "20ms", wcet = "5ms", deadline = "20ms" },
]
"#;

fn json(out: &std::process::Output) -> serde_json::Value {
    serde_json::from_str(&stdout(out)).unwrap_or_else(|e| panic!("{e}: {}", stderr(out)))
}

#[test]
fn a_model_by_hand_has_its_bounds_parts_and_changes() {
    let folder = folder();
    std::fs::write(folder.path().join("m.toml"), MODEL).unwrap();
    let tasks = |words: &[&str]| call(folder.path(), &[&["tasks", "m.toml"], words].concat());
    let out = tasks(&[]);
    assert_eq!(status(&out), 0, "{}", stderr(&out));
    let text = stdout(&out);
    for words in [
        "1 of 1 deadlines are shown to hold",
        "9.00 ms a (3 jobs)",
        "bounds hold if the model does",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let out = json(&tasks(&["--json"]));
    let ns = |out: &serde_json::Value| -> Vec<i64> {
        let threads = out["threads"].as_array().unwrap();
        threads.iter().map(|t| t["bound_ns"].as_i64().unwrap_or(-1)).collect()
    };
    assert_eq!(ns(&out), [3_000_000, 6_000_000, 20_000_000]);
    assert_eq!(out["schema"], "tailbound-tasks/1");
    let terms = out["threads"][2]["terms"].as_array().unwrap();
    let sum: i64 = terms.iter().map(|t| t["ns"].as_i64().unwrap()).sum();
    assert_eq!(sum, 20_000_000, "{terms:?}");

    // A deadline that is not shown; one of an added thread; the changed model decides.
    assert_eq!(status(&tasks(&["--deadline", "b=5ms"])), 5);
    assert_eq!(status(&tasks(&["--deadline", "b=5ms", "--what-if", "priority:b=9"])), 0);
    let add = ["--what-if", "add:name=x,period=5ms,wcet=2ms,priority=60"];
    let out = tasks(&[&add[..], &["--json"]].concat());
    assert_eq!(status(&out), 5, "overloaded");
    let out = json(&out);
    assert_eq!(ns(&out["what_if"]).len(), 4);
    let why = out["what_if"]["threads"][2]["no_bound"].as_str().unwrap();
    assert!(why.starts_with("not schedulable"), "{why}");
    let elsewhere =
        ["--what-if", "add:name=x,period=5ms,wcet=2ms,priority=60,cpu=1", "--deadline", "x=2ms"];
    assert_eq!(status(&tasks(&elsewhere)), 0);
    assert!(stdout(&tasks(&elsewhere)).contains("What if x is added on CPU 1"));
}

#[test]
fn what_is_wrong_is_said() {
    let folder = folder();
    std::fs::write(folder.path().join("m.toml"), MODEL).unwrap();
    std::fs::write(
        folder.path().join("bad.toml"),
        "[[task]]\nname = \"a\"\npriority = 1\nwcet = \"1ms\"\n",
    )
    .unwrap();
    for (words, hint) in [
        (&["m.toml", "--what-if", "priority:d=4"][..], "no thread `d`"),
        (&["m.toml", "--what-if", "drop:a=4"], "is none of priority:"),
        (&["m.toml", "--what-if", "add:name=a,period=5ms,wcet=1ms,priority=6"], "already"),
        (&["m.toml", "--what-if", "add:name=x,period=5,wcet=1ms,priority=6"], "unit"),
        (&["m.toml", "--deadline", "a"], "NAME=TIME"),
        (&["m.toml", "--deadline", "a=0s"], "above zero"),
        (&["bad.toml"], "period: is missing"),
        (&["none.toml"], "none.toml"),
    ] {
        let out = call(folder.path(), &[&["tasks"], words].concat());
        assert_eq!(status(&out), 2, "{words:?}: {}", stderr(&out));
        assert!(stderr(&out).contains(hint), "{words:?} lacks `{hint}`: {}", stderr(&out));
        assert_eq!(stdout(&out), "");
    }
}

#[test]
fn a_run_answers_with_what_was_seen_and_on_that_condition() {
    let folder = folder();
    let out = call(
        folder.path(),
        &[
            "measure",
            "cyclic",
            "-l",
            "10",
            "-i",
            "1ms",
            "--policy",
            "other",
            "-q",
            "-o",
            "r.tailbound.jsonl",
        ],
    );
    assert_eq!(status(&out), 0, "{}", stderr(&out));
    let path = folder.path().join("r.tailbound.jsonl");
    let out = call(folder.path(), &["tasks", "r.tailbound.jsonl"]);
    assert_eq!(
        (status(&out), stderr(&out).contains("no thread was watched")),
        (2, true),
        "{}",
        stderr(&out)
    );

    // Two threads, watched for a second; the file then no longer is what its digest says, which only notes.
    let task = |thread: u32, name: &str, policy: &str, ns: i64, response: i64| {
        format!(
            r#"{{"type":"task","thread":{thread},"name":"{name}","tid":{thread},"policy":"{policy}","cpus":[1],"jobs":100,"from_ns":0,"to_ns":1000000000,"arrival":{{"model":"periodic","period_ns":10000000,"jitter_ns":1000,"offset_ns":5}},"distance_min_ns":[9999000,19999000],"distance_max_ns":[10001000,20001000],"execution_max_ns":[{ns},{}],"execution_min_ns":[{ns},{ns}],"latency_max_ns":[50000,60000],"response":{{"ns":{response},"t_ns":7}},"suspension":{{"ns":0,"t_ns":0}},"blocked":{{"ns":0,"t_ns":0}},"latency":{{"ns":50000,"t_ns":9}},"section":{{"ns":40000,"t_ns":9}},"unwatched":{{"ns":0,"t_ns":0}}}}"#,
            ns * 2
        )
    };
    let text = std::fs::read_to_string(&path).unwrap();
    let (head, rest) = text.split_once('\n').unwrap();
    let file = [
        head,
        &task(0, "fast", "fifo:80", 2_000_000, 2_040_000),
        &task(1, "slow", "fifo:50", 3_000_000, 3_050_000),
        &task(2, "ordinary", "other", 3_000_000, 9_050_000),
        rest,
    ]
    .join("\n");
    std::fs::write(&path, file).unwrap();
    let out =
        call(folder.path(), &["tasks", "r.tailbound.jsonl", "--deadline", "slow=6ms", "--json"]);
    assert_eq!(status(&out), 0, "{}", stderr(&out));
    let out = json(&out);
    assert_eq!(out["threads"][0]["bound_ns"], 2_050_000);
    assert_eq!(out["threads"][1]["bound_ns"], 5_050_000, "seen 3.05 ms, possible 5.05 ms");
    assert!(out["threads"][2]["no_bound"].as_str().unwrap().contains("fixed priorities"));
    assert!(out["condition"].as_str().unwrap().contains("what was seen in 1.00 s"), "{out:#}");
    let out = call(folder.path(), &["tasks", "r.tailbound.jsonl", "--deadline", "slow=3ms"]);
    assert_eq!(status(&out), 1, "it was exceeded: {}", stdout(&out));
    assert!(
        stdout(&out).contains("no guarantee") && stdout(&out).contains("seen"),
        "{}",
        stdout(&out)
    );
}
