// SPDX-License-Identifier: MIT OR Apache-2.0
//! export, --brief, --worst, packed files: a run where other tools expect it.

use std::io::Write as _;
use std::path::Path;

use proptest::prelude::*;
use tailbound_core::Context;
use tailbound_core::record::ThreadRecord;
use tailbound_report::export::{Exported, Format, export};
use tailbound_stats::Analysis;

use crate::{call, folder, read, status, stderr, stdout, tailbound};

const RUN: &[u8] = include_bytes!("../hostile/data/run.tailbound.jsonl");

fn measured(folder: &Path) {
    let words = "run -l 1500 -d 10s -q -o r.tailbound.jsonl --warm-up 10ms --load none --brief";
    let out = call(folder, &words.split(' ').collect::<Vec<_>>());
    let line = stdout(&out);
    assert_eq!(line.lines().count(), 1, "{line}");
    assert!(line.starts_with("outcome="), "{line}");
}

#[test]
fn a_run_leaves_in_every_format_and_comes_back_from_that_of_cyclictest() {
    let folder = folder();
    measured(folder.path());
    for (name, ..) in tailbound_report::export::FORMATS {
        let out = call(folder.path(), &["export", "r.tailbound.jsonl", "--as", name, "-o", name]);
        assert_eq!(status(&out), 0, "{name}: {}", stderr(&out));
        assert!(folder.path().join(name).metadata().unwrap().len() > 0, "{name}");
    }
    let again = call(folder.path(), &["export", "r.tailbound.jsonl", "--as", "csv", "-o", "csv"]);
    assert_eq!(status(&again), 2, "an existing file is kept: {}", stderr(&again));
    let words = ["import", "cyclictest", "--unit", "us", "-o", "c.tailbound.jsonl"];
    let out = call(folder.path(), &words);
    assert_eq!(status(&out), 0, "{}", stderr(&out));
}

/// A quiet machine, a slow one, one that stood still, one whose latest is at the end of the rows.
fn latencies() -> impl Strategy<Value = Vec<i64>> {
    let about = prop_oneof![0..200_000i64, 0..12_000_000i64, 9_900_000..10_100_000i64];
    let usual = (about, 1..3_000_000i64)
        .prop_flat_map(|(about, width)| prop::collection::vec(about..about + width, 1..400));
    let rare = prop::collection::vec(prop_oneof![-20_000..0i64, 0..40_000_000i64], 0..4);
    (usual, rare).prop_map(|(usual, rare)| usual.into_iter().chain(rare).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_histogram_in_cyclictests_format_comes_back(threads in prop::collection::vec(latencies(), 1..4)) {
        let ours: Vec<_> = threads.iter().map(|values| {
            let mut wakeup = tailbound_core::Distribution::default();
            values.iter().for_each(|ns| wakeup.add(*ns));
            wakeup
        }).collect();
        let mut run = tailbound_core::runfile::read_run(RUN).unwrap();
        run.threads = (0..).zip(&ours).map(|(thread, wakeup)| ThreadRecord {
            thread,
            context: Context::User,
            wakeup: wakeup.clone(),
            ..ThreadRecord::default()
        }).collect();
        let Exported::Text(text) = export(&Analysis::of(&run), Format::Cyclictest) else { panic!() };
        let us = tailbound_import::Options { unit_ns: Some(1000), ..Default::default() };
        let theirs = tailbound_import::import_with(None, "h", text.as_bytes(), &us).unwrap();
        let against = ["source-abridged", "source-inconsistent", "source-cut-off"];
        let doubts: Vec<_> = theirs.findings.iter().filter(|f| against.contains(&&*f.id)).collect();
        prop_assert!(doubts.is_empty(), "{doubts:?}");
        for (a, b) in ours.iter().zip(&theirs.threads) {
            prop_assert_eq!(a.n, b.wakeup.n);
            let us = |ns: Option<i64>| ns.map(|ns| ns.max(0) / 1000);
            prop_assert_eq!(us(a.max_ns), us(b.wakeup.max_ns));
            prop_assert_eq!(us(a.min_ns), us(b.wakeup.min_ns));
        }
    }
}

#[test]
fn the_latest_wake_ups_have_a_time_of_day_and_a_trace_clock() {
    let folder = folder();
    measured(folder.path());
    let out = call(folder.path(), &["show", "--worst", "3", "--json", "r.tailbound.jsonl"]);
    let json: serde_json::Value = serde_json::from_str(&stdout(&out)).unwrap();
    let worst = json["worst"].as_array().unwrap();
    assert!(!worst.is_empty(), "{json}");
    let run = read(&folder.path().join("r.tailbound.jsonl"));
    let latest = run.threads.iter().filter_map(|t| t.wakeup.max_ns).max();
    assert_eq!(worst[0]["error_ns"].as_i64(), latest, "the latest of the run is known");
    let began = run.events.iter().find_map(|e| e.clocks).unwrap();
    for late in worst {
        let after = late["monotonic_ns"].as_i64().unwrap() - began.monotonic_ns;
        assert_eq!(Some(after), late["t_ns"].as_i64());
        let day = late["realtime_ns"].as_i64().unwrap();
        let apart = tailbound_sys::clock::now_ns(tailbound_sys::clock::CLOCK_REALTIME) - day;
        assert!((0..3_600_000_000_000).contains(&apart), "within this hour: {apart}");
    }
    let text = stdout(&call(folder.path(), &["show", "--worst", "3", "r.tailbound.jsonl"]));
    assert!(text.contains("time of day (UTC)") && text.contains("mono clock"), "{text}");
}

#[test]
fn a_packed_run_is_read_like_a_plain_one() {
    let folder = folder();
    measured(folder.path());
    let plain = std::fs::read(folder.path().join("r.tailbound.jsonl")).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&plain).unwrap();
    let zstd = ruzstd::encoding::compress_to_vec(
        plain.as_slice(),
        ruzstd::encoding::CompressionLevel::Fastest,
    );
    let shown = stdout(&call(folder.path(), &["show", "--json", "r.tailbound.jsonl"]));
    for (name, bytes) in
        [("r.tailbound.jsonl.gz", gzip.finish().unwrap()), ("r.tailbound.jsonl.zst", zstd)]
    {
        std::fs::write(folder.path().join(name), &bytes).unwrap();
        let out = call(folder.path(), &["show", "--json", name]);
        assert_eq!(stdout(&out), shown, "{name}: {}", stderr(&out));
        std::fs::write(folder.path().join(name), &bytes[..bytes.len() / 2]).unwrap();
        let out = call(folder.path(), &["show", name]);
        assert!(status(&out) == 2 && stderr(&out).contains(name), "cut off: {}", stderr(&out));
    }
}

#[test]
fn an_answer_is_as_wide_as_columns_says() {
    let folder = folder();
    measured(folder.path());
    for columns in ["60", "140"] {
        let out = tailbound()
            .args(["show", "r.tailbound.jsonl"])
            .current_dir(folder.path())
            .env("COLUMNS", columns)
            .output()
            .unwrap();
        let text = stdout(&out);
        let widest = text
            .lines()
            // Commands stay in one piece.
            .filter(|l| !l.starts_with("Repeat:") && !l.starts_with("Next:"))
            .map(|l| l.chars().count())
            .max()
            .unwrap();
        let limit: usize = columns.parse().unwrap();
        assert!(widest <= limit, "{widest} of {limit}: {text}");
        assert!(columns == "60" || widest > 80, "{widest}: {text}");
    }
}

#[test]
fn measure_says_where_its_file_is() {
    let folder = folder();
    let out = call(
        folder.path(),
        &["measure", "cyclic", "-l", "100", "-q", "--warm-up", "10ms", "-o", "m.tailbound.jsonl"],
    );
    let text = stdout(&out);
    assert!(text.contains("Run file") && text.contains("m.tailbound.jsonl"), "{text}");
}
