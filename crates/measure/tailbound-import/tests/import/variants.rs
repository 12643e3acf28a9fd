// SPDX-License-Identifier: MIT OR Apache-2.0
//! Outputs as people keep them: logs in JSON, in other encodings, with commas, of several machines, shortened, changed by hand.
//! Each is read rightly or refused with what helps.
//!
//! Not here: files as they were posted (`posted`, `field`).

use tailbound_core::Run;
use tailbound_import::{Format, Options, import, import_with};

use crate::{bytes, consistent, has, reports_loss};

const US: i64 = 1000;
const LINE: &str =
    "T: 0 ( 4712) P:80 I:1000 C:  60000 Min:      2 Act:    5 Avg:    5 Max:      87\n";

fn fixture(name: &str) -> String {
    String::from_utf8_lossy(&bytes(name)).into_owned()
}

fn read(text: &[u8]) -> Run {
    let run = import("x", text).unwrap_or_else(|e| panic!("{e}"));
    consistent("x", &run);
    run
}

fn refused(text: &[u8]) -> String {
    match import("x", text) {
        Ok(_) => panic!("it was read: {}", String::from_utf8_lossy(text)),
        Err(e) => e.to_string(),
    }
}

fn title(run: &Run, id: &str) -> String {
    let titles = run.findings.iter().filter(|f| f.id == id).map(|f| f.title.clone());
    titles.collect::<Vec<_>>().join(" ")
}

fn stamped(name: &str, stamp: &str) -> String {
    fixture(name).lines().map(|l| format!("{stamp}{l}\n")).collect()
}

#[test]
fn a_status_line_survives_its_ways() {
    let tabs = ["P:", "I:", "C:", "Min:", "Act:", "Avg:", "Max:"]
        .iter()
        .fold(LINE.to_owned(), |line, label| {
            line.replace(&format!(" {label}"), &format!("\t{label}"))
        });
    for text in [
        LINE.replace(' ', "\u{a0}"),
        LINE.replace("  ", "&nbsp; "),
        tabs,
        format!("\u{1b}]0;root@h: ~\u{7}{LINE}"),
        format!("\u{feff}{LINE}"),
        LINE.replace('\n', " SMI:       3\n"),
    ] {
        let r = read(text.as_bytes());
        let d = &r.threads[0].wakeup;
        assert_eq!((d.n, d.min_ns, d.max_ns), (60_000, Some(2 * US), Some(87 * US)), "{text}");
    }
    let wide: Vec<u8> = LINE.encode_utf16().flat_map(u16::to_be_bytes).collect();
    assert!(refused(&wide).contains("iconv -f UTF-16BE"), "without a mark at its beginning");
    let wide: Vec<u8> = LINE.encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert!(refused(&wide).contains("iconv -f UTF-16LE"));
}

#[test]
fn what_holds_a_tools_lines_within_something_else_is_named() {
    let line = LINE.trim_end();
    let cut: String = LINE.split(" Max:").take(1).collect();
    for (text, words) in [
        (format!(r#"{{"log":"{line}\n","stream":"stdout","time":"2025"}}"#), "jq -rj .log"),
        (format!(r#"{{"MESSAGE":"{line}","PRIORITY":"6"}}"#), "journalctl -o cat"),
        (format!("- {{\"lvl\": \"target\", \"msg\": \"{line}\"}}\n"), "take them out"),
        (format!("{cut}\n"), "`Max:`"),
        ("ts: 1646837340.346, inner:5, outer:9\n".to_owned(), "hwlatdetect --report"),
        ("Index   IRQ-000   Thr-000\n0   28000   0\n".to_owned(), "--no-header"),
        ("   Hardware-related Noise\n".to_owned(), "rtla hwnoise"),
        (
            " Task   |   Runtime ms  | Switches | Avg delay ms | Max delay ms |\n".to_owned(),
            "perf sched latency",
        ),
        ("  usecs  : count     distribution\n  0 -> 1 : 233 |***|\n".to_owned(), "powers of two"),
        (
            "<idle>-0 [000] 1.5: sched_switch: swapper/0:0 [120] R ==> a:4712 [19]\n".to_owned(),
            "tailbound blame",
        ),
        ("# latency_us\n12,5\n13,25\n".to_owned(), "write a point"),
        ("# latency_ns\n12,500\n199,000\n".to_owned(), "write a point"),
        (fixture("rteval-3.8_summary.xml").repeat(2), "a second document begins here"),
    ] {
        let said = refused(text.as_bytes());
        assert!(said.contains(words) && !said.contains("; readable are"), "{words}: {said}");
    }
}

#[test]
fn json_beside_text_is_not_lost() {
    let json = fixture("cyclictest_stall.json");
    let behind = refused(format!("+ cat out.json\n{json}").as_bytes());
    assert!(behind.contains("from its first `{` to its last `}`"), "{behind}");
    let before = refused(format!("{json}\nTest finished\n").as_bytes());
    assert!(before.contains("other text follows the JSON document"), "{before}");
    let stamps: String = json.lines().map(|l| format!("2025-05-09T10:11:12.1Z {l}\n")).collect();
    assert!(refused(stamps.as_bytes()).contains("without stamps"));
    let r = read(format!("{LINE}{json}").as_bytes());
    let said = title(&r, "source-other-tools");
    assert!(
        said.contains("a tool as JSON (lines 2 to") && said.contains("the JSON alone"),
        "{said}"
    );
    assert_eq!(r.measured_ns(), 60_000_000_000, "the command line in the JSON is of the other run");
    assert!(r.header.command.is_empty());
}

#[test]
fn lines_of_several_machines_are_not_mixed() {
    let of = |host: &str, thread: u32, tid: u32, max: u32| {
        let line = LINE.replace("T: 0 ( 4712)", &format!("T: {thread} ( {tid})"));
        format!("{host}{}", line.replace("     87", &format!("{max:7}")))
    };
    let two = |a: &str, b: &str| {
        [of(a, 0, 4712, 87), of(b, 0, 3312, 44), of(a, 1, 4713, 88), of(b, 1, 3313, 45)].concat()
    };
    for (a, b) in [
        ("host1: ", "host2: "),
        ("alpha: ", "beta: "),
        ("svc-1  | ", "svc-2  | "),
        ("a7.txt:", "b7.txt:"),
    ] {
        let said = refused(two(a, b).as_bytes());
        assert!(said.contains("lines of several sources") && said.contains(a.trim()), "{said}");
    }
    // Numbers of processes, levels and times are none.
    for (a, b) in [
        ("cyclictest[12]: ", "cyclictest[13]: "),
        ("INFO: ", "DEBUG: "),
        ("10:11:12 ", "10:11:13 "),
    ] {
        let text = [of(a, 0, 4712, 87), of(b, 1, 4713, 44), of(a, 2, 4714, 88)].concat();
        assert_eq!(read(text.as_bytes()).threads.len(), 3, "{a}");
    }
    // One behind the other they are runs.
    let text = [of("host1: ", 0, 4712, 87), of("host2: ", 0, 3312, 44)].concat();
    assert!(refused(text.as_bytes()).contains("holds 2 runs"));
    let other: String =
        fixture("sysjitter.txt").lines().map(|l| format!("svc-2  | {l}\n")).collect();
    let r = read(format!("{}{other}", of("svc-1  | ", 0, 4712, 87)).as_bytes());
    assert!(has(&r, "source-other-tools"), "each has run a tool of its own");
    // In containers threads have the same numbers: the second could be the first, later.
    let later = of("host2: ", 0, 4712, 90).replace("C:  60000", "C:  61000");
    let said = refused(format!("{}{later}", of("host1: ", 0, 4712, 87)).as_bytes());
    assert!(said.contains("lines of several sources") && said.contains("host2:"), "{said}");
}

#[test]
fn a_comma_in_a_number_is_named() {
    let commas = |name: &str| fixture(name).replace('.', ",");
    for name in [
        "latmus_oob-gpio.txt",
        "xenomai-latency_rows.txt",
        "xenomai-latency_broken_row.txt",
        "oslat-2.4.stdout.txt",
        "near/hdrhistogram_percentiles.txt",
    ] {
        let said = refused(commas(name).as_bytes());
        assert!(said.contains("has a comma"), "{name}: {said}");
    }
    let rows = "# Histogram\n000001 1,000\n# Total: 1,000\n# Min Latencies: 00001\n# Avg Latencies: 00001\n# Max Latencies: 00001\n# Histogram Overflows: 00000\n";
    assert!(refused(rows.as_bytes()).contains("`1,000` has a comma"));
}

#[test]
fn stamps_before_every_tools_lines_are_taken_off() {
    for (name, format) in [
        ("rtla-6.1_timerlat_top.stdout.txt", Format::RtlaTop),
        ("sysjitter.txt", Format::Sysjitter),
        ("pmqtest-2.80.stdout.txt", Format::RtTestsText),
        ("hwlatdetect_37.txt", Format::Hwlatdetect),
        ("near/hdrhistogram_percentiles.txt", Format::HdrHistogram),
        ("xenomai-latency_rows.txt", Format::XenomaiText),
        ("cyclictest-2.4_verbose.stdout.txt", Format::CyclictestVerbose),
        ("wakeup_rt-6.5-rt.trace.txt", Format::LatencyTrace),
    ] {
        let us = Options { unit_ns: Some(1000), ..Options::default() };
        let alone = import_with(Some(format), "x", &bytes(name), &us);
        let alone = alone.unwrap_or_else(|e| panic!("{name}: {e}"));
        for stamp in
            ["2025-05-09T10:11:12.123Z ", "[   12.000001] ", "Nov 28 00:01:07 h1 tool[812]: "]
        {
            let r = import_with(None, "x", stamped(name, stamp).as_bytes(), &us);
            let r = r.unwrap_or_else(|e| panic!("{name} `{stamp}`: {e}"));
            assert!(r.threads == alone.threads, "{name} `{stamp}`");
        }
    }
}

#[test]
fn figures_that_contradict_each_other_give_no_smaller_greatest() {
    let rtla = "# RTLA timerlat histogram\n# Time unit is microseconds (us)\n# Duration:   0 00:00:30\nIndex   IRQ-000   Thr-000\n0          28000         0\n1           2000     30000\nover:          0         0\ncount:     30000     30000\nmin:           0         1\navg:           0         1\nmax:           1         0\n";
    let r = read(rtla.as_bytes());
    assert_eq!(r.threads[1].wakeup.max_ns, Some(US));
    assert!(
        title(&r, "source-inconsistent").contains("greatest latency is 0 ns as the file states it")
    );
    let rows = "# Histogram\n000001 000010\n000002 000990\n000098 000001\n# Total: 000001001\n# Min Latencies: 00001\n# Avg Latencies: 00002\n# Max Latencies: 00009\n# Histogram Overflows: 00000\n";
    let r = read(rows.as_bytes());
    assert_eq!(r.threads[0].wakeup.max_ns, Some(98 * US));
    assert!(has(&r, "source-inconsistent"));
}

#[test]
fn the_greatest_of_a_file_cut_before_it_is_unknown() {
    let oslat = fixture("oslat-2.4.stdout.txt");
    let (cut, _) = oslat.split_once("Minimum:").unwrap_or_default();
    let r = read(cut.as_bytes());
    let d = &r.threads[0].wakeup;
    assert_eq!((d.max_ns, has(&r, "source-cut-off")), (None, true));
    assert!(d.beyond(25 * US).1 > 0, "its last bucket may hold all that is beyond");
    // A negative number without its sign is no latency.
    let wrapped = LINE.replace("      87", "4294967295");
    let said = refused(wrapped.as_bytes());
    assert!(said.contains("below zero") && said.contains("4294967295"), "{said}");
    // As ns, a stall of three seconds.
    let nano = Options { unit_ns: Some(1), ..Options::default() };
    let long = LINE.replace("      87", "3000000000");
    let r = import_with(None, "x", long.as_bytes(), &nano).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(r.threads[0].wakeup.max_ns, Some(3_000_000_000));
    assert!(reports_loss(&r, "given by the user"));
}

#[test]
fn the_end_of_an_output_alone_is_read_or_named() {
    let feet = "# Min Latencies: 00001 00002\n# Avg Latencies: 00002 00002\n# Max Latencies: 00045 00044\n";
    let figures = |r: &Run| -> Vec<_> {
        r.threads.iter().map(|t| (t.wakeup.n, t.wakeup.max_ns, t.wakeup.unbinned)).collect()
    };
    // As `cyclictest -h 400 -q | grep Latencies` leaves it.
    let r = read(feet.as_bytes());
    assert_eq!(figures(&r), [(2, Some(45 * US), 2), (2, Some(44 * US), 2)]);
    assert!(has(&r, "source-abridged"), "no quantile and no \"met\"");
    let r = read(
        format!("# Total: 000100000 000100001\n{feet}# Histogram Overflows: 00000 00000\n")
            .as_bytes(),
    );
    assert_eq!(figures(&r), [(100_000, Some(45 * US), 100_000), (100_001, Some(44 * US), 100_001)]);
    let tail = |name: &str, lines: usize| -> String {
        let text = fixture(name);
        let all: Vec<&str> = text.lines().collect();
        all[all.len() - lines..].iter().map(|l| format!("{l}\n")).collect()
    };
    for (text, words) in [
        ("Max Latency: 48us\nSamples recorded: 37\n".to_owned(), "hwlatdetect's report"),
        (tail("oslat-2.4.stdout.txt", 6), "oslat's output"),
        (tail("rtla-6.1_timerlat_hist.stdout.txt", 5), "rtla's histogram"),
        (
            " Latency Distribution (HdrHistogram - Recorded Latency)\n 50.000%    1.00ms\n"
                .to_owned(),
            "detailed spectrum",
        ),
    ] {
        let said = refused(text.as_bytes());
        assert!(said.contains(words), "{words}: {said}");
    }
}

#[test]
fn lines_that_a_mail_wrapped_are_joined_for_every_tool() {
    let wrapped = |name: &str| -> String {
        let mut out = String::new();
        for line in fixture(name).lines() {
            let mut rest = line.trim_end();
            while rest.len() > 66
                && let Some(at) = rest[..66].rfind(' ').filter(|at| !rest[..*at].trim().is_empty())
            {
                out.push_str(&rest[..at]);
                out.push('\n');
                rest = rest[at..].trim_start();
            }
            out.push_str(rest);
            out.push('\n');
        }
        out
    };
    for name in [
        "pmqtest-2.80.stdout.txt",
        "stressng-cyclic.stdout.txt",
        "cyclicdeadline-2.80_verbose.txt",
        "cyclictest-2.4_break.stdout.txt",
        "sysjitter.txt",
        "hwlatdetect_37.txt",
    ] {
        let (alone, r) = (read(&bytes(name)), read(wrapped(name).as_bytes()));
        assert!(r.threads == alone.threads, "{name}: {}", wrapped(name));
        assert_eq!(r.header.plan, alone.header.plan, "{name}");
        assert_eq!(r.header.tool, alone.header.tool, "{name}");
    }
}

#[test]
fn the_latency_that_stopped_a_run_counts() {
    let screen = LINE.replace("C:  60000", "C:    100").replace("     87", "     20");
    let break_of = |thread: u32| {
        format!("^C# Thread Ids: 04712\n# Break thread: {thread}\n# Break value: 187\n")
    };
    let r = read(format!("{screen}{}", break_of(4712)).as_bytes());
    assert_eq!(r.threads[0].wakeup.max_ns, Some(187 * US));
    assert!(title(&r, "source-inconsistent").contains("stopped by a latency of 187 µs"));
    let other = screen.replace("T: 0 ( 4712)", "T: 1 ( 4713)");
    let r = read(format!("{screen}{other}{}", break_of(4713)).as_bytes());
    let max: Vec<_> = r.threads.iter().map(|t| t.wakeup.max_ns).collect();
    assert_eq!(max, [Some(20 * US), Some(187 * US)]);
    assert!(!has(&read(&bytes("cyclictest-2.4_break.stdout.txt")), "source-inconsistent"));
}

#[test]
fn runs_in_a_container_have_threads_of_the_same_numbers() {
    let next = LINE.replace("C:  60000", "C:  50000").replace("Max:      87", "Max:      44");
    let said = refused(format!("{LINE}{next}").as_bytes());
    assert!(said.contains("holds 2 runs") && said.contains("44.0 µs"), "{said}");
}

#[test]
fn extremes_and_averages_out_of_their_order_are_a_doubt() {
    let pairs = "#0: ID7, P98, CPU0, I1000; #1: ID8, P98, CPU0, TO 0, Cycles 749\n#1 -> #0, Min   35, Cur   84, Avg   83, Max   29\n";
    let deadline = "T: 0 (  7) I:1000 C:  60001 Min:     50 Act:    4 Avg:   55 Max:      33\n";
    for text in [
        LINE.replace("Avg:    5", "Avg:  500"),
        LINE.replace("Avg:    5", "Avg:   -5"),
        pairs.to_owned(),
        deadline.to_owned(),
        "RTS|      9.175|      9.955|      4.075|       0|     0|    00:01:00/00:01:00\n"
            .to_owned(),
        fixture("sysjitter.txt").replace("5000      900", " 500      900"),
        fixture("rtla-6.1_timerlat_top.stdout.txt").replace("115094", "    15"),
    ] {
        let r = import("x", text.as_bytes()).unwrap_or_else(|e| panic!("{e}"));
        assert!(has(&r, "source-inconsistent"), "{text}: {:?}", r.findings);
    }
    // An average is cut to a whole unit.
    assert!(!has(&read(LINE.replace("Avg:    5", "Avg:    1").as_bytes()), "source-inconsistent"));
}

#[test]
fn the_greatest_beside_an_old_histogram_counts() {
    let rows =
        "# Histogram\n000002 000500\n000003 000400\n000004 000099\n# Max Latency: 61 / 100\n";
    let status = LINE.replace("C:  60000", "C:   1000").replace("     87", "     61");
    for text in [rows.to_owned(), format!("{status}{rows}")] {
        let r = read(text.as_bytes());
        let d = &r.threads[0].wakeup;
        assert_eq!((d.n, d.max_ns, d.unbinned), (1000, Some(61 * US), 1), "{text}");
    }
    // Of two threads each has its own in its status line.
    let two =
        "# Histogram\n000002 000500\t000500\n000004 000099\t000001\n# Max Latency: 61 / 100\n";
    let lines = format!(
        "{}{}",
        status.replace("     61", "      4"),
        status.replace("T: 0 ( 4712)", "T: 1 ( 4713)")
    );
    let r = read(format!("{lines}{two}").as_bytes());
    let max: Vec<_> = r.threads.iter().map(|t| t.wakeup.max_ns).collect();
    assert_eq!(max, [Some(4 * US), Some(61 * US)]);
    let r = read(two.as_bytes());
    assert!(
        reports_loss(&r, "of which thread it is") && r.threads[0].wakeup.max_ns == Some(61 * US)
    );
}

#[test]
fn feet_of_several_runs_and_text_with_zeros_are_named() {
    let feet = "# Min Latencies: 00001\n# Avg Latencies: 00002\n# Max Latencies: 00045\n";
    for text in [feet.repeat(2), "# Max Latencies: 00045\n# Max Latencies: 00087\n".to_owned()] {
        let said = refused(text.as_bytes());
        assert!(said.contains("lines of several runs stand together"), "{said}");
    }
    let log = format!("{}\0{LINE}", "U-Boot 2024.01\n".repeat(5));
    assert!(refused(log.as_bytes()).contains("tr -d '\\000'"), "{}", refused(log.as_bytes()));
    assert!(refused(b"\0\x01\x02\x03\0\0").contains("binary file"));
    let json = format!("{{\"time\": \"2025\", \"msg\": \"{}\"}}\n", LINE.trim_end());
    assert!(refused(json.as_bytes()).contains("take them out"));
    let said = refused(
        b"WARN: Unable to change scheduling policy!\neither run as root or join realtime group\n",
    );
    assert!(said.contains("it measured nothing"), "{said}");
}
