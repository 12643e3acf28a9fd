// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several runs in one text, of tools whose screens are repeated or whose output is a few lines; several tools in one text.
//!
//! Not here: cyclictest's own (`field`).

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

/// Figures of every text format, each with the format that it is known by.
const TOOLS: [(&str, Format); 17] = [
    ("cyclictest-2.4_h400.stdout.txt", Format::CyclictestHistogram),
    ("cyclictest-2.4_break.stdout.txt", Format::CyclictestStatus),
    ("oslat-2.4.stdout.txt", Format::OslatText),
    ("pmqtest-2.80.stdout.txt", Format::RtTestsText),
    ("cyclicdeadline-2.80_verbose.txt", Format::CyclicdeadlineText),
    ("hwlatdetect_37.txt", Format::Hwlatdetect),
    ("rtla-6.1_timerlat_top.stdout.txt", Format::RtlaTop),
    ("rtla-6.1_timerlat_hist.stdout.txt", Format::RtlaTimerlat),
    ("rtla-6.1_osnoise_hist.stdout.txt", Format::RtlaOsnoise),
    ("wakeup_rt-6.5-rt.trace.txt", Format::LatencyTrace),
    ("xenomai-latency_broken_row.txt", Format::XenomaiText),
    ("xenomai-mercury-latency.gnuplot", Format::XenomaiGnuplot),
    ("rtai-5.3.4-latency.stdout.txt", Format::RtaiText),
    ("latmus-evl-5.10.gnuplot", Format::Latmus),
    ("latmus_oob-gpio.txt", Format::LatmusText),
    ("sysjitter.txt", Format::Sysjitter),
    ("stressng-cyclic.stdout.txt", Format::StressNg),
];

#[test]
fn of_two_tools_in_one_text_each_is_read_as_if_alone() {
    let us = Options { unit_ns: Some(1000), ..Options::default() };
    let whole = |name: &str| format!("{}\n", fixture(name).trim_end());
    for (a, of_a) in TOOLS {
        for (b, of_b) in TOOLS {
            let words = |f: Format| f.name().split('-').next().unwrap_or_default().to_owned();
            if words(of_a) == words(of_b) && (words(of_a) != "rtla" || of_a == of_b) {
                continue;
            }
            let text = format!("{}{}", whole(a), whole(b));
            for (name, format) in [(a, of_a), (b, of_b)] {
                let alone = runs_with(Some(format), "x", whole(name).as_bytes(), &us);
                let alone = alone.unwrap_or_else(|e| panic!("{name}: {e}"));
                let both = runs_with(Some(format), "x", text.as_bytes(), &us);
                let both = both.unwrap_or_else(|e| panic!("{a} {b}: {e}"));
                assert_eq!(both.len(), alone.len(), "{a} {b} as {format}");
                for (x, y) in both.iter().zip(&alone) {
                    assert!(x.threads == y.threads, "{a} {b} as {format}");
                    assert_eq!(x.header.plan, y.header.plan, "{a} {b} as {format}");
                    assert_eq!(x.measured_ns(), y.measured_ns(), "{a} {b} as {format}");
                    let said = title(x, "source-other-tools");
                    let other = if format == of_a { of_b } else { of_a };
                    assert!(said.contains(&format!("`--format {other}`")), "{a} {b}: {said}");
                }
            }
            // Without a choice one of them is read, and it is said which.
            let found = runs_with(None, "x", text.as_bytes(), &us);
            let found = found.unwrap_or_else(|e| panic!("{a} {b}: {e}"));
            assert!(!title(&found[0], "source-other-tools").is_empty(), "{a} {b}");
        }
    }
}

#[test]
fn which_tools_are_in_which_lines_is_said() {
    let status =
        "T: 0 (    7) P:80 I:1000 C:  60000 Min:      3 Act:    4 Avg:    5 Max:      98\n";
    let hackbench = "Running in process mode with 10 groups using 40 file descriptors each (== 400 tasks)\nTime: 12.330\n";
    let report = fixture("hwlatdetect_37.txt");
    let text = format!(
        "# cyclictest -q -p 80\n{status}\n{hackbench}\n# hwlatdetect --duration=900\n{report}"
    );
    let r = &runs(&text)[0];
    let said = title(r, "source-other-tools");
    assert!(
        said.contains("cyclictest (lines 1 to 5), hwlatdetect (lines 7 to 60). Only that of cyclictest was read; to read another: `--format hwlatdetect`."),
        "{said}"
    );
    assert_eq!(r.threads[0].wakeup.max_ns, Some(98 * US));
    let other = &runs_as(Some(Format::Hwlatdetect), &text, &Options::default())[0];
    assert_eq!((other.threads[0].wakeup.n, other.measured_ns() / 1_000_000_000), (37, 900));
    // The command in front of the second tool's figures is of them: it tells the unit.
    let nano = "T: 0 (    7) P:80 I:1000 C:  60000 Min: 2310 Act: 2400 Avg: 3500 Max: 9800\n";
    let text = format!("{report}\n$ cyclictest -N -q -p 80\n{nano}");
    let r = &runs_as(Some(Format::CyclictestStatus), &text, &Options::default())[0];
    assert_eq!(r.threads[0].wakeup.max_ns, Some(9800));
    // A load, and words about another tool, are no other output.
    for text in [
        format!("{status}{hackbench}"),
        format!("{report}\nBefore that I ran cyclictest -q -p 80 and it was fine.\n"),
        format!("Before that I ran $ oslat -q\n{report}"),
    ] {
        let r = &runs(&text)[0];
        assert!(!has(r, "source-other-tools"), "{:?}", r.findings);
    }
    // Lines of stress-ng between those of a histogram take nothing from it.
    let histogram = fixture("cyclictest-2.4_h400.stdout.txt");
    let lines: Vec<&str> = histogram.lines().collect();
    let ng = "stress-ng: info:  [12] cyclic: sched SCHED_DEADLINE: 100000 ns delay, 10000 samples";
    let (front, back) = lines.split_at(lines.len() / 2);
    let mixed = format!("{}\n{ng}\n{}\n", front.join("\n"), back.join("\n"));
    let (mixed, alone) = (&runs(&mixed)[0], &runs(&histogram)[0]);
    assert!(mixed.threads == alone.threads && has(mixed, "source-other-tools"));
}

#[test]
fn documents_of_several_tools_are_each_read_as_their_own() {
    let (cyclictest, oslat) = (fixture("cyclictest_stall.json"), fixture("oslat-2.4.json"));
    let pairs = fixture("pmqtest-2.4.json");
    let text = format!("{cyclictest}{oslat}{pairs}");
    let all = runs(&text);
    let tools: Vec<&str> = all.iter().map(|r| r.header.tool.as_str()).collect();
    assert_eq!(tools, ["cyclictest 2.40", "oslat 2.40", "pmqtest 2.40"]);
    assert!(all[0].threads == runs(&cyclictest)[0].threads);
    assert!(all[1].threads == runs(&oslat)[0].threads);
    let chosen = runs_as(Some(Format::OslatJson), &text, &Options::default());
    assert!(chosen.len() == 1 && chosen[0].threads == all[1].threads);
}
