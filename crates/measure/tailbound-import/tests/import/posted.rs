// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files as people posted them, of tools whose output is a few lines: each with the right answer.
//!
//! The expected figures were read in the files by eye. Not here: variants of them (`extremes`).

use tailbound_core::plan::{Clock, Means};
use tailbound_core::{Impact, Policy, Run};
use tailbound_import::{Format, Options, import};

use crate::{bytes, has, reports_loss, run, run_with};

const US: i64 = 1000;

/// n, least, greatest, mean.
type Figures = (u64, Option<i64>, Option<i64>, Option<i64>);

/// n, least, greatest of every thread, in ns, and its mean in whole ns.
fn figures(run: &Run) -> Vec<Figures> {
    let mean = |m: Option<f64>| m.map(|m| m as i64);
    run.threads
        .iter()
        .map(|t| (t.wakeup.n, t.wakeup.min_ns, t.wakeup.max_ns, mean(t.wakeup.mean())))
        .collect()
}

fn of_us(n: u64, min: i64, mean: i64, max: i64) -> Figures {
    (n, Some(min * US), Some(max * US), Some(mean * US))
}

/// The title of a finding, of whatever impact.
fn title(run: &Run, id: &str) -> String {
    let titles = run.findings.iter().filter(|f| f.id == id).map(|f| f.title.clone());
    titles.collect::<Vec<_>>().join(" ")
}

#[test]
fn cyclicdeadline() {
    let r = run(Format::CyclicdeadlineText, "cyclicdeadline-2.80_verbose.txt");
    assert_eq!(
        figures(&r),
        [
            of_us(60_001, 1, 2, 33),
            of_us(40_001, 1, 2, 21),
            of_us(30_001, 1, 6, 162),
            of_us(24_001, 3, 5, 30)
        ]
    );
    let plan = &r.header.plan;
    assert_eq!(plan.policy, Policy::Deadline { runtime_ns: 600_000, period_ns: 1_000_000 });
    assert_eq!((plan.interval_ns, r.measured_ns()), (1_000_000, 60_000_000_000));
    assert!(r.threads.iter().all(|t| t.wakeup.unbinned == t.wakeup.n), "no quantile is invented");
    assert!(!has(&r, "source-no-missed"), "no wake-up was later than its interval");
    let r = run(Format::CyclicdeadlineJson, "handmade_cyclicdeadline.json");
    let greatest: Vec<_> = r.threads.iter().map(|t| t.wakeup.max_ns.map(|m| m / US)).collect();
    assert_eq!(greatest, [20, 20, 340, 279, 128, 22].map(Some));
    assert_eq!((r.threads[0].wakeup.n, r.threads[0].wakeup.unbinned), (300_000, 0));
    assert_eq!(r.header.tool, "cyclicdeadline 2.80");
}

#[test]
fn pmqtest() {
    let r = run(Format::RtTestsText, "pmqtest-2.80.stdout.txt");
    let greatest: Vec<_> = r.threads.iter().map(|t| t.wakeup.max_ns.map(|m| m / US)).collect();
    assert_eq!(greatest, [749, 730, 740, 734, 724, 728, 472, 409].map(Some));
    assert_eq!(figures(&r)[0], of_us(74_953, 35, 83, 749));
    assert_eq!((r.threads[7].cpu, r.threads[7].wakeup.n), (Some(7), 37_310));
    assert_eq!((r.header.tool.as_str(), r.header.plan.policy), ("pmqtest", Policy::Fifo(98)));
    assert_eq!(r.header.plan.clock, Clock::Realtime);
    assert!(has(&r, "source-other-quantity"));
}

#[test]
fn hwlatdetect() {
    let r = run(Format::Hwlatdetect, "hwlatdetect_37.txt");
    assert_eq!((r.threads[0].wakeup.n, r.threads[0].wakeup.max_ns), (37, Some(48 * US)));
    assert_eq!((r.threads[0].context.as_str(), r.measured_ns()), ("hwlat", 900_000_000_000));
    assert!(title(&r, "source-blind-time").contains("500 ms out of each 1.00 s"));
    assert!(reports_loss(&r, "Interruptions of 0 ns and less"), "the threshold");
    let r = run(Format::Hwlatdetect, "hwlatdetect-old_shortened.txt");
    let d = &r.threads[0].wakeup;
    assert_eq!((d.n, d.max_ns, d.min_ns, d.unbinned), (16, Some(21 * US), None, 16));
    assert_eq!(d.unbinned_from_ns, Some(15 * US), "the threshold");
    assert!(title(&r, "source-samples-lost").contains("3 of 16"));
}

#[test]
fn rtla_without_noise_is_a_good_result() {
    let mut r = run(Format::RtlaOsnoise, "rtla_osnoise_hist_empty.txt");
    assert!(r.end.is_some(), "it is whole");
    assert!(r.findings.iter().all(|f| f.impact == Impact::Notice), "{:?}", r.findings);
    assert!(title(&r, "source-nothing-found").contains("no noise above its threshold"));
    assert_eq!((r.threads[0].wakeup.n, r.measured_ns()), (0, 5_000_000_000));
    r.header.plan.requirement.deadline_ns = Some(1000);
    assert_eq!(r.end_reason().as_str(), "complete");
}

#[test]
fn rtlas_analysis_names_who_and_where() {
    let r = run(Format::RtlaAnalysis, "rtla_auto-analysis.txt");
    let cause = title(&r, "source-cause");
    for part in [
        "CPU 23",
        "IRQ handler delay 27.49 µs (65.52 %)",
        "IRQ duration 9.59 µs (22.85 %)",
        "blocking thread 3.79 µs (9.03 %, objtool:49256",
    ] {
        assert!(cause.contains(part), "{part}: {cause}");
    }
    assert!(
        title(&r, "source-stack")
            .contains("_raw_spin_unlock_irqrestore < cgroup_rstat_flush_locked")
    );
    assert_eq!((r.threads[0].cpu, r.threads[0].wakeup.max_ns), (Some(23), Some(28_130)));
    assert_eq!(r.threads[1].wakeup.max_ns.map(|m| m / 10), Some(4195), "27.49 µs are 65.52 %");
    assert!(reports_loss(&r, "is not in the file: it is computed") && r.end.is_none());
}

#[test]
fn stress_ngs_percentiles_are_quantiles() {
    let r = run(Format::StressNg, "stressng-cyclic_deadline.txt");
    let d = &r.threads[0].wakeup;
    assert_eq!((d.n, d.min_ns, d.max_ns), (10_000, Some(2688), Some(5_701_735)));
    assert_eq!((d.mean_ns, r.header.plan.interval_ns), (Some(23_829.7), 100_000));
    use tailbound_core::stated::Stated;
    let at = |p: f64| d.quantiles.at(p);
    assert_eq!(at(0.5), Stated::Exactly(13_945));
    assert_eq!(at(0.99), Stated::Exactly(85_602));
    assert_eq!(at(0.999), Stated::Exactly(1_798_633));
    assert_eq!(at(0.95), Stated::Between(34_500, 41_470), "none is invented");
    let lost = title(&r, "source-samples-lost");
    assert!(lost.contains("first 10,000") && lost.contains("1.24 s of the 5 min"), "{lost}");
}

#[test]
fn xenomais_rows_without_a_histogram() {
    let r = run(Format::XenomaiText, "xenomai-latency_rows.txt");
    let d = &r.threads[0].wakeup;
    assert_eq!((d.min_ns, d.max_ns, d.n), (Some(850), Some(11_038), 14_000));
    assert_eq!((r.header.plan.interval_ns, r.header.plan.policy), (1_000_000, Policy::Fifo(99)));
    assert!(!has(&r, "source-no-missed"), "0 overruns");
    let r = run(Format::XenomaiText, "xenomai-latency_broken_row.txt");
    let d = &r.threads[0].wakeup;
    assert_eq!((d.min_ns, d.max_ns, d.n), (Some(1175), Some(374_075), 599_943));
    assert_eq!((d.mean_ns, r.measured_ns()), (Some(2955.0), 60_000_000_000));
    assert!(title(&r, "source-rows-broken").contains("1 of 7 rows"));
    assert!(title(&r, "source-no-missed").contains("40 missed"));
    let name = "near/xenomai-latency_nan.txt";
    let e = import(name, &bytes(name)).unwrap_err().to_string();
    assert!(e.contains("nothing was measured, every 7.00 µs"), "{e}");
}

#[test]
fn latmus_answers_a_signal_from_outside() {
    let r = run(Format::LatmusText, "latmus_oob-gpio.txt");
    let d = &r.threads[0].wakeup;
    assert_eq!((d.min_ns, d.max_ns, r.threads[0].cpu), (Some(26_333), Some(49_675), Some(0)));
    assert_eq!((r.header.plan.means, r.header.plan.policy), (Means::NotTold, Policy::Fifo(98)));
    assert_eq!(r.header.tool, "latmus");
    assert!(title(&r, "source-other-quantity").contains("external stimulus"));
    assert!(!has(&r, "source-no-missed") && reports_loss(&r, "not isolated"));
}

#[test]
fn sysjitter() {
    let r = run(Format::Sysjitter, "sysjitter.txt");
    let got: Vec<_> = r.threads.iter().map(|t| (t.cpu, t.wakeup.n, t.wakeup.max_ns)).collect();
    assert_eq!(got, [(Some(2), 12, Some(5000)), (Some(4), 3, Some(900))]);
    let taken = title(&r, "source-taken");
    assert!(taken.contains("0.004 % of CPU 2") && taken.contains("above 200 ns"), "{taken}");
    assert_eq!(r.measured_ns() / 1_000_000, 9999);
}

#[test]
fn hdr_percentiles_need_a_unit() {
    let name = "near/hdrhistogram_percentiles.txt";
    let e = import(name, &bytes(name)).unwrap_err().to_string();
    assert!(e.contains("3 values from 25.000 to 75.000") && e.contains("--unit"), "{e}");
    let us = Options { unit_ns: Some(1000), ..Options::default() };
    let r = run_with(Format::HdrHistogram, name, &us);
    let d = &r.threads[0].wakeup;
    let seen: Vec<u64> = d.late.buckets().map(|b| b.count).collect();
    assert_eq!((d.min_ns, d.max_ns, seen), (Some(25 * US), Some(75 * US), vec![1, 1, 1]));
    assert_eq!(d.mean_ns, Some(50_000.0));
    assert!(has(&r, "source-unknown-quantity"), "no \"met\" on it");
}

#[test]
fn wakeup_rt_names_who_held_the_cpu() {
    let r = run(Format::LatencyTrace, "wakeup_rt-6.5-rt.trace.txt");
    let t = &r.threads[0];
    assert_eq!((t.cpu, t.wakeup.n, t.wakeup.max_ns), (Some(0), 1, Some(1689 * US)));
    assert_eq!(r.header.plan.policy, Policy::Fifo(99));
    let cause = title(&r, "source-cause");
    for part in [
        "1,689 µs on CPU 0",
        "cyclictest-217 was woken at 1 µs (stack recorded at 12 µs)",
        "ran at 1,676 µs",
        "stress-n-232 held the CPU, in munmap (free_unref_page_list)",
    ] {
        assert!(cause.contains(part), "{part}: {cause}");
    }
    assert!(title(&r, "source-stack").contains("free_unref_page_list < release_pages"));
    assert!(has(&r, "source-one-sample"), "no \"met\" on one value");
}
