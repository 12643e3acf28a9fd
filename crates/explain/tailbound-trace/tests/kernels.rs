// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the parsers make of real kernels' pages, held against the kernel's own text of the
//! same buffer.
//!
//! Where the data came from: `data/*/README.md`.

use std::fs;
use std::path::PathBuf;

use tailbound_trace::{Decoder, EventFormat, PageLayout, Record, TimerlatContext};

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/linux-6.12-rt").join(name)
}

fn text(name: &str) -> String {
    fs::read_to_string(data(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn format(name: &str) -> EventFormat {
    EventFormat::parse(&text(&format!("{name}.format"))).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// Every understood record of a page, with its time.
fn records(page: &str, kinds: &[&str]) -> Vec<(u64, Record)> {
    let layout = PageLayout::parse(&text("header_page")).expect("the kernel's own");
    let formats: Vec<_> = kinds.iter().map(|k| format(k)).collect();
    let decoder = Decoder::new(&formats).expect("all fields are there");
    let bytes = fs::read(data(page)).expect("the page");
    assert_eq!(bytes.len(), layout.size);
    let mut out = Vec::new();
    let held = layout.records(&bytes, |t, record| {
        out.extend(decoder.decode(record).map(|(_, r)| (t, r)));
    });
    let held = held.expect("a whole page");
    assert_eq!((held.records, held.lost, held.lost_uncounted), (out.len() as u64, 0, false));
    out
}

#[test]
fn timerlat_is_what_the_kernel_prints() {
    let seen = records("timerlat.page", &["timerlat"]);
    let printed: Vec<(u64, TimerlatContext, i64)> = text("timerlat.txt")
        .lines()
        .filter(|l| l.contains("timer_latency"))
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let at = words.iter().position(|w| *w == "context").expect("a context");
            let time: f64 = words[at - 2].trim_end_matches(':').parse().expect("a time");
            let context = match words[at + 1] {
                "irq" => TimerlatContext::Irq,
                "thread" => TimerlatContext::Thread,
                other => panic!("{other}"),
            };
            ((time * 1e6).round() as u64, context, words[at + 3].parse().expect("ns"))
        })
        .collect();
    assert!(printed.len() > 40 && seen.len() >= printed.len());
    for ((t_ns, record), (t_us, context, latency_ns)) in seen.iter().zip(printed) {
        assert_eq!(*record, Record::Timerlat { context, latency_ns });
        assert!((t_ns / 1000).abs_diff(t_us) <= 1, "{t_ns} ns and {t_us} µs");
    }
}

#[test]
fn osnoise_is_what_the_kernel_prints() {
    let seen = records("osnoise.page", &["osnoise"]);
    let printed: Vec<Vec<u64>> = text("osnoise.txt")
        .lines()
        .filter_map(|l| l.split_once("]").filter(|_| !l.starts_with('#')))
        .map(|(_, rest)| {
            let numbers = rest.split_whitespace().skip(2).filter_map(|w| w.parse().ok());
            numbers.collect()
        })
        .collect();
    assert_eq!(seen.len(), printed.len());
    for ((_, record), p) in seen.iter().zip(&printed) {
        let Record::Osnoise { noise_ns, runtime_ns, single_ns_max, sources } = record else {
            panic!("{record:?}");
        };
        // The share in percent has a point and is left out.
        let us = |ns: &i64| ns.unsigned_abs() / 1000;
        let mut ours = vec![us(runtime_ns), us(noise_ns), us(single_ns_max)];
        ours.extend(sources);
        assert_eq!(&ours, p);
    }
}

#[test]
fn every_event_that_is_used_has_its_fields() {
    let kinds = ["timerlat", "osnoise", "hwlat", "hrtimer_start", "hrtimer_expire_entry"];
    let formats: Vec<_> = kinds.into_iter().chain(["sched_switch"]).map(format).collect();
    assert!(Decoder::new(&formats).is_ok());
    // A kernel that drops a field is told apart from one that has no samples.
    let without = text("timerlat.format").replace("timer_latency;", "other;");
    let formats = [EventFormat::parse(&without).expect("still a format")];
    assert!(Decoder::new(&formats).is_err_and(|e| e.to_string().contains("timer_latency")));
}
