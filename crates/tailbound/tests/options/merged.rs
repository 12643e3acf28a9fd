// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flags laid over a file: the run is that of the flags alone, with each word of the file that no flag replaces.

use proptest::prelude::*;

use super::{Bench, line_of_file};

/// Two values of each key that a file and a flag may both have.
const VALUES: [(&str, [&str; 2]); 21] = [
    ("deadline", ["100us", "2h"]),
    ("early", ["1us", "1h"]),
    ("class", ["best-effort", "95"]),
    ("confidence", ["0.5", "0.999"]),
    ("interval", ["10us", "2ms"]),
    ("duration", ["3s", "365d"]),
    ("loops", ["1", "9007199254740993"]),
    ("warm-up", ["0s", "2m"]),
    ("cpus", ["0", "1-3"]),
    ("clock", ["tai", "realtime"]),
    ("sleep", ["poll", "timerfd"]),
    ("interval-spread", ["1%:2", "90%:18446744073709551615"]),
    ("timer-slack", ["1ns", "1h"]),
    ("cpu-dma-latency", ["0", "2147483647us"]),
    ("load", ["none", "clock"]),
    ("load-cmd", ["true", "make, x"]),
    ("work", ["arithmetic", "cmd:a,b"]),
    ("repeat", ["1", "10000"]),
    ("tasks", ["1", "256"]),
    ("title", ["t", "u"]),
    ("operator", ["o", "p"]),
];

/// Which of the values a key has: in the file, and as a flag.
type Choice = (Option<usize>, Option<usize>);

fn choices() -> impl Strategy<Value = Vec<Choice>> {
    let one = || proptest::option::weighted(0.3, 0usize..2);
    proptest::collection::vec((one(), one()), VALUES.len())
}

/// `key=value` of those that are given, from one side.
fn given(choices: &[Choice], side: impl Fn(&str, &Choice) -> Option<usize>) -> Vec<String> {
    let all = VALUES.iter().zip(choices);
    all.filter_map(|((key, values), choice)| {
        let value = values.get(side(key, choice)?)?;
        Some(format!("{key}={value}"))
    })
    .collect()
}

fn as_flags(words: &[String]) -> Vec<String> {
    words
        .iter()
        .map(|w| format!("--{w}"))
        .chain(["--policy=other", "--yes"].map(str::to_owned))
        .collect()
}

/// The position of a key.
fn choice(choices: &[Choice], key: &str) -> Choice {
    let at = VALUES.iter().position(|v| v.0 == key);
    at.and_then(|at| choices.get(at)).copied().unwrap_or_default()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_flag_replaces_its_key_and_nothing_else(choices in choices()) {
        let bench = Bench::new();
        let length = ["duration", "loops"].iter().any(|k| choice(&choices, k).1.is_some());
        let no_load = choice(&choices, "load").1 == Some(0);
        // Two words say how long, and two which load: a flag of the one replaces the other in the file.
        let replaced = |key: &str| match key {
            "duration" | "loops" => length,
            "load-cmd" => no_load,
            _ => false,
        };
        let file = given(&choices, |_, c| c.0);
        let flags = given(&choices, |_, c| c.1);
        let alone = given(&choices, |key, c| c.1.or(c.0.filter(|_| !replaced(key))));
        let file: String = file.iter().map(|w| line_of_file(w)).collect();
        let mut laid = as_flags(&flags);
        laid.push(bench.config(&file));
        prop_assert_eq!(bench.header(&laid), bench.header(&as_flags(&alone)));
    }
}

#[test]
fn what_a_file_alone_can_say_stays() {
    let bench = Bench::new();
    let file = "name = \"n\"\nraw = false\nload = []\npolicy = \"other\"\n";
    let header = bench.header(&[bench.config(file), "--raw".to_owned()]).expect("a header");
    assert_eq!(header["plan"]["name"], "n");
    assert_eq!(header["plan"]["raw"], true);
    assert_eq!(header["plan"]["loads"], serde_json::json!([]));
    let wrong = bench.header_of_file("loops = -1\n").expect_err("negative");
    assert!(wrong.contains("loops") && bench.path().exists(), "{wrong}");
}
