// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files as people posted them, and the right answer to each: the unit, the runs in a file, what was left out of a histogram,
//! and text that a mail or a console changed.
//!
//! Figures are as posted; names and hosts are replaced.

use tailbound_core::{Impact, Run};
use tailbound_import::{Format, ImportError, Options, import, runs_with};

use crate::{bytes, consistent, has, reports_loss};

const US: i64 = 1000;

/// n, min, mean and max of a thread, in units of `unit` ns.
type Row = (u64, i64, i64, i64);

fn rows(run: &Run, unit: i64) -> Vec<Row> {
    let row = |d: &tailbound_core::Distribution| {
        let mean = d.mean_ns.map_or(-1, |m| (m / unit as f64) as i64);
        (d.n, d.min_ns.unwrap_or(-1) / unit, mean, d.max_ns.unwrap_or(-1) / unit)
    };
    run.threads.iter().map(|t| row(&t.wakeup)).collect()
}

fn runs(name: &str) -> Vec<Run> {
    of_text(name, &bytes(name))
}

fn of_text(name: &str, bytes: &[u8]) -> Vec<Run> {
    let runs = runs_with(None, name, bytes, &Options::default()).unwrap_or_else(|e| panic!("{e}"));
    runs.iter().for_each(|r| consistent(name, r));
    runs
}

fn one(name: &str) -> Run {
    let mut runs = runs(name);
    assert_eq!(runs.len(), 1, "{name}");
    runs.remove(0)
}

fn finding<'a>(run: &'a Run, id: &str) -> &'a str {
    run.findings.iter().find(|f| f.id == id).map_or("", |f| f.title.as_str())
}

fn refused(text: &str) -> String {
    import("x", text.as_bytes()).map(|r| rows(&r, 1)).expect_err(text).to_string()
}

#[test]
fn the_unit_is_that_of_the_version_and_the_options() {
    let r = one("field/cyclictest-0.11-2006.txt");
    let want = [(1000, 7, 16, 561), (671, 7, 15, 498), (504, 7, 16, 533), (403, 6, 13, 394)];
    assert_eq!(rows(&r, US), want);
    assert!(!has(&r, "source-unit") && r.header.tool == "cyclictest 0.11", "{}", r.header.tool);
    let r = one("field/cyclictest-N-one-line.txt");
    assert_eq!(rows(&r, 1), [(100_000, 928, 1154, 18_373)]);
    assert!(finding(&r, "source-unit").contains("1154 would be longer than the interval of 1000"));
    assert!(r.findings.iter().any(|f| f.id == "source-unit" && f.impact == Impact::Doubt));
}

/// A status line as `-N` writes it, or without.
fn line(nano: bool, tid: u32, cycles: u64, min: i64, avg: i64, max: i64) -> String {
    if nano {
        format!(
            "T: 0 ({tid:5}) P:90 I:1000 C:{cycles:7} Min:{min:7} Act:{avg:8} Avg:{avg:8} Max:{max:8}\n"
        )
    } else {
        format!(
            "T: 0 ({tid:5}) P:90 I:1000 C:{cycles:7} Min:{min:7} Act:{avg:5} Avg:{avg:5} Max:{max:8}\n"
        )
    }
}

#[test]
fn units_of_other_texts() {
    let policy = "policy: fifo: loadavg: 1.0 1.0 1.0 1/100 7\n";
    let squeezed =
        |text: &str| text.split(' ').filter(|w| !w.is_empty()).collect::<Vec<_>>().join(" ");
    let nano = line(true, 7, 500, 2400, 2895, 6642);
    let slow = line(false, 7, 500, 612, 700, 900);
    let beyond = line(true, 7, 500, 1200, 1895, 6642);
    for (text, unit, doubted) in [
        // The columns of -N, and a line that is younger than the only version that wrote them without.
        (format!("{policy}{nano}"), 1, false),
        (nano.clone(), 1, true),
        (slow.clone(), US, false),
        (format!("$ ./cyclictest -N -p 90\n{}", squeezed(&nano)), 1, false),
        (format!("$ cyclictest -mNp90 -i 1000\n{}", squeezed(&nano)), 1, false),
        (format!("$ sudo cyclictest --nsecs -p 90\n{}", squeezed(&nano)), 1, false),
        (format!("$ cyclictest -p 90\n{}", squeezed(&slow)), US, false),
        (format!("cyclictest V 0.28\n{}", squeezed(&slow)), US, false),
        (format!("rt-tests-0.31/cyclictest\n{}", squeezed(&slow)), US, false),
        (squeezed(&beyond), 1, true),
        (squeezed(&line(false, 7, 500, 12, 40, 6642)), US, false),
        // Later than its interval all the time, and yet too small for ns.
        (squeezed(&line(false, 7, 500, 12, 4000, 9642)), US, true),
    ] {
        let r = &of_text("x", text.as_bytes())[0];
        assert_eq!(r.threads[0].wakeup.resolution_ns, unit as u64, "{text}");
        assert_eq!(has(r, "source-unit"), doubted, "{text}: {:?}", r.findings);
    }
    for text in [
        squeezed(&slow),
        squeezed(&line(true, 7, 500, 620, 640, 700)),
        format!("$ cyclictest -p 90\n{policy}{nano}"),
        format!("$ cyclictest -N -p 90\n{}", line(false, 7, 500, 3, 4, 9)),
        // Ticks explain a mean beyond the interval.
        format!("WARN: High resolution timers not available\n{}", squeezed(&beyond)),
        "# Histogram\n000620 000007\n000900 000001\n# Min Latencies: 00620\n# Avg Latencies: 00655\n# Max Latencies: 00900\n# Histogram Overflows: 00000\n".to_owned(),
    ] {
        assert!(refused(&text).contains("--unit"), "{text}: {}", refused(&text));
    }
}

#[test]
fn several_runs_are_all_there() {
    let all = runs("field/cyclictest-two-runs-one-file.txt");
    let max = |r: &Run| rows(r, US).iter().map(|t| t.3).collect::<Vec<_>>();
    assert_eq!(
        all.iter().map(max).collect::<Vec<_>>(),
        [vec![51_956, 50_106, 51_965, 59], vec![57, 77, 68, 81]]
    );
    assert_eq!(rows(&all[0], US)[0].0, 4_688_252);
    assert!(
        finding(&all[1], "source-one-of-several").contains("2 runs: this is run 2, lines 9 to 15"),
        "{:?}",
        all[1].findings
    );
    let refused = import("x", &bytes("field/cyclictest-two-runs-one-file.txt"));
    assert!(matches!(refused, Err(ImportError::Several { ref runs, .. }) if runs.len() == 2));
    assert!(
        refused
            .is_err_and(|e| e.to_string().contains("--run N") && e.to_string().contains("52.0 ms"))
    );
    let all = runs("field/derived-two-stressng.txt");
    assert_eq!(all.iter().map(|r| rows(r, 1)[0].0).collect::<Vec<_>>(), [10_000, 10_000]);
    // Of every tool that has a line of its own for the beginning, and of JSON.
    for (name, n) in [
        ("rtla-6.1_timerlat_hist.stdout.txt", 2),
        ("rtla-6.1_osnoise_hist.stdout.txt", 3),
        ("oslat-2.4.stdout.txt", 2),
        ("latmus-evl-5.10.gnuplot", 3),
        ("xenomai-cobalt-latency.stdout.txt", 2),
        ("xenomai-mercury-latency.gnuplot", 2),
        ("rtai-5.3.4-latency.stdout.txt", 2),
        ("stressng-cyclic.stdout.txt", 3),
        ("cyclictest_stall.json", 2),
        ("oslat-2.4.json", 2),
        ("pmqtest-2.4.json", 3),
        ("jitterdebugger_results.json", 2),
        ("cyclictest-2.4_h400.stdout.txt", 3),
        ("cyclictest-2.4_H30_overflow.stdout.txt", 2),
        ("handmade_cyclictest-2.10_H.stdout.txt", 2),
        ("cyclictest-2.4_live.stdout.txt", 2),
        ("cyclictest-2.4_verbose.stdout.txt", 2),
    ] {
        let single = import(name, &bytes(name)).unwrap_or_else(|e| panic!("{e}"));
        let all = of_text(name, &bytes(name).repeat(n));
        assert_eq!(all.len(), n, "{name}");
        for r in &all {
            assert!(r.threads == single.threads, "{name}");
        }
    }
}

#[test]
fn the_richest_part_is_read_in_any_order() {
    let r = one("field/cyclictest-2.80-h-with-comments.txt");
    assert_eq!(rows(&r, US), [(60_000, 10, 16, 27), (60_000, 10, 14, 31)]);
    assert!(!has(&r, "source-no-histogram") && r.threads.iter().all(|t| t.wakeup.unbinned == 0));
    assert_eq!((r.header.plan.interval_ns, r.measured_ns()), (1_000_000, 60_000_000_000));
    assert_eq!(r.header.plan.policy, tailbound_core::Policy::Fifo(98));
    let text =
        String::from_utf8_lossy(&bytes("field/cyclictest-2.80-h-with-comments.txt")).into_owned();
    let (front, table) = text.split_once("# Histogram\n").unwrap_or_default();
    let (head, status) = front.split_once("T: 0").unwrap_or_default();
    let turned = format!("{head}# Histogram\n{table}T: 0{status}");
    let other = &of_text("x", turned.as_bytes())[..];
    assert!(other.len() == 1 && other[0].threads == r.threads);
    // Of another run: both are there.
    let alien = format!("{}# Histogram\n{table}", front.replace("Max:      27", "Max:     127"));
    assert_eq!(of_text("x", alien.as_bytes()).len(), 2);
    // Different numbers of threads.
    let fewer = format!(
        "{}# Histogram\n{table}",
        front.lines().filter(|l| !l.starts_with("T: 1")).collect::<Vec<_>>().join("\n") + "\n"
    );
    assert_eq!(of_text("x", fewer.as_bytes()).len(), 2);
}

#[test]
fn no_quantile_comes_of_an_abridged_histogram() {
    let r = one("field/cyclictest-openshift-good-abridged.txt");
    let n: Vec<u64> = r.threads.iter().map(|t| t.wakeup.n).collect();
    assert_eq!((n.len(), n[0], n[15]), (16, 600_000, 599_995));
    assert!(r.threads.iter().all(|t| t.wakeup.unbinned_from_ns.is_none() && t.wakeup.unbinned > 0));
    assert_eq!(r.threads.iter().filter_map(|t| t.wakeup.max_ns).max(), Some(6 * US));
    assert!(finding(&r, "source-abridged").contains("`# Total:` line says 600,000"));
    let rows = ["000002 000900", "000003 000080", "000004 000015", "000009 000005"];
    let whole = |rows: &[&str], total: bool| {
        let sum = if total { "# Total: 000001000\n" } else { "" };
        format!(
            "# Histogram\n{}\n{sum}# Min Latencies: 00002\n# Avg Latencies: 00002\n# Max Latencies: 00009\n# Histogram Overflows: 00000\n",
            rows.join("\n")
        )
    };
    let abridged = |text: &str| has(&of_text("x", text.as_bytes())[0], "source-abridged");
    for total in [true, false] {
        assert!(!abridged(&whole(&rows, total)), "nothing is missing");
        assert!(abridged(&whole(&rows[1..], total)), "at its beginning");
        assert!(abridged(&whole(&rows[..3], total)), "at its end");
        assert!(abridged(&whole(&[rows[0], "...", rows[3]], total)), "in the middle");
        assert!(abridged(&whole(&[rows[0], "[snip]", rows[2], rows[3]], total)), "in the middle");
    }
    assert!(abridged(&whole(&[rows[0], rows[3]], true)) && abridged(&whole(&rows[..1], false)));
    // Only its mean shows it.
    assert!(abridged(
        &whole(&["000002 000100", rows[3]], false).replace("00002\n# Max", "00004\n# Max")
    ));
    // Rows of zeros are no loss.
    assert!(!abridged(&whole(&[rows[0], rows[1], "(zeros left out)", rows[2], rows[3]], true)));
}

#[test]
fn threads_that_started_late_skipped_nothing() {
    let r = one("field/cyclictest-2.60-imx95-xen.json");
    assert_eq!(r.threads.iter().map(|t| t.wakeup.n).sum::<u64>(), 1_799_879);
    let text = finding(&r, "source-no-missed");
    for words in [
        "Only thread 0",
        "299,998 of about 300,000",
        "about 2 are not",
        "up to 44 fewer",
        "started later",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn text_is_freed_of_what_carried_it() {
    let r = one("field/cyclictest-quoted-printable.txt");
    assert_eq!((r.threads.len(), rows(&r, US)[2]), (8, (386_465, 1, 4, 67_469)));
    assert!(has(&r, "source-carried") && reports_loss(&r, "quoted-printable"));
    let r = one("field/cyclictest-N-garbled.txt");
    assert_eq!(rows(&r, 1), [(292, 2400, 2895, 6642)]);
    assert!(
        finding(&r, "source-torn").contains("10 status lines are incomplete"),
        "{:?}",
        r.findings
    );
    let r = one("field/cyclictest-m68k-unquoted-wrapped.txt");
    assert_eq!(rows(&r, US), [(11_203, 92, 775, 3516)]);
    assert!(finding(&r, "source-coarse-timers").contains("ticks"));
    assert_eq!(r.header.plan.cpu_dma_latency_us, None);
    let r = one("field/derived-F53-lava.txt");
    assert_eq!(rows(&r, US), [(100_000, 5, 7, 98)]);
    assert!(finding(&r, "source-carried").contains("2025-05-09T10:11:12.123456"));
}

#[test]
fn figures_far_behind_other_text_are_found() {
    let boot: String =
        (0..9000).map(|i| format!("[{:5}.000001] board: probed device {i}\n5\n", i)).collect();
    let text = format!("{boot}[ 9999.5] {}", line(false, 7, 500, 6, 7, 90));
    let mut source = std::io::Cursor::new(text.clone().into_bytes());
    let piped =
        tailbound_import::import_from(None, "x", &mut source, &Options::default(), &mut |_| true);
    let whole = &of_text("x", text.as_bytes())[0];
    assert_eq!(rows(whole, US), [(500, 6, 7, 90)]);
    assert!(piped.unwrap_or_else(|e| panic!("{e}")).threads == whole.threads);
    let page = format!("<html>\n<pre>\n{}</pre>\n", line(false, 7, 500, 6, 7, 90));
    assert_eq!(rows(&of_text("x", page.as_bytes())[0], US), [(500, 6, 7, 90)]);
    let console = format!("<6>[    1.5] noise\n<6>[    2.5] {}", line(false, 7, 500, 6, 7, 90));
    assert_eq!(rows(&of_text("x", console.as_bytes())[0], US), [(500, 6, 7, 90)]);
    // One number among words is no column.
    assert!(refused("some words\n5\nmore words\nand more\n").contains("no format"));
}

#[test]
fn every_text_survives_its_ways() {
    for (format, name) in [
        (Format::CyclictestHistogram, "field/cyclictest-2.80-h-with-comments.txt"),
        (Format::CyclictestHistogram, "cyclictest-2.4_H30_overflow.stdout.txt"),
        (Format::CyclictestStatus, "cyclictest-2.4_break.stdout.txt"),
        (Format::RtlaTimerlat, "rtla-6.1_timerlat_hist.stdout.txt"),
        (Format::XenomaiText, "xenomai-cobalt-latency.stdout.txt"),
        (Format::StressNg, "stressng-cyclic.stdout.txt"),
    ] {
        let text = String::from_utf8_lossy(&bytes(name)).into_owned();
        let plain = import("x", text.as_bytes()).unwrap_or_else(|e| panic!("{e}"));
        for mark in [
            "> ",
            "> > ",
            "2025-05-09T10:11:12.123Z ",
            "[   12.345678] ",
            "Nov  7 20:18:48 board tool[12]: ",
            "board-1  | ",
            "12:30:45 ",
        ] {
            let stamped: String = text.lines().map(|l| format!("{mark}{l}\n")).collect();
            assert_eq!(Format::detect(stamped.as_bytes()), Ok(format), "{name} `{mark}`");
            let got = import("x", stamped.as_bytes()).unwrap_or_else(|e| panic!("`{mark}`: {e}"));
            assert!(got.threads == plain.threads, "{name} `{mark}`");
        }
        for (way, changed) in [
            ("CRLF", text.replace('\n', "\r\n")),
            ("CR", text.replace('\n', "\r")),
            (
                "quoted-printable",
                text.replace('=', "=3D")
                    .replace("Max:", "Max=\n:")
                    .replace("Latencies", "Laten=\ncies")
                    .replace("# ", "#=20")
                    .replace("max:", "ma=\nx:")
                    .replace("Duration", "Dura=\ntion")
                    .replace("samples", "sampl=\nes"),
            ),
        ] {
            let got =
                import("x", changed.as_bytes()).unwrap_or_else(|e| panic!("{name} {way}: {e}"));
            assert!(got.threads == plain.threads, "{name} {way}");
        }
    }
}

#[test]
fn a_file_cut_in_its_foot_keeps_its_figures() {
    let r = one("field/derived-F12-truncated.txt");
    assert_eq!(r.threads.iter().map(|t| t.wakeup.n).sum::<u64>(), 44_220_549);
    let max: Vec<_> = r.threads.iter().map(|t| t.wakeup.max_ns.unwrap_or(0) / US).collect();
    assert!(max == [27, 28, 21, 25] && has(&r, "source-cut-off") && !has(&r, "source-abridged"));
}
