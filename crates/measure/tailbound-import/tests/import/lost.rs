// SPDX-License-Identifier: MIT OR Apache-2.0
//! What sources lose is reported, as a sentence and where it matters as a doubt.

use tailbound_core::{Impact, Run};
use tailbound_import::{Format, Options, import, import_as, import_with};

use crate::{bytes, has, reports_loss, run, run_with};

fn title(run: &Run, id: &str) -> String {
    let finding = run.findings.iter().find(|f| f.id == id && f.impact == Impact::Doubt);
    finding.map(|f| f.title.clone()).unwrap_or_default()
}

#[test]
fn a_lost_tail_is_a_doubt() {
    for (format, name) in [
        (Format::CyclictestJson, "cyclictest-2.4_H30_overflow.json"),
        (Format::CyclictestHistogram, "cyclictest-2.4_h400.stdout.txt"),
        (Format::JitterdebuggerJson, "jitterdebugger_stall_results.json"),
        (Format::RtlaTimerlat, "rtla-6.1_timerlat_hist.stdout.txt"),
        (Format::OslatText, "oslat-2.4.stdout.txt"),
        (Format::XenomaiGnuplot, "xenomai-mercury-latency.gnuplot"),
        (Format::Latmus, "handmade_latmus.gnuplot"),
        (Format::StressNg, "stressng-cyclic.stdout.txt"),
    ] {
        let r = run(format, name);
        assert!(!title(&r, "source-lost-tail").is_empty(), "{name}: {:?}", r.findings);
        let total = r.total(r.contexts()[0]).0;
        let beyond = total.beyond(total.unbinned_from_ns.unwrap_or(0) - 1).0;
        assert!(beyond >= total.unbinned, "{name}: the lost tail counts as beyond");
    }
}

#[test]
fn missed_periods_are_estimated_where_the_file_tells_enough() {
    let r = run(Format::CyclictestJson, "cyclictest_stall.json");
    let t = title(&r, "source-no-missed");
    assert!(t.contains("47,888 of about 50,000") && t.contains("2,112"), "{t}");
    // No wake-up later than the interval: nothing can have been skipped.
    let r = run(Format::CyclictestJson, "handmade_cyclictest-2.10_H40.json");
    assert!(!has(&r, "source-no-missed") && reports_loss(&r, "none can have been missed"));
    // Neither interval nor duration is in the text; the user may know them.
    let r = run(Format::CyclictestHistogram, "cyclictest-2.4_h400.stdout.txt");
    assert!(title(&r, "source-no-missed").contains("interval is not in the file"));
    let known = Options {
        interval_ns: Some(200_000),
        duration_ns: Some(3_000_000_000),
        ..Options::default()
    };
    let r = run_with(Format::CyclictestHistogram, "cyclictest-2.4_h400.stdout.txt", &known);
    let t = title(&r, "source-no-missed");
    assert!(t.contains("9,872 of about 15,000"), "{t}");
    let r = run(Format::XenomaiText, "xenomai-mercury-latency.stdout.txt");
    assert!(title(&r, "source-no-missed").contains("2 missed"));
    let r = run(Format::RtlaTimerlat, "rtla-6.1_timerlat_hist.stdout.txt");
    assert!(has(&r, "source-no-missed"));
    let r = run(Format::JitterdebuggerRaw, "jitterdebugger_samples_first3000.raw");
    assert!(!has(&r, "source-no-missed") && reports_loss(&r, "catches up"));
}

#[test]
fn other_losses_are_reported() {
    let r = run(Format::StressNg, "stressng-cyclic.stdout.txt");
    assert!(title(&r, "source-samples-lost").contains("10,000 of 13,251"));
    assert!(has(&r, "source-clock-realtime"));
    let r = run(Format::CyclictestStatus, "cyclictest-2.4_spike.stdout.txt");
    assert!(has(&r, "source-no-histogram") && reports_loss(&r, "spikes"));
    let r = run(Format::OslatJson, "oslat-2.4.json");
    assert!(has(&r, "source-other-quantity") && reports_loss(&r, "rounds up"));
    let relative =
        String::from_utf8_lossy(&bytes("cyclictest_stall.json")).replace("-m -p", "-m -r -p");
    let r = import("x", relative.as_bytes()).unwrap_or_else(|e| panic!("{e}"));
    assert!(title(&r, "source-no-missed").contains("relative"));
    let plain = String::from_utf8_lossy(&bytes("cyclictest_stall.json")).replace("-p 95 ", "");
    let r = import("x", plain.as_bytes()).unwrap_or_else(|e| panic!("{e}"));
    assert!(has(&r, "source-not-realtime"));
}

#[test]
fn a_file_cut_off_says_so() {
    let whole = bytes("cyclictest-2.4_h400.stdout.txt");
    let text = &whole[..whole.len() * 2 / 3];
    let r = import("x", text).unwrap_or_else(|e| panic!("{e}"));
    assert!(has(&r, "source-cut-off") && r.end.is_none());
    for name in ["cyclictest_stall.json", "jitterdebugger_results.json", "oslat-2.4.json"] {
        let whole = bytes(name);
        let e = import("x", &whole[..whole.len() / 2]).unwrap_err().to_string();
        assert!(e.contains("line ") && e.contains("cut off"), "{e}");
    }
    let raw = bytes("jitterdebugger_samples_first3000.raw");
    let r = import("x", &raw[..raw.len() - 5]).unwrap_or_else(|e| panic!("{e}"));
    assert!(has(&r, "source-cut-off") && reports_loss(&r, "23 bytes"));
    let xml = bytes("rteval-3.8_summary.xml");
    let e = import("x", &xml[..xml.len() / 2]).unwrap_err().to_string();
    assert!(e.contains("line ") && e.contains("not XML"), "{e}");
}

#[test]
fn broken_files_say_what_and_where() {
    let quoted =
        String::from_utf8_lossy(&bytes("cyclictest_stall.json")).replace("-i 200", "-c \"x y\"");
    let text =
        String::from_utf8_lossy(&bytes("handmade_rtla-7.2_timerlat_hist.stdout.txt")).into_owned();
    let huge = String::from_utf8_lossy(&bytes("cyclictest_stall.json"))
        .replace("\"20068\": 1", "\"1000000000000000000\": 1");
    for (file, words) in [
        (quoted, &["line 3", "without escaping"][..]),
        (text.replace("10 \ncount", "\ncount"), &["line 9", "5 values for 6 columns"]),
        (
            text.replace("990         0         0         0 ", "-7 0 0 0"),
            &["line 8", "not a whole number"],
        ),
        (huge, &["thread.0.histogram.1000000000000000000", "292 years"]),
        (
            "{\"file_version\": 1, \"cmdline:\": \"cyclictest\", \"thread\": {\"0\": {}}}".into(),
            &["thread.0.cycles", "missing"],
        ),
        ("{\"file_version\": 2, \"cmdline:\": \"cyclictest\"}".into(), &["file_version", "only 1"]),
        ("<rteval><Measurements><cyclictest/></Measurements></rteval>".into(), &["more buckets"]),
        ("# Histogram\n000001 000000\t000001\n000002 7\n".into(), &["line 3", "1 counts where"]),
    ] {
        let e = import("name", file.as_bytes()).unwrap_err().to_string();
        assert!(e.starts_with("name") && words.iter().all(|w| e.contains(w)), "{e}");
    }
    let e = import("x.bin", b"\x7fELF\0\0").unwrap_err().to_string();
    assert!(e.contains("binary") && !e.contains("cyclictest-json"), "one sentence: {e}");
    let e = import("x", b"words of nobody\n").unwrap_err().to_string();
    assert!(e.contains("no format known") && e.contains("cyclictest-json"), "{e}");
    let e = import_as(Format::OslatText, "x", b"nothing").unwrap_err().to_string();
    assert!(e.contains("oslat-text") && e.contains("no thread"), "{e}");
}

#[test]
fn what_cannot_be_imported_gets_advice() {
    for (name, advice) in [
        ("near/stressng-cyclic.yaml", "standard output"),
        ("near/hwlat_trace_6.12.txt", "kernel trace"),
        ("near/rt-migrate-test-2.4.json", "rt-migrate-test"),
        ("near/pi_stress-2.4.json", "pi_stress"),
        ("near/jitterdebugger.stdout.txt", "samples.raw"),
        ("near/xenomai-cobalt-latency-B100.stdout.txt", "not 1 µs wide (-B)"),
    ] {
        let e = import(name, &bytes(name)).unwrap_err().to_string();
        assert!(e.contains(advice), "{e}");
    }
}

#[test]
fn a_wrapped_negative_extreme_is_not_a_huge_one() {
    let text = String::from_utf8_lossy(&bytes("cyclictest_stall.json"))
        .replace("\"max\": 20068", "\"max\": 18446744073709551613");
    let r = import_with(None, "x", text.as_bytes(), &Options::default())
        .unwrap_or_else(|e| panic!("{e}"));
    assert!(has(&r, "source-inconsistent"));
    assert_eq!(r.threads[0].wakeup.max_ns, Some(20_068_000), "the last bucket is what is known");
}

#[test]
fn stress_ng_without_a_distribution_is_its_extremes() {
    let whole = String::from_utf8_lossy(&bytes("stressng-cyclic.stdout.txt")).into_owned();
    let without = |words: &[&str]| {
        let left = whole.lines().filter(|l| !words.iter().any(|w| l.contains(w)));
        left.filter(|l| {
            // Rows of the distribution: two numbers behind the name.
            let tail = l.split_once("cyclic:").map_or("", |(_, t)| t.trim());
            !tail.starts_with(|c: char| c.is_ascii_digit()) || tail.contains('%')
        })
        .fold(String::new(), |all, l| all + l + "\n")
    };
    let dist = ["latency distribution", "latency (ns)", "buckets of", ".. "];
    // The note names the number.
    let r = import_as(Format::StressNg, "x", without(&dist).as_bytes())
        .unwrap_or_else(|e| panic!("{e}"));
    let d = &r.threads[0].wakeup;
    assert_eq!((d.n, d.unbinned, d.unbinned_from_ns), (10_000, 10_000, Some(9663)));
    // A short run has no note.
    let text = without(&[&dist[..], &["Note:"]].concat());
    let r = import_as(Format::StressNg, "x", text.as_bytes()).unwrap_or_else(|e| panic!("{e}"));
    let d = &r.threads[0].wakeup;
    assert_eq!((d.min_ns, d.max_ns, d.mean_ns), (Some(9663), Some(3_319_479), Some(23_166.24)));
    assert_eq!((d.n, d.unbinned), (10_000, 10_000), "as many as its first line says");
    let told = r.findings.iter().find(|f| f.id == "source-no-histogram");
    assert!(told.is_some_and(|f| f.title.contains("the quantiles that the tool printed")));
    assert!(told.is_some_and(|f| f.impact == Impact::Notice), "its greatest decides");
    assert_eq!(r.header.plan.interval_ns, 200_000);
    let none = without(&[&dist[..], &["Note:", "min:"]].concat());
    let e = import_as(Format::StressNg, "x", none.as_bytes()).unwrap_err().to_string();
    assert!(e.contains("nor the extremes"), "{e}");
}

#[test]
fn what_rtevals_timerlat_leaves_out_is_a_doubt() {
    let xml = r#"<?xml version="1.0"?><rteval version="3.8"><Measurements>
        <timerlat command_line="rtla timerlat hist -P f:95 -u -c 0 -E 3500 --no-summary" format="1.0">
        <core id="0" priority="95"><statistics><samples>12</samples>
        <minimum unit="us">1</minimum><maximum unit="us">3400</maximum><mean unit="us">40.0</mean>
        </statistics><histogram nbuckets="3500"><bucket index="1" value="11"/>
        <bucket index="3400" value="1"/></histogram></core></timerlat></Measurements></rteval>"#;
    let r = import_as(Format::RtevalXml, "x", xml.as_bytes()).unwrap_or_else(|e| panic!("{e}"));
    let t = title(&r, "source-lost-tail");
    assert!(t.contains("does not say how many"), "{t}: {:?}", r.findings);
    assert!(reports_loss(&r, "beyond the last bucket"));
    // cyclictest's overflow is counted by rteval.
    let r = run(Format::RtevalXml, "rteval-3.8_summary.xml");
    assert!(!has(&r, "source-lost-tail"));
}
