// SPDX-License-Identifier: MIT OR Apache-2.0
//! bound: from files to a statement and an exit status.

use crate::{call, folder, status, stderr, stdout};

/// An hour of one value a second, exponential above 50 µs, as a column of numbers.
fn column() -> String {
    let mut random = tailbound_stats::random::Random::new(8);
    let mut text = "# latency_ns\n".to_owned();
    for _ in 0..3700 {
        text.push_str(&format!("{:.0}\n", 50_000.0 - 4_000.0 * random.uniform().ln()));
    }
    text
}

#[test]
fn a_column_of_numbers_is_bounded_or_refused() {
    let folder = folder();
    std::fs::write(folder.path().join("c.txt"), column()).unwrap();
    let bound = |words: &[&str]| call(folder.path(), &[&["bound", "c.txt"], words].concat());
    let out = bound(&["--interval", "1s", "--deadline", "1ms", "--json"]);
    assert_eq!(status(&out), 0, "{}", stderr(&out));
    let json: serde_json::Value = serde_json::from_str(&stdout(&out)).unwrap();
    let statement = &json["runs"][0]["statement"];
    assert_eq!(statement["extrapolation"]["kind"], "bound", "{json:#}");
    let level = statement["extrapolation"]["bound_ns"].as_f64().unwrap();
    assert!((80_000.0..400_000.0).contains(&level), "{level}");
    // Within what was seen, between it and the bound.
    assert_eq!(status(&bound(&["--interval", "1s", "--deadline", "51us"])), 1);
    assert_eq!(status(&bound(&["--interval", "1s", "--deadline", "95us"])), 5);
    let out = bound(&["--interval", "1s", "--svg", "c.svg", "--above", "70us"]);
    let text = stdout(&out);
    assert!(text.contains("For any distribution") && text.contains("70 µs"), "{text}");
    assert!(std::fs::read_to_string(folder.path().join("c.svg")).unwrap().contains("bound"));
    // 3.7 s of samples: too short, and it says so.
    let out = bound(&["--interval", "1ms", "--deadline", "1ms"]);
    assert_eq!(status(&out), 5, "{}", stdout(&out));
    assert!(stdout(&out).contains("30 min"), "{}", stdout(&out));
    assert_eq!(status(&bound(&["--extrapolate", "1000"])), 2);
}

#[test]
fn a_histogram_says_why_it_has_no_bound() {
    let folder = folder();
    std::fs::write(
        folder.path().join("h.txt"),
        "# Histogram\n000010 000900\n000011 000100\n# Total: 000001000\n# Min Latencies: 00010\n\
         # Avg Latencies: 00010\n# Max Latencies: 00011\n# Histogram Overflows: 00000\n",
    )
    .unwrap();
    let out = call(folder.path(), &["bound", "h.txt"]);
    assert_eq!(status(&out), 0, "{}", stderr(&out));
    assert!(stdout(&out).contains("neither order nor time"), "{}", stdout(&out));
}

/// An answer of `bound --theory here --json`, as far as it is read.
fn recorded(machine: bool) -> String {
    let variable = |name: &str, ns: i64| {
        serde_json::json!({
            "variable": name, "ns": ns, "n": 9, "tracing_ns": ns / 4, "at_ns": 0, "from": "a", "to": "b",
        })
    };
    let record = serde_json::json!({
        "variables": [variable("poid", 9000), variable("paie", 500), variable("psd", 3000), variable("st", 1000)],
        "interrupts": [{
            "vector": "local timer", "n": 9, "longest_ns": 2000, "nested_ns": 0, "apart_ns": 1_000_000,
            "curve": [{ "within_ns": 0, "n": 1, "sum_ns": 2000 }],
        }],
        "span_ns": 10_000_000,
        "curves_to_ns": 1_000_000,
        "step_ns": 0,
        "preconditions": [],
        "observed": { "n": 3, "scheduling_ns": 7000, "sample_ns": 7000 },
    });
    serde_json::json!({ "kernel": "6.0.0-x", "machine": machine, "theory": { "record": record } })
        .to_string()
}

#[test]
fn a_recorded_theory_is_read_again_and_bounds_tasks() {
    let folder = folder();
    std::fs::write(folder.path().join("here.json"), recorded(true)).unwrap();
    std::fs::write(folder.path().join("lab.json"), recorded(false)).unwrap();
    let out = call(folder.path(), &["bound", "--theory", "here.json"]);
    let text = stdout(&out);
    assert_eq!(status(&out), 0, "{}", stderr(&out));
    // 9 + 0.5 + 3 of the variables, and one interrupt of 2 µs.
    for part in ["14.5 µs", "of that recording", "up to 2.25 µs", "took 7.00 µs from"] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    assert!(!text.contains("latest sample"), "nothing was measured: {text}");
    let model = "task = [{ name = \"a\", priority = 3, period = \"7ms\", wcet = \"1ms\" }]";
    std::fs::write(folder.path().join("m.toml"), model).unwrap();
    let tasks =
        |bound: &str| call(folder.path(), &["tasks", "m.toml", "--json", "--latency-bound", bound]);
    for bound in ["here.json", "14.5us"] {
        let out = tasks(bound);
        let json: serde_json::Value = serde_json::from_str(&stdout(&out)).unwrap();
        assert_eq!(json["threads"][0]["bound_ns"], 1_014_500, "{json:#}");
        assert_eq!(json["latency_bound"]["ns"], 14_500);
    }
    for (bound, why) in
        [("lab.json", "lab"), ("no.json", "there is no file"), ("0us", "above zero")]
    {
        let out = tasks(bound);
        assert_eq!(status(&out), 2, "{bound}");
        assert!(stderr(&out).contains(why), "{}", stderr(&out));
    }
    // A time and CPUs are of a recording.
    let out = call(folder.path(), &["bound", "--theory", "here.json", "-D", "3s"]);
    assert_eq!(status(&out), 2, "{}", stdout(&out));
}

#[test]
fn a_kernel_without_the_events_is_refused_by_the_name_of_the_option() {
    if !tailbound_sys::process::is_root() {
        tailbound_testing::skip("root", "tracefs needs it");
        return;
    }
    let folder = folder();
    let out = call(folder.path(), &["bound", "--theory", "here", "-D", "200ms", "-q"]);
    match status(&out) {
        3 => {
            let why = stderr(&out);
            assert!(why.contains("CONFIG_") || why.contains("tracefs"), "{why}");
        }
        // This one has them.
        0 | 5 => assert!(stdout(&out).contains("Recording"), "{}", stdout(&out)),
        other => panic!("{other}: {}", stderr(&out)),
    }
}
