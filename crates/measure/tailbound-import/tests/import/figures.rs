// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every format's figures: counts, extremes, edges of buckets, settings.
//!
//! The expected numbers were read in the files by eye or with other programs.

use tailbound_core::plan::{Clock, Means};
use tailbound_core::{Context, Policy, Run};
use tailbound_import::{Format, Options};

use crate::{reports_loss, run, run_with};

/// n, least, greatest, unbinned of a thread, in ns.
fn of(run: &Run, i: usize) -> (u64, Option<i64>, Option<i64>, u64) {
    let d = &run.threads[i].wakeup;
    (d.n, d.min_ns, d.max_ns, d.unbinned)
}

const US: i64 = 1000;

#[test]
fn cyclictest_json() {
    let r = run(Format::CyclictestJson, "cyclictest-2.4_H30_overflow.json");
    assert_eq!(r.header.tool, "cyclictest 2.40");
    assert_eq!(r.header.started, "2026-11-21T18:58:56Z");
    assert_eq!(of(&r, 0), (14_971, Some(8 * US), Some(1400 * US), 2161));
    assert_eq!(of(&r, 1), (9733, Some(8 * US), Some(53_710 * US), 2486));
    let d = &r.threads[0].wakeup;
    assert_eq!((d.unbinned_from_ns, d.resolution_ns, d.sums), (Some(30 * US), 1000, None));
    assert!((d.mean_ns.unwrap_or(0.0) - 24_970.0).abs() < 1e-6);
    let p = &r.header.plan;
    assert_eq!(
        (p.probe.as_str(), p.interval_ns, p.policy),
        ("cyclictest", 200 * US, Policy::Fifo(95))
    );
    assert_eq!((p.activations, p.clock, p.means), (15_000, Clock::Monotonic, Means::Nanosleep));
    assert_eq!((p.cpus.to_string().as_str(), p.cpu_dma_latency_us), ("0-1", Some(0)));
    assert_eq!(r.measured_ns(), 3_000_000_000);
    assert_eq!(r.header.machine["kernel.release"].as_str(), Some("6.18.44"));
    assert_eq!(r.header.machine["kernel.realtime"].text(), "false");
}

#[test]
fn cyclictest_json_in_ns_and_of_2_10() {
    let r = run(Format::CyclictestJson, "cyclictest-2.4_nsec.json");
    assert_eq!(of(&r, 0), (9979, Some(10_216), Some(541_878), 49));
    let d = &r.threads[0].wakeup;
    assert_eq!((d.resolution_ns, d.unbinned_from_ns), (1, Some(100_000)));
    let r = run(Format::CyclictestJson, "handmade_cyclictest-2.10_H40.json");
    assert_eq!(of(&r, 0), (9999, Some(3 * US), Some(212 * US), 3));
    assert_eq!(
        r.threads[0].wakeup.unbinned_from_ns,
        Some(40 * US),
        "the range is on the command line"
    );
    assert_eq!(r.header.started, "2026-02-27T09:00:00Z");
}

#[test]
fn cyclictest_histogram_text() {
    let json = run(Format::CyclictestJson, "cyclictest-2.4_H30_overflow.json");
    let text = run(Format::CyclictestHistogram, "cyclictest-2.4_H30_overflow.stdout.txt");
    assert_eq!(text.threads.len(), 2, "the column of sums is not a thread");
    for i in 0..2 {
        let (a, b) = (&json.threads[i].wakeup, &text.threads[i].wakeup);
        assert!(a.late == b.late && a.unbinned_from_ns == b.unbinned_from_ns);
        assert_eq!((a.min_ns, a.max_ns), (b.min_ns, b.max_ns));
    }
    let r = run(Format::CyclictestHistogram, "cyclictest-2.4_h400.stdout.txt");
    assert_eq!(of(&r, 1), (9872, Some(14 * US), Some(50_042 * US), 4));
    let r = run(Format::CyclictestHistogram, "handmade_cyclictest-2.10_H.stdout.txt");
    assert_eq!(r.threads.len(), 2);
    assert_eq!(of(&r, 0), (211, Some(3 * US), Some(7 * US), 0));
    assert_eq!(of(&r, 1), (155, Some(4 * US), Some(900 * US), 3));
    let idle = b"# Histogram\n000000 000000\n# Total: 000000000\n# Min Latencies: 1000000\n# Avg Latencies: 00000\n# Max Latencies: 00000\n# Histogram Overflows: 00000\n";
    let r = tailbound_import::import("x", idle).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(of(&r, 0), (0, None, None, 0), "1000000 is no sample, it is what `min` starts from");
    assert!(crate::has(&r, "source-no-samples"));
    let r = run(Format::CyclictestHistogram, "cyclictest-2.4_H400_two_threads.stdout.txt");
    assert_eq!(r.threads.len(), 2);
}

#[test]
fn cyclictest_text_in_ns_needs_the_unit() {
    let ns = Options { unit_ns: Some(1), ..Options::default() };
    for (format, name) in [
        (Format::CyclictestHistogram, "cyclictest-2.4_nsec.stdout.trimmed.txt"),
        (Format::CyclictestVerbose, "cyclictest-2.4_verbose_nsec.stdout.txt"),
    ] {
        let error = tailbound_import::import(name, &crate::bytes(name)).unwrap_err().to_string();
        assert!(error.contains("give the unit"), "{error}");
        let r = run_with(format, name, &ns);
        assert_eq!(r.threads[0].wakeup.resolution_ns, 1);
    }
    let r = run_with(Format::CyclictestHistogram, "cyclictest-2.4_nsec.stdout.trimmed.txt", &ns);
    assert_eq!(of(&r, 0), (9979, Some(10_216), Some(541_878), 49));
}

#[test]
fn cyclictest_status_and_breaks() {
    let r = run(Format::CyclictestStatus, "cyclictest-2.4_live.stdout.txt");
    assert_eq!(of(&r, 0), (300, Some(18 * US), Some(60 * US), 300));
    assert_eq!(of(&r, 1), (201, Some(20 * US), Some(49 * US), 201));
    assert_eq!((r.header.plan.interval_ns, r.header.plan.policy), (1000 * US, Policy::Fifo(95)));
    let r = run(Format::CyclictestStatus, "cyclictest-2.4_break.stdout.txt");
    assert_eq!(of(&r, 0), (1, Some(36 * US), Some(36 * US), 1));
    assert!(r.events.iter().any(|e| e.event == "stopped" && e.text.contains("36")));
    run(Format::CyclictestStatus, "cyclictest-2.4_break_tracemark.stdout.txt");
    let r = run(Format::CyclictestStatus, "cyclictest-2.4_spike.stdout.txt");
    assert_eq!(of(&r, 0).2, Some(3449 * US));
    let ns =
        b"T: 0 (18174) P:80 I:1000 C:    998 Min:  18365 Act:   18879 Avg:   43284 Max: 2369716\n";
    let r = tailbound_import::import("x", ns).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(of(&r, 0), (998, Some(18_365), Some(2_369_716), 998), "a wide `Act:` means ns");
}

#[test]
fn cyclictest_verbose() {
    let r = run(Format::CyclictestVerbose, "cyclictest-2.4_verbose.stdout.txt");
    assert_eq!(r.threads.iter().map(|t| t.wakeup.n).collect::<Vec<_>>(), [298, 300]);
    assert_eq!(r.threads.iter().map(|t| t.cpu).collect::<Vec<_>>(), [Some(0), Some(1)]);
    assert_eq!(r.header.plan.interval_ns, 1_000_000);
    assert!(r.threads.iter().all(|t| t.wakeup.sums.is_some_and(|s| s.n == t.wakeup.n)));
    let raw = tailbound_core::runfile::unpack_raw(&r.raw[0]).unwrap_or_default();
    assert_eq!(raw.get(..3), Some(&[45 * US, 40 * US, 40 * US][..]));
    assert!(r.header.plan.raw);
}

#[test]
fn oslat_names_buckets_by_their_upper_edge() {
    for (format, name) in
        [(Format::OslatJson, "oslat-2.4.json"), (Format::OslatText, "oslat-2.4.stdout.txt")]
    {
        let r = run(format, name);
        assert_eq!(of(&r, 0), (72_826_520, Some(0), Some(17_047 * US), 1246), "{name}");
        let d = &r.threads[0].wakeup;
        assert_eq!(d.unbinned_from_ns, Some(31 * US), "the last bucket holds all beyond");
        let first = d.late.buckets().next().map(|b| (b.low_ns, b.count));
        assert_eq!(first, Some((0, 72_817_577)), "`1` is 0 to 1 µs");
        assert_eq!((r.header.plan.policy, r.threads[0].cpu), (Policy::Fifo(1), Some(1)));
        assert_eq!(r.header.plan.interval_ns, 0);
        assert_eq!(r.header.plan.means, Means::Polling, "a busy loop sleeps by nothing");
        assert_eq!(r.header.plan.every(), "no interval");
        assert!(!reports_loss(&r, "slept") && !reports_loss(&r, "The interval is not in the file"));
    }
    for (format, name) in [
        (Format::OslatJson, "oslat-2.4_two_cores.json"),
        (Format::OslatText, "oslat-2.4_two_cores.stdout.txt"),
    ] {
        let r = run(format, name);
        assert_eq!(r.threads.iter().map(|t| t.cpu).collect::<Vec<_>>(), [Some(0), Some(1)]);
        assert_eq!(of(&r, 1).2, Some(44_572 * US));
    }
}

#[test]
fn oslat_mixes_units() {
    let r = run(Format::OslatText, "oslat-2.10_ns.stdout.txt");
    let d = &r.threads[0].wakeup;
    assert_eq!((d.min_ns, d.max_ns, d.unbinned), (Some(20), Some(49_545_054), 2215));
    assert_eq!((d.resolution_ns, d.unbinned_from_ns), (250, Some(31_750)));
    let json =
        br#"{"file_version": 1, "cmdline:": "oslat -W 250 -b 4 -D 1", "thread": {"0": {"cpu": 1,
        "min": 20, "avg": 1.4, "max": 49545054, "duration": 2.0,
        "histogram": {"0.250": 7, "0.500": 2, "1.000": 3}}}}"#;
    let r = tailbound_import::import("x", json).unwrap_or_else(|e| panic!("{e}"));
    let d = &r.threads[0].wakeup;
    assert_eq!((d.min_ns, d.max_ns, d.unbinned_from_ns), (Some(20), Some(49_545_054), Some(750)));
}

#[test]
fn rt_tests_small_programs() {
    let r = run(Format::RtTestsJson, "pmqtest-2.4.json");
    assert_eq!((r.header.tool.as_str(), r.header.plan.interval_ns), ("pmqtest 2.40", 200 * US));
    assert_eq!(of(&r, 1), (8335, Some(3 * US), Some(54 * US), 8335));
    assert_eq!(r.header.plan.clock, Clock::Realtime);
    for name in ["ptsematest-2.4.json", "sigwaittest-2.4.json", "svsematest-2.4.json"] {
        assert_eq!(run(Format::RtTestsJson, name).threads.len(), 2);
    }
    let r = run(Format::RtTestsJson, "signaltest-2.4.json");
    assert_eq!(of(&r, 1), (2000, Some(22 * US), Some(10_309 * US), 2000));
    assert!(r.threads.iter().all(|t| t.cpu.is_none()), "its CPUs are wrong");
}

#[test]
fn rtla_contexts_and_units() {
    let r = run(Format::RtlaTimerlat, "rtla-6.1_timerlat_hist.stdout.txt");
    assert_eq!(r.contexts(), [Context::Irq, Context::Thread]);
    assert_eq!(of(&r, 0), (253, Some(144 * US), Some(154_794 * US), 248));
    assert_eq!(r.threads[3].cpu, Some(1));
    assert_eq!(r.measured_ns(), 12_000_000_000);
    let r = run(Format::RtlaTimerlat, "rtla-6.1_timerlat_hist_ns.stdout.txt");
    let d = &r.threads[0].wakeup;
    assert_eq!((d.resolution_ns, d.min_ns), (1000, Some(21_467)), "-n with 1000 ns buckets");
    let r = run(Format::RtlaTimerlat, "handmade_rtla-7.2_timerlat_hist.stdout.txt");
    assert_eq!(r.contexts(), [Context::Irq, Context::Thread, Context::User]);
    assert_eq!((r.threads.len(), of(&r, 5)), (6, (60_000, Some(US), Some(440 * US), 10)));
    let r = run(Format::RtlaTimerlat, "handmade_rtla-7.2_timerlat_stopped.stdout.txt");
    assert!(r.events.iter().any(|e| e.event == "stopped"));
    let r = run(Format::RtlaOsnoise, "rtla-6.1_osnoise_hist.stdout.txt");
    assert_eq!(of(&r, 0), (48_670, Some(0), Some(168_960 * US), 37));
    assert_eq!(r.threads[0].wakeup.resolution_ns, 10_000);
}

#[test]
fn jitterdebugger_results() {
    let r = run(Format::JitterdebuggerJson, "jitterdebugger_stall_results.json");
    assert_eq!(of(&r, 0), (49_900, Some(8 * US), Some(19_978 * US), 2105));
    assert_eq!(r.threads[0].wakeup.unbinned_from_ns, Some(1_000_000));
    assert_eq!(r.threads[0].cpu, None, "the key is a thread, not a CPU");
    run(Format::JitterdebuggerJson, "jitterdebugger_results.json");
}

#[test]
fn jitterdebugger_raw() {
    let r = run(Format::JitterdebuggerRaw, "jitterdebugger_samples_first3000.raw");
    assert_eq!(r.threads.iter().map(|t| t.wakeup.n).sum::<u64>(), 3000);
    let first = tailbound_core::runfile::unpack_raw(&r.raw[0]).unwrap_or_default();
    assert_eq!(first.first(), Some(&(60 * US)), "thread 0, 1711.746156711 s, 60 µs");
    assert_eq!(r.header.plan.interval_ns, 200 * US);
    assert_eq!(r.seconds.iter().map(|s| s.n).sum::<u64>(), 3000);
    for t in &r.threads {
        let of_thread = || r.seconds.iter().filter(|s| s.thread == t.thread);
        assert_eq!(of_thread().map(|s| s.max_ns).max(), t.wakeup.max_ns);
        assert_eq!(
            of_thread().map(|s| i128::from(s.sum_ns)).sum::<i128>(),
            t.wakeup.sums.map_or(0, |s| s.s1)
        );
        assert!(of_thread().zip(of_thread().skip(1)).all(|(a, b)| a.second < b.second));
    }
}

#[test]
fn rteval_summary() {
    let r = run(Format::RtevalXml, "rteval-3.8_summary.xml");
    assert_eq!(r.threads.len(), 2, "cores, not cores and their sum");
    assert_eq!(of(&r, 0), (7958, Some(10 * US), Some(6202 * US), 0));
    assert_eq!((r.header.plan.policy, r.header.plan.interval_ns), (Policy::Fifo(95), 1000 * US));
    assert_eq!(r.measured_ns() / 1_000_000, 8005);
    assert_eq!(r.header.machine["clock.source"].as_str(), Some("tsc"));
}

#[test]
fn xenomai_in_both_forms() {
    for (format, name) in [
        (Format::XenomaiGnuplot, "xenomai-mercury-latency.gnuplot"),
        (Format::XenomaiText, "xenomai-mercury-latency.stdout.txt"),
    ] {
        let r = run(format, name);
        assert_eq!(of(&r, 0), (4983, Some(18_975), Some(1_511_688), 16), "{name}");
        let d = &r.threads[0].wakeup;
        assert_eq!((d.unbinned_from_ns, d.resolution_ns), (Some(299 * US), 1000), "{name}");
        let first = d.late.buckets().next().map(|b| (b.low_ns / 1000, b.count));
        assert_eq!(first.map(|f| f.1), Some(2), "{name}: counts are written plus one");
        assert_eq!(
            (r.header.plan.policy, r.header.plan.interval_ns),
            (Policy::Fifo(99), 1000 * US)
        );
    }
}

#[test]
fn xenomai_on_cobalt_itself() {
    let r = run(Format::XenomaiGnuplot, "xenomai-cobalt-latency-B100.gnuplot");
    assert_eq!(of(&r, 0), (7979, Some(4237), Some(4386), 0));
    let d = &r.threads[0].wakeup;
    assert_eq!(d.resolution_ns, 100);
    let low: Vec<(u64, u64)> = d.late.buckets().map(|b| (b.low_ns / 100, b.count)).collect();
    assert_eq!(low, [(42, 7959), (43, 20)]);
    for (format, name, context) in [
        (Format::XenomaiGnuplot, "xenomai-cobalt-latency-kernel.gnuplot", "thread"),
        (Format::XenomaiText, "xenomai-cobalt-latency-irq.stdout.txt", "irq"),
        (Format::XenomaiText, "xenomai-cobalt-latency.stdout.txt", "user"),
    ] {
        assert_eq!(run(format, name).threads[0].context.as_str(), context, "{name}");
    }
}

#[test]
fn a_last_second_that_xenomai_does_not_sum_up_is_not_lost() {
    let r = run(Format::XenomaiText, "xenomai-cobalt-latency.stdout.txt");
    // The summary's greatest is 4.312 µs; one of 7984 values came later and took 7 µs.
    assert_eq!((of(&r, 0).0, of(&r, 0).2), (7984, Some(7 * US)));
    assert!(r.findings.iter().any(|f| f.id == "source-inconsistent"), "{:?}", r.findings);
}

#[test]
fn latmus_on_evl_itself() {
    let r = run(Format::Latmus, "latmus-evl-5.10.gnuplot");
    assert_eq!(of(&r, 0), (12_002, Some(3628), Some(3816), 0));
    let t = &r.threads[0];
    assert_eq!((t.cpu, t.context.as_str()), (Some(0), "user"));
    assert_eq!(r.header.plan.interval_ns, 250 * US);
    // Its timers had no head start; those of the other file had, which hides latency.
    assert!(!r.findings.iter().any(|f| f.id == "source-gravity"));
    let hidden = run(Format::Latmus, "handmade_latmus.gnuplot");
    assert!(
        hidden.findings.iter().any(|f| f.id == "source-gravity" && f.title.contains("fired 3.5"))
    );
}

#[test]
fn rtai_is_in_ns_and_has_no_histogram() {
    let r = run(Format::RtaiText, "rtai-5.3.4-latency.stdout.txt");
    // Five rows of a second, every 100 µs: 50,000 values, of which only the extremes are there.
    assert_eq!(of(&r, 0), (50_000, Some(1884), Some(2094), 50_000));
    assert_eq!(r.header.plan.interval_ns, 100 * US);
    assert!(r.findings.iter().any(|f| f.id == "source-no-histogram"), "{:?}", r.findings);
}

#[test]
fn latmus_and_stress_ng() {
    let r = run(Format::Latmus, "handmade_latmus.gnuplot");
    assert_eq!(of(&r, 0), (60_000, Some(205), Some(251_510), 3));
    assert_eq!(r.threads[0].wakeup.unbinned_from_ns, Some(199 * US));
    assert_eq!((r.threads[0].cpu, r.header.plan.policy), (Some(1), Policy::Fifo(98)));
    let r = run(Format::StressNg, "stressng-cyclic.stdout.txt");
    assert_eq!(of(&r, 0).1, Some(9663));
    assert_eq!((of(&r, 0).0, of(&r, 0).2), (10_000, Some(3_319_479)));
    assert_eq!(
        (r.header.plan.clock, r.header.plan.means),
        (Clock::Realtime, Means::NanosleepRelative)
    );
}

#[test]
fn columns_need_a_unit() {
    let r = run(Format::Column, "handmade_column.txt");
    assert_eq!(of(&r, 0), (4, Some(-US), Some(14_250), 0));
    assert_eq!(r.threads[0].wakeup.resolution_ns, 10);
    let refused = tailbound_import::import("x", b"1\n2\n").unwrap_err().to_string();
    assert!(refused.contains("line 1") && refused.contains("# latency_us"), "{refused}");
    let unit = Options { unit_ns: Some(1000), interval_ns: Some(1_000_000), ..Options::default() };
    let r = tailbound_import::import_with(None, "x", b"1\n2\n", &unit)
        .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((of(&r, 0).2, r.header.plan.interval_ns), (Some(2 * US), 1_000_000));
    let bad = tailbound_import::import("x", b"# us\n1\n2\nthree\n").unwrap_err().to_string();
    assert!(bad.contains("line 4"), "{bad}");
}
