// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files read piece by piece: the same run as from memory and as from a naive reader, whatever
//! the pieces; and an honest one when the reading is stopped.
//!
//! Not here: how much memory it takes (`tests/memory.rs`).

use std::io::{self, Read};

use tailbound_core::record::SecondRecord;
use tailbound_core::{Distribution, Histogram, Run};
use tailbound_import::{Format, ImportError, Options, import_from, import_with};

use super::{consistent, has_any};

const INTERVAL_NS: i64 = 100_000;

/// Latencies of a few µs with a tail; the same everywhere.
fn latencies(n: usize) -> Vec<u32> {
    let mut state = 1u64;
    let mut next = move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from(state >> 40).unwrap_or(0)
    };
    (0..n)
        .map(|_| 2000 + next() % 3000 + if next() % 1000 == 0 { next() % 60_000 } else { 0 })
        .collect()
}

/// Gives what it holds in pieces of any length, as pipes do.
struct Ragged<'a>(&'a [u8], usize);

impl Read for Ragged<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.1 = self.1 * 7 % 8191 + 1;
        let n = self.1.min(buffer.len()).min(self.0.len());
        let (now, rest) = self.0.split_at(n);
        buffer[..n].copy_from_slice(now);
        self.0 = rest;
        Ok(n)
    }
}

fn options() -> Options {
    Options { interval_ns: Some(INTERVAL_NS), ..Options::default() }
}

/// Through memory and through a ragged stream; both must be the same.
fn both(format: Format, bytes: &[u8], options: &Options) -> Run {
    let whole = import_with(Some(format), "f", bytes, options).unwrap_or_else(|e| panic!("{e}"));
    let mut source = Ragged(bytes, 11);
    let streamed = import_from(Some(format), "f", &mut source, options, &mut |_| true);
    assert!(streamed.unwrap_or_else(|e| panic!("{e}")) == whole, "{format}");
    let lines = |run: &Run| tailbound_core::runfile::write_run(run, Vec::new()).unwrap_or_default();
    let mut slow = Ragged(bytes, 3);
    let again = import_from(Some(format), "f", &mut slow, options, &mut |_| true);
    assert!(lines(&again.unwrap_or_else(|e| panic!("{e}"))) == lines(&whole), "{format}: lines");
    consistent("stream", &whole);
    whole
}

/// What a reader that knows nothing of pieces makes of it.
fn check(run: &Run, values: &[u32], unit: i64) {
    let mut all = Distribution::default();
    let mut seconds: Vec<SecondRecord> = Vec::new();
    for (k, v) in values.iter().enumerate() {
        let v = i64::from(*v) * unit;
        all.add(v);
        let second = k as u64 * INTERVAL_NS as u64 / 1_000_000_000;
        if seconds.last().is_none_or(|s| s.second < second) {
            let (thread, n, argmax, sum_ns, missed) = (0, 0, 0, 0, 0);
            seconds.push(SecondRecord {
                thread,
                second,
                n,
                max_ns: -1,
                argmax,
                min_ns: v,
                sum_ns,
                missed,
            });
        }
        let s = seconds.last_mut().unwrap_or_else(|| panic!("pushed"));
        (s.n, s.sum_ns, s.min_ns) = (s.n + 1, s.sum_ns + v, s.min_ns.min(v));
        if v > s.max_ns {
            (s.max_ns, s.argmax) = (v, k as u64);
        }
    }
    let got = &run.threads[0].wakeup;
    assert!(got.late == all.late && got.early == all.early, "histogram");
    assert_eq!(
        (got.n, got.min_ns, got.max_ns, got.sums),
        (all.n, all.min_ns, all.max_ns, all.sums)
    );
    assert!(run.seconds == seconds, "seconds");
    let mut blocks = Histogram::new(7);
    run.blocks.iter().for_each(|b| b.late.add_to(&mut blocks));
    assert!(blocks == all.late.coarsened(7), "stretches");
    assert_eq!(run.measured_ns(), INTERVAL_NS * values.len() as i64);
}

#[test]
fn two_million_numbers_in_binary() {
    let values = latencies(2_000_000);
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let run = both(Format::RawU32, &bytes, &options());
    check(&run, &values, 1);
    assert_eq!((run.seconds.len(), run.blocks.len(), run.raw.len()), (200, 200, 0));
    assert!(has_any(&run, &["source-no-missed"]));
    let wide: Vec<u8> = values.iter().flat_map(|v| u64::from(*v).to_le_bytes()).collect();
    let us = Options { unit_ns: Some(1000), ..options() };
    check(&both(Format::RawU64, &wide, &us), &values, 1000);
}

#[test]
fn a_column_of_text_is_the_same_as_its_numbers() {
    let values = latencies(300_000);
    let mut text = String::from("\u{feff}# latency_us\r\n");
    for (k, v) in values.iter().enumerate() {
        // Every way to write a number that people's scripts have.
        text += &match k % 50_000 {
            7 => format!("  {}.{:03} \r\n\n", v / 1000, v % 1000),
            9 => format!("{}e-3\n# a remark\n", v),
            11 => format!("+{}.{:03}000\n", v / 1000, v % 1000),
            _ => format!("{}.{:03}\n", v / 1000, v % 1000),
        };
    }
    let run = both(Format::Column, text.trim_end().as_bytes(), &options());
    check(&run, &values, 1);
    assert_eq!(Format::detect(text.as_bytes()), Ok(Format::Column));
    assert!(!run.raw.is_empty() && run.threads[0].wakeup.resolution_ns == 1);
    let torn = format!("{text}12 13\n");
    let lines = torn.lines().count();
    let got = import_from(None, "f", &mut torn.as_bytes(), &options(), &mut |_| true);
    assert!(
        got.is_err_and(|e| e.to_string().contains(&format!("line {lines}: `12 13` is not one")))
    );
}

/// One record of jitterdebugger.
fn record(thread: u32, wake_ns: i64, late_ns: u64) -> Vec<u8> {
    let (s, ns) = (wake_ns / 1_000_000_000, wake_ns % 1_000_000_000);
    [&thread.to_le_bytes()[..], &s.to_le_bytes(), &ns.to_le_bytes(), &late_ns.to_le_bytes()]
        .concat()
}

#[test]
fn two_threads_of_records_and_what_is_torn_at_their_end() {
    let values = latencies(200_000);
    let bytes: Vec<u8> = values
        .iter()
        .enumerate()
        .flat_map(|(k, v)| {
            let due = 5_000_000_000 + k as i64 * INTERVAL_NS;
            [record(0, due + i64::from(*v), u64::from(*v)), record(3, due + 9, 9)].concat()
        })
        .collect();
    assert_eq!(Format::detect(&bytes), Ok(Format::JitterdebuggerRaw));
    let run = both(Format::JitterdebuggerRaw, &bytes, &Options::default());
    let threads: Vec<_> =
        run.threads.iter().map(|t| (t.thread, t.wakeup.n, t.wakeup.max_ns)).collect();
    let max = values.iter().max().map(|v| i64::from(*v));
    assert_eq!(threads, [(0, 200_000, max), (3, 200_000, Some(9))]);
    assert_eq!(
        (run.seconds.len(), run.blocks.len(), run.header.plan.interval_ns),
        (40, 40, INTERVAL_NS)
    );
    assert!(!run.raw.is_empty() && !has_any(&run, &["source-cut-off", "source-samples-lost"]));
    let torn = both(Format::JitterdebuggerRaw, &bytes[..bytes.len() - 5], &Options::default());
    assert!(has_any(&torn, &["source-cut-off"]) && torn.end.is_none());
    let mut bad = bytes;
    bad[28 * 300_001 + 16] = 0xff;
    let got = import_from(None, "f", &mut bad.as_slice(), &Options::default(), &mut |_| true);
    let text = got.map(|_| ()).map_err(|e| e.to_string());
    assert!(text.as_ref().is_err_and(|e| e.contains("byte 8400028: not a record")), "{text:?}");
}

#[test]
fn a_stopped_import_is_what_was_read_and_says_so() {
    let bytes: Vec<u8> = latencies(1_000_000).iter().flat_map(|v| v.to_le_bytes()).collect();
    let mut source = &bytes[..];
    let stop = &mut |read: u64| read < 400_000;
    let run = import_from(Some(Format::RawU32), "f", &mut source, &options(), stop);
    let run = run.unwrap_or_else(|e| panic!("{e}"));
    let n = run.threads[0].wakeup.n;
    assert!(
        (100_000..1_000_000).contains(&n) && run.seconds.iter().map(|s| s.n).sum::<u64>() == n,
        "{n}"
    );
    assert!(has_any(&run, &["source-cut-off"]));
    assert_eq!(run.end.map(|e| e.reason), Some(tailbound_core::EndReason::Interrupted));
}

/// Files that nobody wrote a measurement into: nothing of them may look like one.
#[test]
fn bytes_that_are_no_measurement_become_no_run() {
    let mut state = 7u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        u8::try_from(state >> 56).unwrap_or(0)
    };
    let noise: Vec<u8> = (0..200_000).map(|_| random()).collect();
    let text = "Lorem ipsum dolor sit amet, 12345 67890\n".repeat(3000).into_bytes();
    let digits = "1234\n".repeat(30_000).into_bytes();
    let files = [
        ("zeros", vec![0; 280_000]),
        ("ones", vec![0xff; 280_000]),
        ("one byte", vec![1; 280_000]),
        ("noise", noise),
        ("text", text),
        ("digits", digits),
    ];
    let raw = [Format::RawU32, Format::RawU64, Format::JitterdebuggerRaw];
    for (what, bytes) in &files {
        for format in raw {
            for unit_ns in [None, Some(1000)] {
                let options = Options { unit_ns, ..options() };
                let got = import_with(Some(format), what, bytes, &options);
                let e = got.map(|_| ()).expect_err(what).to_string();
                assert!(e.contains("byte "), "{what} as {format}: {e}");
            }
        }
        assert_ne!(Format::detect(bytes), Ok(Format::JitterdebuggerRaw), "{what}");
        let us = Options { unit_ns: Some(1000), ..Options::default() };
        let column = import_with(Some(Format::Column), what, bytes, &us);
        let doubted = column.as_ref().is_ok_and(|run| has_any(run, &["source-constant"]));
        assert!(column.is_err() || (*what == "digits" && doubted), "{what}");
    }
    let zeros = "0\n".repeat(5000);
    let us = Options { unit_ns: Some(1000), ..Options::default() };
    let run = import_with(Some(Format::Column), "f", zeros.as_bytes(), &us);
    assert!(run.is_ok_and(|run| has_any(&run, &["source-constant"])));
}

#[test]
fn records_that_jitterdebugger_cannot_have_written_are_refused_with_their_place() {
    let good = |n: i64| -> Vec<u8> {
        (0..n).flat_map(|k| record(0, 5_000_000_000 + k * INTERVAL_NS + 9, 9)).collect()
    };
    let us = Options { unit_ns: Some(1), ..Options::default() };
    let read = |bytes: &[u8]| import_with(Some(Format::JitterdebuggerRaw), "f", bytes, &us);
    assert!(read(&good(40)).is_ok());
    for (bad, says) in [
        (record(0, 0, 9), "byte 1124: a wake-up at time 0"),
        (
            record(0, 5_000_000_000 + 39 * INTERVAL_NS + 9, 9),
            "byte 1124: thread 0 woke up at the same ns",
        ),
        (record(0, 6_000_000_000, 6_000_000_001), "byte 1140: the latency is longer than"),
        (record(9000, 6_000_000_000, 9), "byte 1120: not a record"),
    ] {
        let e = read(&[good(40), bad].concat()).map(|_| ()).expect_err(says).to_string();
        assert!(e.contains(says), "{e}");
    }
}

#[test]
fn what_cannot_be_read_is_refused_with_its_place() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the disk is gone"))
        }
    }
    let says = |got: Result<Run, ImportError>, words: &str| {
        let text = got.map(|_| ()).map_err(|e| e.to_string());
        assert!(text.as_ref().is_err_and(|e| e.contains(words)), "{words}: {text:?}");
    };
    let raw = Some(Format::RawU32);
    says(import_from(None, "f", &mut Broken, &options(), &mut |_| true), "the disk is gone");
    let ones = vec![1u8; 300_000];
    let mut late = ones.as_slice().chain(Broken);
    says(import_from(raw, "f", &mut late, &options(), &mut |_| true), "the disk is gone");
    says(import_with(raw, "f", b"", &options()), "there is no number");
    says(import_with(Some(Format::RawU64), "f", &[0xff; 16], &options()), "byte 0: the number");
    says(import_with(None, "f", &[0xff, 0, 0xff, 0], &options()), "--format raw-u32");
    let slow = Options { interval_ns: Some(1_000_000_000), ..Options::default() };
    let few: Vec<u8> = (0..9 << 20).map(|i| u8::from(i % 4 == 0) + u8::from(i % 28 == 0)).collect();
    says(import_with(raw, "f", &few, &slow), "seconds");
}
