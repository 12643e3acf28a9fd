// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of campaign files: what is wrong is named with its line, and shortening is honest.

use super::*;
use crate::context::Context;

const SMALL: &str = r#"name = "small"
[text]
title = "T"
authors = ["A. Author"]
year = 2008
machine = "unknown"
about = "how late"
[[system]]
id = "rt"
name = "an RT kernel"
kind = "preempt-rt"
[[step]]
id = "jitter"
title = "sleep jitter"
told = "100,000 sleeps"
[step.run]
loops = 100000
interval = "1ms"
[[step]]
id = "tasks"
title = "tasks"
told = "1 to 3"
tasks = "1-3"
[step.run]
loops = 50
[step.lab]
load = ["hackbench:groups=1"]
[[figure]]
name = "latest"
step = "jitter"
statistic = "max"
unit = "us"
values = { rt = 20 }
[[claim]]
text = "never later than 20 us"
left = "rt jitter max"
is = "at-most"
right = "20us"
"#;

#[test]
fn a_file_comes_to_one_run_a_step_variant_or_number_of_tasks() {
    let file = CampaignFile::parse(SMALL).unwrap_or_else(|e| panic!("{e}"));
    let parts = file.parts();
    let ids: Vec<&str> = parts.iter().map(|p| p.id.as_str()).collect();
    assert_eq!(ids, ["jitter", "tasks-1", "tasks-2", "tasks-3"]);
    let last = parts.last().unwrap_or_else(|| panic!("no part"));
    assert_eq!(
        (last.run.tasks, last.run.loops, last.run.load.is_none()),
        (Some(3), Some(50), true)
    );
    assert_eq!(last.lab.load.as_deref(), Some(&["hackbench:groups=1".to_owned()][..]));
    let sides = file.claims.first().map(Claim::sides);
    assert!(matches!(sides, Some(Ok(Some((_, Relation::AtMost, Side::Value(v))))) if v == 20e3));
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    let cases = [
        ("loops = 100000", "lops = 100000", "line 17", "lops"),
        (
            "step = \"jitter\"",
            "step = \"jiter\"",
            "line 28",
            "no run is called `jiter`; there are jitter",
        ),
        ("statistic = \"max\"", "statistic = \"worst\"", "line 28", "`worst` is none of n, min"),
        ("unit = \"us\"", "unit = \"%\"", "line 28", "a time"),
        ("values = { rt = 20 }", "values = { st = 20 }", "line 28", "no system is called `st`"),
        ("left = \"rt jitter max\"", "left = \"rt jitter\"", "line 34", "SYSTEM PART STATISTIC"),
        ("right = \"20us\"", "right = \"20uz\"", "line 34", "20uz"),
        ("is = \"at-most\"", "", "line 34", "`cannot`"),
        ("tasks = \"1-3\"", "tasks = \"x\"", "line 19", "tasks"),
        ("id = \"tasks\"", "id = \"jitter\"", "line 19", "twice"),
        ("id = \"tasks\"", "id = \"../x\"", "line 19", "begins with a letter"),
    ];
    for (right, wrong, line, hint) in cases {
        let text = SMALL.replacen(right, wrong, 1);
        assert_ne!(text, SMALL, "{right}");
        let Err(why) = CampaignFile::parse(&text) else { panic!("{wrong} was taken") };
        let why = why.to_string();
        assert!(why.contains(line) && why.contains(hint), "{wrong}: {why}");
    }
}

#[test]
fn shortening_says_what_it_did_and_has_an_end() {
    let words = plan::RunConfig {
        loops: Some(500_000),
        work: Some(vec!["messages:groups=2,loops=4000".into(), "cmd:make -j8".into()]),
        repeat: Some(55),
        ..plan::RunConfig::default()
    };
    let (less, said) = scaled(&words, 0.01);
    assert_eq!((less.loops, less.repeat), (Some(5000), Some(REPEAT_MIN)));
    let benchmarks = ["messages:groups=2,loops=40".to_owned(), "cmd:make -j8".to_owned()];
    assert_eq!(less.work.as_deref(), Some(&benchmarks[..]));
    assert!((said.share - 0.01).abs() < 1e-9);
    assert_eq!((said.changes.len(), said.kept.len()), (3, 1), "{said:?}");
    let (least, _) = scaled(&words, 1e-9);
    assert_eq!(least.loops, Some(LOOPS_MIN));
    let (same, said) = scaled(&words, 1.0);
    assert_eq!((same, said.share), (words, 1.0));
    let long = plan::RunConfig { duration: Some("12h".into()), ..plan::RunConfig::default() };
    assert_eq!(scaled(&long, 0.01).0.duration.as_deref(), Some("432s"));
}

#[test]
fn statistics_have_names() {
    let what = |text: &str| text.parse::<Statistic>().map(|s| s.what);
    assert!(
        matches!(what("p99.999"), Ok(StatisticKind::Quantile(p)) if (p - 0.99999).abs() < 1e-12)
    );
    assert_eq!(what("within:13us"), Ok(StatisticKind::Within(13_000)));
    assert_eq!(what("sys.advantage"), Ok(StatisticKind::Benchmark(Cost::Sys, Of::Advantage)));
    let irq = "irq/max".parse::<Statistic>();
    assert_eq!(irq.map(|s| s.context), Ok(Some(Context::Irq)));
    for wrong in ["", "p0", "p100", "real", "real.max", "within:x", "maximum"] {
        assert!(what(wrong).is_err(), "{wrong}");
    }
}
