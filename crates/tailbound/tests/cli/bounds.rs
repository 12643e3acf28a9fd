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
