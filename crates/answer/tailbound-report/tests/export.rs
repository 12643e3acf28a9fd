// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run in the formats of other tools, and its latest wake-ups, from made-up data.

mod common;

use tailbound_core::record::{Clocks, Event, ExceedanceRecord, WARM_UP_OVER};
use tailbound_core::{Outcome, Run};
use tailbound_report::export::{Exported, FORMATS, Format, Rows, export};
use tailbound_report::{Color, brief, worst};
use tailbound_stats::Analysis;

fn run() -> Run {
    common::run(&common::Shape::default())
}

/// `run` in a format of text; of others what of them is text.
fn exported(run: &Run, format: Format) -> String {
    match export(&Analysis::of(run), format) {
        Exported::Text(text) => text,
        Exported::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
    }
}

fn lines(text: &str) -> Vec<&str> {
    text.lines().collect()
}

#[test]
fn every_format_has_a_name_that_is_read_back() {
    for (name, about, format) in FORMATS {
        assert_eq!(name.parse::<Format>(), Ok(format), "{about}");
        assert_eq!(format.to_string(), name);
        assert!(!exported(&run(), format).is_empty(), "{name}");
    }
    assert!("xls".parse::<Format>().is_err_and(|e| e.known.contains(&"openmetrics")));
}

#[test]
fn rows_of_the_histogram_add_up_to_the_activations() {
    let run = run();
    let text = exported(&run, Format::Csv(Rows::Histogram));
    let all = lines(&text);
    assert_eq!(all.first(), Some(&"thread,cpu,context,kind,low_ns,high_ns,count"));
    let count = |kind: &str| -> u64 {
        let of = all.iter().skip(1).map(|l| l.split(',').collect::<Vec<_>>());
        of.filter(|c| c[3] == kind).map(|c| c[6].parse::<u64>().unwrap()).sum()
    };
    assert_eq!(count("wake-up"), run.threads.iter().map(|t| t.wakeup.n).sum::<u64>());
    assert_eq!(count("missed"), run.threads.iter().map(|t| t.missed.n).sum::<u64>());
    let seconds = exported(&run, Format::Csv(Rows::Seconds));
    assert_eq!(lines(&seconds).len(), run.seconds.len() + 1);
}

#[test]
fn a_cell_is_text_and_never_a_formula() {
    let mut run = run();
    run.loads[0].name = "=cmd|' /C calc'!A0, \"x\"".into();
    let text = exported(&run, Format::Csv(Rows::Loads));
    assert!(text.contains("\"'=cmd|' /C calc'!A0, \"\"x\"\"\""), "{text}");
}

#[test]
fn metrics_count_up_to_all_and_end() {
    let run = run();
    let text = exported(&run, Format::OpenMetrics);
    assert!(text.ends_with("# EOF\n"));
    let t = &run.threads[0];
    let labels = format!("thread=\"0\",cpu=\"{}\",context=\"user\"", t.cpu.unwrap());
    let start = format!("tailbound_wakeup_latency_seconds_bucket{{{labels},le=");
    let counts: Vec<u64> = text
        .lines()
        .filter(|l| l.starts_with(&start))
        .map(|l| l.rsplit(' ').next().unwrap().parse().unwrap())
        .collect();
    assert!(counts.is_sorted(), "{counts:?}");
    assert_eq!(counts.last(), Some(&t.wakeup.n));
    let missed = format!("tailbound_missed_activations_total{{{labels}}} {}", t.missed.n);
    assert!(text.contains(&missed), "{text}");
    for name in text.lines().filter_map(|l| l.strip_prefix("# TYPE ")) {
        let name = name.split(' ').next().unwrap();
        let twice = text.lines().filter(|l| l.starts_with(&format!("# TYPE {name} "))).count();
        assert_eq!(twice, 1, "{name}");
    }
}

#[test]
fn only_met_passes_in_ci() {
    let mut run = run();
    for (outcome, junit, ktap) in [
        (Outcome::Met, "failures=\"0\"", "ok 1 "),
        (Outcome::NotMet, "<failure", "not ok 1 "),
        (Outcome::Undecided, "<error", "not ok 1 "),
        (Outcome::Measured, "<skipped", "# SKIP"),
    ] {
        run.findings.clear();
        if outcome == Outcome::Met {
            run.header.plan.requirement.deadline_ns = Some(1_000_000_000);
        }
        run.verdict.as_mut().unwrap().outcome = outcome;
        let xml = exported(&run, Format::Junit);
        roxmltree::Document::parse(&xml).unwrap();
        assert!(xml.contains(junit), "{outcome}: {xml}");
        let text = exported(&run, Format::Ktap);
        assert!(text.starts_with("KTAP version 1\n1.."), "{text}");
        assert!(text.contains(ktap), "{outcome}: {text}");
    }
    run.verdict = None;
    run.end = None;
    assert!(exported(&run, Format::Ktap).contains("not ok 1 "), "a file that was cut off");
}

#[test]
fn hostile_names_stay_text_in_every_format() {
    let mut run = run();
    run.header.id = "x\"]]><script>\u{1b}[31m\n# EOF\nok 9 all".into();
    run.header.plan.probe = run.header.id.clone();
    run.loads[0].name = run.header.id.clone();
    for (name, _, format) in FORMATS {
        if format == Format::Perfetto {
            // No text: what stands in it is looked at in `perfetto.rs`.
            continue;
        }
        let text = exported(&run, format);
        assert!(!text.contains('\u{1b}'), "{name}");
        let lines = matches!(format, Format::Ktap | Format::OpenMetrics | Format::HdrHistogram);
        assert!(!lines || !text.contains("\nok 9"), "{name}");
    }
    roxmltree::Document::parse(&exported(&run, Format::Junit)).unwrap();
    serde_json::from_str::<serde_json::Value>(&exported(&run, Format::PerfettoCounters)).unwrap();
    assert_eq!(brief(&Analysis::of(&run)).lines().count(), 1);
}

/// Decodes what `hdr` wrote: payload and range of one histogram.
fn decoded(line: &str) -> (Vec<i64>, u64) {
    use base64::Engine as _;
    let data = line.rsplit(',').next().unwrap();
    let bytes = base64::engine::general_purpose::STANDARD.decode(data).unwrap();
    let plain = miniz_oxide::inflate::decompress_to_vec_zlib(&bytes[8..]).unwrap();
    let highest = u64::from_be_bytes(plain[24..32].try_into().unwrap());
    let mut values = Vec::new();
    let (mut value, mut shift) = (0u64, 0);
    for b in &plain[40..] {
        value |= u64::from(b & 0x7f) << shift;
        shift += 7;
        if b & 0x80 == 0 {
            values.push(i64::try_from(value >> 1).unwrap() ^ -i64::try_from(value & 1).unwrap());
            (value, shift) = (0, 0);
        }
    }
    (values, highest)
}

#[test]
fn an_hdr_log_holds_every_late_value() {
    let run = run();
    let text = exported(&run, Format::HdrHistogram);
    let histograms: Vec<&str> = text.lines().filter(|l| l.starts_with("Tag=")).collect();
    assert_eq!(histograms.len(), run.threads.len() * 2);
    for (line, d) in
        histograms.iter().zip(run.threads.iter().flat_map(|t| [t.wakeup.clone(), t.due()]))
    {
        let (values, highest) = decoded(line);
        let total: i64 = values.iter().filter(|v| **v > 0).sum();
        assert_eq!(u64::try_from(total).unwrap(), d.late.total(), "{line}");
        assert_eq!(Some(highest), d.max_ns.map(i64::unsigned_abs));
    }
}

#[test]
fn the_latest_wake_ups_are_listed_with_their_time_of_day() {
    let mut run = run();
    run.exceedances.clear();
    run.exceedances.push(ExceedanceRecord {
        thread: 1,
        activation: 4_242,
        error_ns: 99_000_000,
        t_ns: 4_341_000_000,
        missed: 98,
    });
    let text = worst::text(&run, 3, tailbound_report::Style { color: Color::Off, width: 200 });
    assert!(text.contains("Time of day and trace clock are unknown"), "{text}");
    let clocks = Clocks {
        monotonic_ns: 1_000_000_000,
        boottime_ns: 2_000_000_000,
        realtime_ns: 1_795_287_536_000_000_000,
    };
    run.events = vec![
        Event { clocks: Some(clocks), ..Event::new(0, WARM_UP_OVER, "") },
        Event::new(1_000_000_000, "load-began", run.header.plan.loads[0].to_string()),
        Event::new(3_000_000_000, "load-paused", run.header.plan.loads[0].to_string()),
    ];
    let all = worst::worst(&run, 3);
    assert_eq!(all.len(), 3);
    assert_eq!((all[0].thread, all[0].activation, all[0].missed), (1, 4_242, Some(98)));
    assert_eq!(all[0].loads, ["memory"], "the other one paused");
    assert!(all[1].error_ns >= all[2].error_ns);
    let text = worst::text(&run, 3, tailbound_report::Style { color: Color::Off, width: 200 });
    assert!(text.contains("2026-11-21 18:59:00.341000"), "{text}");
    assert!(text.contains("5.341000"), "{text}");
    let json = worst::json(&run, 3);
    assert_eq!(json["worst"][0]["boottime_ns"], 6_341_000_000i64);
}

#[test]
fn one_line_says_the_answer() {
    let line = brief(&Analysis::of(&run()));
    assert!(line.starts_with("outcome="), "{line}");
    for key in
        [" n=", " missed=", " p99.9=", " max=", " deadline=100us ", " kernel=6.12.0-rt-amd64 "]
    {
        assert!(line.contains(key), "{key}: {line}");
    }
}

#[test]
fn what_the_source_does_not_say_is_no_zero() {
    let mut run = run();
    for t in &mut run.threads {
        (t.wakeup.min_ns, t.wakeup.max_ns) = (None, None);
        (t.wakeup.sums, t.wakeup.mean_ns) = (None, None);
    }
    let text = exported(&run, Format::Cyclictest);
    for name in ["Min", "Avg", "Max"] {
        assert!(!text.contains(&format!("# {name} Latencies:")), "{name}: {text}");
        assert!(text.contains(&format!("does not say: {name} Latencies")), "{name}: {text}");
    }
    let rows = |text: &str| lines(text).iter().filter(|l| !l.starts_with('#')).count();
    let known = exported(&self::run(), Format::Cyclictest);
    assert!(rows(&text) >= rows(&known), "the rows end where the last bucket ends");
    let log = exported(&run, Format::HdrHistogram);
    assert!(log.contains("wakeup: the greatest value is not known"), "{log}");
}
