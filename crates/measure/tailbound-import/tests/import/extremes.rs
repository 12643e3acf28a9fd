// SPDX-License-Identifier: MIT OR Apache-2.0
//! Variants of outputs that hold extremes alone: other versions, other options, more threads, cut files, several reports in one.
//!
//! Written after the tools' sources. Not here: files as they were posted (`posted`).

use tailbound_core::{Context, Policy, Run};
use tailbound_import::{Format, Options, import, import_with};

use crate::{bytes, consistent, has, reports_loss};

const US: i64 = 1000;

/// A text that must be known by its content as `format`.
fn read(format: Format, text: &str) -> Run {
    read_with(format, text, &Options::default())
}

fn read_with(format: Format, text: &str, options: &Options) -> Run {
    assert_eq!(Format::detect(text.as_bytes()), Ok(format), "{text}");
    let run = import_with(None, "x", text.as_bytes(), options).unwrap_or_else(|e| panic!("{e}"));
    consistent("x", &run);
    run
}

fn refused(text: &str) -> String {
    match import("x", text.as_bytes()) {
        Ok(_) => panic!("it was read: {text}"),
        Err(e) => e.to_string(),
    }
}

fn fixture(name: &str) -> String {
    String::from_utf8_lossy(&bytes(name)).into_owned()
}

fn title(run: &Run, id: &str) -> String {
    let titles = run.findings.iter().filter(|f| f.id == id).map(|f| f.title.clone());
    titles.collect::<Vec<_>>().join(" ")
}

const HWLAT: &str = "hwlatdetect:  test duration 60 seconds\n   detector: tracer\n   parameters:\n        CPU list:          0-3\n        Latency threshold: 10us\n        Sample window:     1000000us\n        Sample width:      1000000us\n     Non-sampling period:  0us\n        Output File:       None\n\nStarting test\n";

#[test]
fn hwlatdetect_that_found_nothing_is_a_good_result() {
    for result in ["Max Latency: Below threshold\n", "Max Latency: 0us\n"] {
        let text = format!(
            "{HWLAT}test finished\n{result}Samples recorded: 0\nSamples exceeding threshold: 0\n"
        );
        let r = read(Format::Hwlatdetect, &text);
        assert!(title(&r, "source-nothing-found").contains("no interruption above 10.0 µs"));
        assert!(r.findings.iter().all(|f| !f.impact.forbids_met()), "{:?}", r.findings);
        assert_eq!((r.measured_ns(), r.threads[0].wakeup.n), (60_000_000_000, 0));
    }
    // Cut before its result, nothing is known.
    assert!(refused(HWLAT).contains("ends before its result"));
}

#[test]
fn hwlatdetect_of_other_versions() {
    let samples = "ts: 1646837340.346151918, inner:5, outer:19, cpu:3, count:2\nts: 1646837341.1, inner:30, outer:1, cpu:0, count:1\n";
    let foot = "test finished\nMax Latency: 30us\nSamples recorded: 2\nSamples exceeding threshold: 2\n7 SMIs occured on cpu 2\nSMIs during run: 7\n";
    // Samples at the end, or before it with --watch.
    for text in [format!("{HWLAT}{foot}{samples}"), format!("{HWLAT}{samples}{foot}")] {
        let r = read(Format::Hwlatdetect, &text);
        let d = &r.threads[0].wakeup;
        assert_eq!((d.n, d.min_ns, d.max_ns, d.unbinned), (2, Some(19 * US), Some(30 * US), 0));
        assert!(title(&r, "source-smi").contains('7') && !has(&r, "source-blind-time"));
    }
    let r = read(Format::Hwlatdetect, &format!("{HWLAT}interrupted\n{foot}{samples}"));
    assert!(reports_loss(&r, "interrupted"));
    // The list contradicts the summary: the greater is not lost.
    let r = read(Format::Hwlatdetect, &format!("{HWLAT}{}{samples}", foot.replace("30us", "90us")));
    assert_eq!(r.threads[0].wakeup.max_ns, Some(90 * US));
    assert!(has(&r, "source-inconsistent"));
    let r = read(Format::Hwlatdetect, &format!("{HWLAT}{samples}"));
    assert!(has(&r, "source-cut-off") && r.threads[0].wakeup.n == 2);
}

#[test]
fn cyclicdeadline_in_ns_live_and_cut() {
    let ns = "T: 0 ( 4711) I:1000 C:   9999 Min:   2310 Act:    4120 Avg:    5120 Max:   81233\n";
    let r = read(Format::CyclicdeadlineText, ns);
    assert_eq!(r.threads[0].wakeup.max_ns, Some(81_233), "a wide `Act:` means ns");
    // The last line of each thread counts.
    let live = "\x1b[2;37;40mT: 0 ( 1) I:1000 C:     10 Min:      2 Act:    4 Avg:    5 Max:       8\n\x1b[1AT: 0 ( 1) I:1000 C:     20 Min:      1 Act:    4 Avg:    5 Max:      90\n";
    let r = read(Format::CyclicdeadlineText, live);
    assert_eq!((r.threads[0].wakeup.n, r.threads[0].wakeup.max_ns), (20, Some(90 * US)));
    let torn = live.trim_end();
    assert!(
        has(&read(Format::CyclicdeadlineText, torn), "source-cut-off"),
        "a digit may be missing"
    );
    let narrow = "T: 0 (1) I:1000 C: 9 Min: 2 Act: 4 Avg: 5 Max: 8\n";
    assert!(refused(narrow).contains("--unit"), "copied with its spaces lost");
    let us = Options { unit_ns: Some(1000), ..Options::default() };
    assert_eq!(
        read_with(Format::CyclicdeadlineText, narrow, &us).threads[0].wakeup.max_ns,
        Some(8 * US)
    );
    // Later than its period: what fell due meanwhile is not counted.
    let late = "T: 0 ( 1) I:1000 C:     10 Min:      2 Act:    4 Avg:    5 Max:    1800\n";
    assert!(has(&read(Format::CyclicdeadlineText, late), "source-no-missed"));
    // With -h the histogram follows: it holds more.
    let text = "T: 0 ( 1) I:1000 C:      3 Min:      2 Act:    4 Avg:    3 Max:       4\n# Histogram\n000002 000002\n000004 000001\n# Total: 000000003\n# Min Latencies: 00002\n# Avg Latencies: 00002\n# Max Latencies: 00004\n# Histogram Overflows: 00000\n";
    let r = read(Format::CyclicdeadlineText, text);
    assert_eq!((r.header.tool.as_str(), r.threads[0].wakeup.unbinned), ("cyclicdeadline", 0));
    assert_eq!(r.header.plan.interval_ns, 1_000_000);
    assert!(matches!(r.header.plan.policy, Policy::Deadline { .. }));
    assert!(!has(&r, "source-torn") && !has(&r, "source-no-missed"), "{:?}", r.findings);
    assert!(reports_loss(&r, "cyclicdeadline does not count missed periods"));
    let json = r#"{"file_version": 1, "cmdline:": "cyclicdeadline -N -i 1000", "rt_test_version:": "2.10",
        "num_threads": 1, "resolution_in_ns": 1, "thread": {"0": {"cycles": 10, "min": 2310, "max": 81233, "avg": 5120.5}}}"#;
    let r = read(Format::CyclicdeadlineJson, json);
    assert_eq!((r.threads[0].wakeup.max_ns, r.threads[0].wakeup.unbinned), (Some(81_233), 10));
}

#[test]
fn other_pairs_of_rt_tests() {
    let text = "$ svsematest -S -p 98 -i 1000 -D 10\n#0: ID771, P98, CPU0, I1000; #1: ID772, P98, CPU0, Cycles 9996\n#2: ID773, P98, CPU-1, I1500; #3: ID774, P98, CPU-1, Cycles 6664\n#1 -> #0, Min    2, Cur    4, Avg    3, Max   41\n#3 -> #2, Min    1, Cur    4, Avg    2, Max   17\n";
    let r = read(Format::RtTestsText, text);
    assert_eq!((r.header.tool.as_str(), r.measured_ns()), ("svsematest", 10_000_000_000));
    assert_eq!(r.threads.iter().map(|t| t.cpu).collect::<Vec<_>>(), [Some(0), None]);
    // Without the command three programs print the same.
    let (_, bare) = text.split_once('\n').unwrap_or_default();
    assert_eq!(
        read(Format::RtTestsText, bare).header.tool,
        "ptsematest, svsematest or sigwaittest"
    );
    // A live screen: the last block counts; a pair that is not ready has no figures.
    let live = format!(
        "{}{bare}",
        bare.replace("Max   41", "Max   40").replace(
            "#3 -> #2, Min    1, Cur    4, Avg    2, Max   17",
            "#3 -> #2 (not yet ready)"
        )
    );
    assert_eq!(read(Format::RtTestsText, &live).threads[0].wakeup.max_ns, Some(41 * US));
    let cut: String = bare.lines().take(3).map(|l| format!("{l}\n")).collect();
    let r = read(Format::RtTestsText, &cut);
    assert!(has(&r, "source-no-samples") && r.threads.len() == 1);
    let signal = "0.00 0.01 0.05 1/128 2479\n\nT: 0 ( 2480) P:80 C:   2000 Min:     22 Act:   30 Avg:   45 Max:   10309\n";
    let r = read(Format::RtTestsText, signal);
    assert_eq!(
        (r.header.tool.as_str(), r.threads[0].wakeup.max_ns),
        ("signaltest", Some(10_309 * US))
    );
}

#[test]
fn rows_of_old_xenomai_and_of_a_quiet_run() {
    let old = "== Sampling period: 100 us\n== Test mode: in-kernel timer handler\n== All results in microseconds\nwarming up...\nRTT|  00:00:01  (in-kernel timer handler, 100 us period, priority 99)\nRTH|-----lat min|-----lat avg|-----lat max|-overrun|----lat best|---lat worst\nRTD|      -1.513|      -0.721|      12.211|       0|      -1.513|      12.211\nRTD|      -1.501|      -0.700|       9.211|       1|      -1.513|      12.211\n---|------------|------------|------------|--------|-------------------------\nRTS|      -1.513|      -0.710|      12.211|       1|    00:00:02/00:00:02\n";
    let r = read(Format::XenomaiText, old);
    let d = &r.threads[0].wakeup;
    assert_eq!((d.n, d.min_ns, d.max_ns), (20_000, Some(-1513), Some(12_211)));
    assert_eq!(r.threads[0].context, Context::Irq);
    assert!(title(&r, "source-no-missed").contains("1 missed"));
    let quiet = "== Sampling period: 1000 us\n== Test mode: periodic user-mode task\n== All results in microseconds\nwarming up...\n---|-----------|-----------|-----------|--------|------|-------------------------\nRTS|      0.917|      1.955|     14.075|       0|     0|    01:00:00/01:00:00\n";
    let r = read(Format::XenomaiText, quiet);
    assert_eq!((r.threads[0].wakeup.n, r.measured_ns()), (3_600_000, 3_600_000_000_000));
    assert!(r.end.is_some());
    assert!(refused(&format!("{quiet}{quiet}")).contains("holds 2 runs"));
    // Without its head neither the period nor the number of samples is known.
    let rows = "RTD|      1.443|      2.173|     10.737|       0|     0|      1.400|     20.737\n";
    let d = &read(Format::XenomaiText, rows).threads[0].wakeup;
    assert_eq!(
        (d.n, d.min_ns, d.max_ns),
        (2, Some(1400), Some(20_737)),
        "best and worst since the beginning"
    );
    // A row without its last digit is not read.
    let r =
        read(Format::XenomaiText, &format!("{rows}{}", rows.trim_end().replace("20.737", "20.7")));
    assert_eq!(r.threads[0].wakeup.max_ns, Some(20_737));
}

#[test]
fn latmus_of_other_contexts() {
    let user = "warming up on CPU1...\nRTT|  00:00:01  (user, 100 us period, priority 98, CPU1)\nRTH|----lat min|----lat avg|----lat max|-overrun|---msw|---lat best|--lat worst\nRTD|      0.211|      0.400|      5.021|       3|     0|      0.211|      5.021\n---|-----------|-----------|-----------|--------|------|-------------------------\nRTS|      0.211|      0.400|      5.021|       3|     0|    00:00:01/00:00:01\n";
    let r = read(Format::LatmusText, user);
    assert_eq!((r.threads[0].cpu, r.threads[0].wakeup.n), (Some(1), 10_000));
    assert!(
        !has(&r, "source-other-quantity") && title(&r, "source-no-missed").contains("3 missed")
    );
    assert!(!reports_loss(&r, "not isolated"));
    let irq = user
        .replace("(user, 100 us period, priority 98, CPU1)", "(irq, 100 us period, CPU1-noisol)");
    let r = read(Format::LatmusText, &irq);
    assert_eq!((r.threads[0].context, r.header.plan.policy), (Context::Irq, Policy::Other));
    let kernel = user.replace("(user,", "(kernel,");
    assert_eq!(read(Format::LatmusText, &kernel).threads[0].context, Context::Thread);
}

#[test]
fn sysjitter_of_many_cores_and_of_none_disturbed() {
    let quiet = "core_i: 1 2\nthreshold(ns): 300 300\ncpu_mhz: 2600 2600\nruntime(ns): 70000000000 70000000000\nruntime(s): 70.000 70.000\nint_n: 20000 0\nint_n_per_sec: 285.714 0.000\nint_min(ns): 310 0\nint_median(ns): 900 0\nint_mean(ns): 1000 0\nint_90(ns): 2000 0\nint_99(ns): 4000 0\nint_999(ns): 8000 0\nint_9999(ns): 9000 0\nint_99999(ns): 9100 0\nint_max(ns): 9100 0\nint_total(ns): 20000000 0\nint_total(%): 0.029 0.000\n";
    let r = read(Format::Sysjitter, quiet);
    assert_eq!(r.threads.iter().map(|t| t.wakeup.n).collect::<Vec<_>>(), [20_000, 0]);
    assert!(title(&r, "source-nothing-found").contains("on CPU 2"));
    assert_eq!(
        r.threads[0].wakeup.quantiles.at(0.99),
        tailbound_core::stated::Stated::Exactly(4000)
    );
    assert_eq!(r.threads[0].wakeup.beyond(4500).0 + r.threads[0].wakeup.beyond(4500).1, 201);
    let cut = quiet.split("int_max").next().unwrap_or_default();
    assert!(refused(cut).contains("cut off before the greatest"));
    let bad = refused(&quiet.replace("int_max(ns): 9100 0", "int_max(ns): 9100"));
    assert!(bad.contains("line 16") && bad.contains("1 values for 2 cores"), "{bad}");
}

#[test]
fn percentiles_of_many_values_bound_what_lies_between() {
    let ms = Options { unit_ns: Some(1_000_000), ..Options::default() };
    let text = "  Thread Stats   Avg      Stdev\n  Detailed Percentile spectrum:\n       Value   Percentile   TotalCount 1/(1-Percentile)\n\n       0.101     0.000000            3         1.00\n       0.500     0.500000        50010         2.00\n       1.000     0.987500        98760        80.00\n       1.010     0.990625        99070       106.67\n       9.000     1.000000       100000          inf\n#[Mean    =        0.600, StdDeviation   =        0.100]\n#[Max     =        9.000, Total count    =       100000]\n#[Buckets =           27, SubBuckets     =         2048]\n";
    let r = read_with(Format::HdrHistogram, text, &ms);
    let d = &r.threads[0].wakeup;
    assert_eq!((d.n, d.unbinned, d.max_ns), (100_000, 100_000, Some(9_000_000)));
    assert_eq!(d.beyond(1_020_000), (1, 938 - 1), "of 938 at most one is certain");
    let csv = "\"Value\",\"Percentile\",\"TotalCount\",\"1/(1-Percentile)\"\n1.0,0.0,1,1.00\n2.0,0.5,2,2.00\n2.0,1.0,2,Infinity\n";
    let r = read_with(Format::HdrHistogram, csv, &ms);
    assert_eq!((r.threads[0].wakeup.n, r.threads[0].wakeup.unbinned), (2, 0));
    let back = text.replace("98760", "9876");
    let e = import_with(None, "x", back.as_bytes(), &ms).unwrap_err().to_string();
    assert!(e.contains("line 7") && e.contains("does not follow"), "{e}");
}

#[test]
fn stress_ng_twice_in_one_file_and_without_samples() {
    let one = fixture("stressng-cyclic_deadline.txt");
    assert!(refused(&format!("{one}{one}")).contains("holds 2 runs"));
    let short = one.replace("300.01s", "1.30s").replace("5 mins, 0.01 secs", "1.30 secs");
    assert!(!has(&read(Format::StressNg, &short), "source-samples-lost"), "all of it was kept");
    let none =
        "stress-ng: info:  [8828] cyclic: SCHED_DEADLINE: no latency information available\n";
    assert!(refused(none).contains("took no sample"));
    let falling = one.replace("1798633 ns", "17986 ns");
    assert!(has(&read(Format::StressNg, &falling), "source-inconsistent"));
}

const ANALYSIS: &str = "rtla timerlat hit stop tracing\n## CPU 3 hit stop tracing, analyzing it ##\n  Previous IRQ interference:\t\t\tup to      2.22 us\n  IRQ handler delay:\t\t(exit from idle)\t     1.30 us (0.11 %)\n  IRQ latency:\t\t\t\t\t\t     1.90 us\n  Timerlat IRQ duration:\t\t\t\t     3.00 us (0.24 %)\n  Blocking thread:\t\t\t\t\t  1223.16 us (99.00 %)\n\t                  insync:4048     \t\t  1223.16 us\n    Blocking thread stack trace\n\t\t-> timerlat_irq\n\t\t-> delay_tsc\n  IRQ interference\t\t\t\t\t     4.93 us (0.40 %)\n\t             local_timer:236 \t\t\t     4.93 us\n------------------------------------------------------------------------\n  Thread latency:\t\t\t\t\t  1235.47 us (100%)\n\nMax timerlat IRQ latency from idle: 17.48 us in cpu 4\n  Saving trace to timerlat_trace.txt\n";

#[test]
fn rtlas_analysis_of_other_versions_and_beside_figures() {
    let r = read(Format::RtlaAnalysis, ANALYSIS);
    assert_eq!(
        r.threads.iter().map(|t| t.wakeup.max_ns).collect::<Vec<_>>(),
        [Some(1900), Some(1_235_470)]
    );
    assert!(r.end.is_some(), "its last line is there");
    let cause = title(&r, "source-cause");
    assert!(
        cause.contains("insync:4048")
            && cause.contains("local_timer:236")
            && !cause.contains("17.48"),
        "{cause}"
    );
    assert!(title(&r, "source-stack").contains("timerlat_irq < delay_tsc"));
    // Copied from a terminal, tabs became single spaces.
    let spaces = ANALYSIS.replace('\t', " ");
    assert_eq!(read(Format::RtlaAnalysis, &spaces).threads[1].wakeup.max_ns, Some(1_235_470));
    // The interrupt itself was late: the thread never came to run.
    let irq = "## CPU 7 hit stop tracing, analyzing it ##\n  IRQ handler delay: 55.01 us (99.8 %)\n  IRQ latency: 55.12 us\n  Blocking thread:\n        stress-ng-cpu:1234\n    Blocking thread stack trace\n -> asm_sysvec\n------------------------------------------------------------------------\n     IRQ latency: 55.12 us (100%)\n";
    let r = read(Format::RtlaAnalysis, irq);
    assert_eq!((r.threads.len(), r.threads[0].context), (1, Context::Irq));
    assert!(title(&r, "source-cause").contains("stress-ng-cpu:1234"));
    // Old versions print 0.00 % for each share: nothing is computed from it.
    let old = "## CPU 12 hit stop tracing, analyzing it ##\n IRQ handler delay: 18.06 us (0.00 %)\n IRQ latency: 18.52 us\n Timerlat IRQ duration: 4.41 us (0.00 %)\n Blocking thread: 216.93 us (0.03 %)\n";
    let r = read(Format::RtlaAnalysis, old);
    assert!(r.threads.len() == 1 && reports_loss(&r, "How late the thread on CPU 12 was"));
    // Behind the screen of `top`, which has figures of its own.
    let top = fixture("rtla-6.1_timerlat_top.stdout.txt");
    let r = read(Format::RtlaTop, &format!("{top}\n{ANALYSIS}"));
    assert!(title(&r, "source-cause").contains("insync:4048") && r.threads[0].wakeup.n > 1);
    // After a histogram it says why the run stopped; two CPUs may have hit the threshold.
    let hist = fixture("handmade_rtla-7.2_timerlat_stopped.stdout.txt");
    let both = format!("{hist}{ANALYSIS}{}", ANALYSIS.replace("CPU 3", "CPU 5"));
    let r = read(Format::RtlaTimerlat, &both);
    let cause = title(&r, "source-cause");
    assert!(
        cause.starts_with("CPU 3") && cause.ends_with("And more."),
        "the latest first: {cause}"
    );
    let all: Vec<_> = r.events.iter().filter(|e| e.text.contains("insync:4048")).collect();
    assert_eq!(all.len(), 2, "every one is an event");
}

#[test]
fn rtlas_top_screen_is_its_last_rows() {
    let r = read(Format::RtlaTop, &fixture("rtla-6.1_timerlat_top.stdout.txt"));
    let irq = &r.threads[0];
    assert_eq!((irq.cpu, irq.context, irq.wakeup.unbinned), (Some(0), Context::Irq, irq.wakeup.n));
    assert_eq!(r.threads.len(), 4);
    let user = "  0 00:00:09   |          IRQ Timer Latency (ns)        |         Thread Timer Latency (ns)       |    Ret user Timer Latency (ns)\nCPU COUNT      |      cur       min       avg       max |      cur       min       avg       max |      cur       min       avg       max\n  0 #9000      |      110        90       100       900 |      210       190       200      2900 |        -         -         -         -\n  0 #9500      |      110        90       100       950 |      210       190       200      2950 |      310       290       300      3950\n---------------|----------------------------------------|----------------------------------------|-----\nALL #9500  e0  |                 90       100       950 |                190       200      2950 |                290       300      3950\n";
    let r = read(Format::RtlaTop, user);
    assert_eq!(
        r.threads.iter().map(|t| t.wakeup.max_ns).collect::<Vec<_>>(),
        [Some(950), Some(2950), Some(3950)]
    );
    assert_eq!((r.threads[2].wakeup.n, r.measured_ns()), (9500, 9_000_000_000));
}

#[test]
fn rtla_without_columns() {
    let empty = fixture("rtla_osnoise_hist_empty.txt");
    let e = refused(&empty.replace("osnoise", "timerlat"));
    assert!(e.contains("timerlat took no sample"), "{e}");
    let cut = empty.split("count:").next().unwrap_or_default();
    assert!(refused(cut).contains("cut off"), "before its last line nothing is known");
}

const OFF: &str = "# tracer: preemptirqsoff\n#\n# preemptirqsoff latency trace v1.1.5 on 6.10.0-rc3\n# --------------------------------------------------------------------\n# latency: 10382682 us, #4/4, CPU#128 | (M:desktop VP:0, KP:0, SP:0 HP:0 #P:512)\n#    -----------------\n#    | task: fio-2701523 (uid:0 nice:0 policy:0 rt_prio:0)\n#    -----------------\n#  => started at: deactivate_file_folio\n#  => ended at:   deactivate_file_folio\n#\n#  cmd     pid     |||||| time  |   caller\n#     \\   /        ||||||  \\    |    /\n     fio-2701523 128...1.    0us$: deactivate_file_folio <-deactivate_file_folio\n     fio-2701523 128.N.1. 10382683us : tracer_preempt_on <-deactivate_file_folio\n     fio-2701523 128.N.1. 10382691us : <stack trace>\n => deactivate_file_folio\n => mapping_try_invalidate\n => __x64_sys_ioctl\n => x64_sys_call\n => do_syscall_64\n";

#[test]
fn other_latency_tracers() {
    let r = read(Format::LatencyTrace, OFF);
    assert_eq!((r.threads[0].cpu, r.threads[0].wakeup.max_ns), (Some(128), Some(10_382_682 * US)));
    let cause = title(&r, "source-cause");
    assert!(cause.contains("fio-2701523 kept interrupts or preemption off, from deactivate_file_folio to deactivate_file_folio, in ioctl (deactivate_file_folio)"), "{cause}");
    let irqs = OFF.replace("preemptirqsoff", "irqsoff");
    assert!(
        title(&read(Format::LatencyTrace, &irqs), "source-cause").contains("kept interrupts off")
    );
    // Kernels of 2006 write no `#`; there may be no rows at all.
    let old = "preemption latency trace v1.1.5 on 2.6.16-rc1\n--------------------------------------------------------------------\n latency: 4183 us, #3676/3676, CPU#0 | (M:rt VP:0, KP:0, SP:0 HP:0)\n    -----------------\n    | task: evolution-2877 (uid:1000 nice:0 policy:0 rt_prio:0)\n    -----------------\n";
    let r = read(Format::LatencyTrace, old);
    assert!(
        title(&r, "source-cause").contains("4,183 µs on CPU 0: evolution-2877 kept preemption off")
    );
    let wakeup = fixture("wakeup_rt-6.5-rt.trace.txt");
    assert!(refused(&format!("{wakeup}{wakeup}")).contains("holds 2 runs"));
    let none = OFF
        .lines()
        .take(5)
        .map(|l| format!("{}\n", l.replace("10382682", "0")))
        .collect::<String>();
    assert!(refused(&none).contains("recorded nothing yet"));
}

#[test]
fn the_greatest_value_is_enough_for_a_deadline() {
    let line = "T: 0 ( 4711) P:80 I:1000 C:  60000 Min:      3 Act:    4 Avg:    5 Max:      98\n";
    let doubts = |r: &Run| r.findings.iter().filter(|f| f.impact.forbids_met()).count();
    let r = read(Format::CyclictestStatus, line);
    assert_eq!((doubts(&r), r.threads[0].wakeup.n), (0, 60_000), "{:?}", r.findings);
    let told = r.findings.iter().find(|f| f.id == "source-no-histogram");
    assert!(told.is_some_and(|f| f.meaning.contains("judged by the greatest")));
    assert_eq!(r.threads[0].wakeup.beyond(100 * US), (0, 0));
    assert_eq!(r.threads[0].wakeup.beyond(97 * US), (1, 59_999), "not met, with certainty");
    // Of how many values is not known.
    let bare = "#1 -> #0, Min    2, Cur    4, Avg    3, Max   41\n";
    assert!(has(&read(Format::RtTestsText, bare), "source-no-count"));
    let rows = "RTD|      1.443|      2.173|     10.737|       0|     0|      1.400|     20.737\n";
    assert!(has(&read(Format::XenomaiText, rows), "source-no-count"));
    // A wake-up may have been earlier than allowed: how many were is not known.
    let early = "== Sampling period: 100 us\nRTD|      -1.513|      -0.721|      12.211|       0|     0|      -1.513|      12.211\n";
    assert!(doubts(&read(Format::XenomaiText, early)) > 0);
}
