// SPDX-License-Identifier: MIT OR Apache-2.0
//! The importers against what tools really wrote: figures, what was lost, and hostile bytes.
//!
//! One binary; a module a theme. Not here: unit tests of the helpers.

mod altered;
mod capture;
mod extremes;
mod field;
mod figures;
mod foreign;
mod hostile;
mod live;
mod lost;
mod newer;
mod posted;
mod several;
mod stimulus;
mod stream;
mod variants;

use std::path::PathBuf;

use tailbound_core::Run;
use tailbound_import::{Format, Options, import_with};

/// Where the fixtures are.
fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// The bytes of a fixture.
fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(folder().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// A fixture, which must be known by its content as `format`.
fn run(format: Format, name: &str) -> Run {
    run_with(format, name, &Options::default())
}

fn run_with(format: Format, name: &str, options: &Options) -> Run {
    let bytes = bytes(name);
    assert_eq!(Format::detect(&bytes), Ok(format), "{name}");
    let run = import_with(None, name, &bytes, options).unwrap_or_else(|e| panic!("{e}"));
    consistent(name, &run);
    run
}

/// What holds for every imported run.
fn consistent(name: &str, run: &Run) {
    let source = run.header.source.as_ref();
    assert!(source.is_some_and(|s| !s.lost.is_empty()), "{name}: nothing was lost?");
    for sentence in source.iter().flat_map(|s| &s.lost) {
        assert!(sentence.ends_with('.') && sentence.len() > 20, "{name}: {sentence}");
    }
    for t in &run.threads {
        let d = &t.wakeup;
        let binned = d.late.total() + d.early.total();
        assert_eq!(d.n, binned + d.unbinned, "{name}: thread {}", t.thread);
        assert!(
            d.max_ns.is_none() || d.min_ns <= d.max_ns,
            "{name}: {:?} {:?}",
            d.min_ns,
            d.max_ns
        );
        assert!(d.resolution_ns > 0, "{name}");
        assert_eq!(
            d.unbinned > 0,
            has_any(run, &["source-lost-tail", "source-no-histogram", "source-abridged"])
                && d.unbinned > 0
        );
    }
    // It survives the run file.
    let mut file = tailbound_core::runfile::write_run(run, Vec::new()).unwrap_or_default();
    // Those that were cut off have no end that could be missed.
    if run.end.is_some() && file.len() < 400_000 {
        altered::every_change_is_noticed(name, &file);
    }
    let back =
        tailbound_core::runfile::read_run(&file[..]).unwrap_or_else(|e| panic!("{name}: {e}"));
    // Compared without printing: a histogram has 25,600 buckets.
    assert!(back.header == run.header, "{name}: header");
    for (a, b) in back.threads.iter().zip(&run.threads) {
        let told = |d: &tailbound_core::Distribution| {
            (
                d.n,
                d.min_ns,
                d.max_ns,
                d.sums,
                d.mean_ns,
                d.over_range,
                d.unbinned,
                d.unbinned_from_ns,
            )
        };
        assert_eq!(told(&a.wakeup), told(&b.wakeup), "{name}");
        assert!(a == b, "{name}: thread {}", a.thread);
    }
    assert_eq!(back.findings, run.findings, "{name}: findings");
    assert!(back.seconds == run.seconds && back.raw == run.raw, "{name}: records");
    // And our own reader passes it through.
    if run.end.is_some() {
        let own =
            import_with(None, name, &file, &Options::default()).unwrap_or_else(|e| panic!("{e}"));
        assert!(own.threads == run.threads, "{name}");
    }
    file.truncate(file.len() / 2);
    let _ = import_with(None, name, &file, &Options::default());
}

fn has(run: &Run, id: &str) -> bool {
    run.findings.iter().any(|f| f.id == id)
}

fn has_any(run: &Run, ids: &[&str]) -> bool {
    ids.iter().any(|id| has(run, id))
}

fn reports_loss(run: &Run, words: &str) -> bool {
    run.header.source.iter().flat_map(|s| &s.lost).any(|l| l.contains(words))
}
