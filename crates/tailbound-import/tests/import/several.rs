// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several runs in one text, of tools whose screens are repeated or whose output is a few lines; several tools in one text.
//!
//! Context: COLD. Not here: cyclictest's own (`field`).

use tailbound_core::Run;
use tailbound_import::{Format, Options, import, runs_with};

use crate::{bytes, consistent, has, reports_loss};

const US: i64 = 1000;

fn fixture(name: &str) -> String {
    String::from_utf8_lossy(&bytes(name)).into_owned()
}

fn runs_as(format: Option<Format>, text: &str, options: &Options) -> Vec<Run> {
    let runs =
        runs_with(format, "x", text.as_bytes(), options).unwrap_or_else(|e| panic!("{e}\n{text}"));
    runs.iter().for_each(|r| consistent("x", r));
    runs
}

fn runs(text: &str) -> Vec<Run> {
    runs_as(None, text, &Options::default())
}

fn greatest(runs: &[Run]) -> Vec<i64> {
    let of = |r: &Run| r.threads.iter().filter_map(|t| t.wakeup.max_ns).max().unwrap_or(-1);
    runs.iter().map(of).collect()
}

fn title(run: &Run, id: &str) -> String {
    let titles = run.findings.iter().filter(|f| f.id == id).map(|f| f.title.clone());
    titles.collect::<Vec<_>>().join(" ")
}

#[test]
fn every_tool_that_names_itself_begins_a_run_again() {
    let ms = Options { unit_ns: Some(1_000_000), ..Options::default() };
    for (name, n, other) in [
        ("hwlatdetect_37.txt", 2, ("Max Latency: 48us", "Max Latency: 58us")),
        ("hwlatdetect-old_shortened.txt", 3, ("21us", "22us")),
        ("sysjitter.txt", 2, ("5000", "6000")),
        ("near/hdrhistogram_percentiles.txt", 2, ("75.000", "95.000")),
        ("wakeup_rt-6.5-rt.trace.txt", 2, ("latency: 1689", "latency: 1699")),
        ("rtla_auto-analysis.txt", 2, ("28.13", "29.13")),
        ("xenomai-latency_broken_row.txt", 2, ("374.075", "474.075")),
        ("latmus_oob-gpio.txt", 2, ("49.675", "59.675")),
    ] {
        let one = fixture(name);
        let one = format!("{}\n", one.trim_end());
        let single = runs_as(None, &one, &ms);
        assert_eq!(single.len(), 1, "{name}");
        let next = one.replace(other.0, other.1);
        let all = runs_as(None, &format!("{one}{}", next.repeat(n - 1)), &ms);
        assert_eq!(all.len(), n, "{name}");
        assert!(all[0].threads == single[0].threads, "{name}: the first");
        assert!(all[n - 1].threads == runs_as(None, &next, &ms)[0].threads, "{name}: the last");
        let words = title(&all[1], "source-one-of-several");
        let from = one.lines().count() + 1;
        assert!(words.contains(&format!("run 2, lines {from} to")), "{name}: {words}");
    }
}

#[test]
fn a_screen_drawn_again_is_the_same_run_and_a_count_that_falls_back_is_another() {
    let pairs = fixture("pmqtest-2.80.stdout.txt");
    let later = pairs.replace("Cycles 7", "Cycles 8").replace("Max  749", "Max  760");
    let before = pairs.replace("Cycles 7", "Cycles 6").replace("Max  749", "Max  700");
    let again = pairs.replace("ID62", "ID72");
    for (text, want) in [
        (format!("{pairs}{pairs}"), vec![749]),
        (format!("{pairs}{later}"), vec![760]),
        (format!("{pairs}{before}"), vec![749, 740]),
        (format!("{pairs}{later}{before}{pairs}"), vec![760, 749]),
        (format!("{pairs}{again}"), vec![749, 749]),
        (format!("# ./pmqtest -Sp98 -q\n{pairs}# ./pmqtest -Sp98 -q\n{later}"), vec![749, 760]),
    ] {
        let want: Vec<i64> = want.iter().map(|us| us * US).collect();
        assert_eq!(greatest(&runs(&text)), want, "{text}");
    }
    let t = |thread: u32, tid: u32, cycles: u64, max: u64| {
        format!(
            "T: {thread} ({tid:5}) I:1000 C:{cycles:7} Min:      2 Act:    4 Avg:    5 Max:{max:8}\n"
        )
    };
    let of = |rows: &[String]| greatest(&runs(&rows.concat()));
    assert_eq!(of(&[t(0, 7, 10, 8), t(1, 8, 10, 9), t(0, 7, 20, 8), t(1, 8, 19, 90)]), [90 * US]);
    assert_eq!(of(&[t(0, 7, 100, 8), t(0, 9, 100, 9)]), [8 * US, 9 * US], "another thread");
    assert_eq!(of(&[t(0, 7, 100, 80), t(0, 7, 50, 9)]), [80 * US, 9 * US], "ids of a container");
    // The run begins with its screen: the first row alone could have gone on.
    let all = runs(&[t(0, 7, 10, 8), t(1, 8, 10, 90), t(0, 7, 20, 8), t(1, 8, 9, 30)].concat());
    let counts: Vec<Vec<u64>> =
        all.iter().map(|r| r.threads.iter().map(|t| t.wakeup.n).collect::<Vec<_>>()).collect();
    assert_eq!(counts, [vec![10, 10], vec![20, 9]]);
    let signal = |cycles: u64, max: u64| {
        format!("T: 0 ( 2480) P:80 C:{cycles:7} Min:     22 Act:   30 Avg:   45 Max:{max:8}\n")
    };
    assert_eq!(of(&[signal(10, 30), signal(20, 40)]), [40 * US]);
    assert_eq!(of(&[signal(20, 40), signal(10, 30)]), [40 * US, 30 * US]);
}

#[test]
fn rows_of_seconds_tell_runs_apart_by_their_time_and_their_worst() {
    let head = "RTT|  00:00:01  (periodic user-mode task, 1000 us period, priority 99)\nRTH|----lat min|----lat avg|----lat max|-overrun|---msw|---lat best|--lat worst\n";
    let row = |worst: &str| {
        format!(
            "RTD|      1.443|      2.173|     10.737|       0|     0|      1.400|     {worst}\n"
        )
    };
    let foot = "RTS|      1.400|      2.173|     20.737|       0|     0|    00:00:01/00:00:01\n";
    let (low, high) = (row("20.737"), row("30.737"));
    for (text, want) in [
        (format!("{head}{low}{head}{high}"), vec![20_737, 30_737]),
        (format!("{head}{low}{}{high}", head.replace("00:00:01", "00:00:22")), vec![30_737]),
        (format!("{high}{low}"), vec![30_737, 20_737]),
        (format!("{low}{high}"), vec![30_737]),
        (format!("{low}{foot}{high}"), vec![20_737, 30_737]),
        (format!("{foot}{foot}"), vec![20_737, 20_737]),
        (format!("# latency -p 1000\n{low}^C\n# latency -p 1000\n{high}"), vec![20_737, 30_737]),
    ] {
        assert_eq!(greatest(&runs(&text)), want, "{text}");
    }
    // Its number of lines is the file's.
    let broken = format!("{high}{low}RTD|  1.592|  2.847| 82.516|    with\n");
    assert!(title(&runs(&broken)[1], "source-rows-broken").contains("line 3"));
}

#[test]
fn screens_of_rtla_top() {
    let top = |s: u32, n: u64, max: u64| {
        format!(
            "                    Timer Latency\n  0 00:00:0{s}   |          IRQ Timer Latency (us)        |         Thread Timer Latency (us)\nCPU COUNT      |      cur       min       avg       max |      cur       min       avg       max\n  0 #{n}       |        1         1         2        {max} |        3         2         3        {max}\n  1 #{n}       |        1         1         2        5 |        3         2         3        6\n"
        )
    };
    let analysis = "rtla timerlat hit stop tracing\n## CPU 0 hit stop tracing, analyzing it ##\n  IRQ latency: 1.90 us\n  Thread latency: 35.47 us (100%)\n";
    for (text, want) in [
        (top(1, 1000, 9) + &top(2, 2000, 90), vec![90]),
        (top(5, 5000, 90) + &top(2, 2000, 9), vec![90, 9]),
        (top(5, 5000, 90) + &top(6, 2000, 9), vec![90, 9]),
        (top(5, 5000, 9) + analysis + &top(6, 6000, 90) + analysis, vec![9, 90]),
        (
            format!(
                "$ rtla timerlat top -q -d 5\n{}$ sudo rtla timerlat top -q -d 6\n{}",
                top(5, 5000, 9),
                top(6, 6000, 90)
            ),
            vec![9, 90],
        ),
    ] {
        let want: Vec<i64> = want.iter().map(|us| us * US).collect();
        assert_eq!(greatest(&runs(&text)), want, "{text}");
    }
}

#[test]
fn a_run_without_figures_is_named_and_hides_no_other() {
    let report = fixture("hwlatdetect_37.txt");
    let (head, _) = report.split_once("test finished").unwrap_or_default();
    for text in [format!("{head}{report}"), format!("{report}{head}")] {
        let r = &runs(&text)[..];
        assert_eq!((r.len(), r[0].threads[0].wakeup.n), (1, 37));
        assert!(title(&r[0], "source-one-of-several").contains("has no figures"));
        assert!(!has(&r[0], "source-cut-off"));
    }
    let table = fixture("sysjitter.txt");
    let begun: String = table.lines().take(3).map(|l| format!("{l}\n")).collect();
    for text in [format!("{begun}{table}"), format!("{table}{begun}")] {
        let r = &runs(&text)[..];
        assert_eq!((r.len(), r[0].threads[0].wakeup.n), (1, 12));
        assert!(reports_loss(&r[0], "has no figures"));
    }
    let two = format!("{}{}", report, report.replace("48us", "58us"));
    let refused = import("x", two.as_bytes()).map(|r| r.header.id).expect_err("two").to_string();
    assert!(refused.contains("holds 2 runs") && refused.contains("--run N"), "{refused}");
}
