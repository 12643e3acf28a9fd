// SPDX-License-Identifier: MIT OR Apache-2.0
//! What holds for every run, whatever it meets.
//!
//! Context: COLD, tests only. Units: ns.
//! `TAILBOUND_SIMULATE=N` plays N seeds instead of the usual number; `TAILBOUND_SEED=N` plays that one
//! alone and prints its fate.

use std::collections::BTreeSet;
use std::io::Cursor;
use std::sync::atomic::{AtomicU64, Ordering};

use tailbound_core::finding::Impact;
use tailbound_core::runfile::read_run;
use tailbound_core::{EndReason, Outcome, Run, ThreadEnd};

use super::fate::Fate;
use super::stage::Wakes;
use super::{Played, play};
use crate::view::SamplesTo;

const SEEDS: u64 = 1200;

/// What a patient observer counts: the lateness of each wake-up, and of each activation that fell due
/// before the thread had woken for an earlier one.
fn observed(wakes: &Wakes, fate: &Fate) -> (Vec<i64>, Vec<i64>) {
    let (mut late, mut missed) = (Vec::new(), Vec::new());
    let Some((first, _)) = wakes.first().copied() else { return (late, missed) };
    let last = first + fate.interval_ns * (i64::try_from(fate.activations).unwrap_or(0) - 1);
    for (due, woken) in wakes {
        late.push(woken - due);
        let mut next = due + fate.interval_ns;
        while next <= *woken && next <= last {
            missed.push(woken - next);
            next += fate.interval_ns;
        }
    }
    (late, missed)
}

/// Fails unless `run` tells of what happened, no more and no less.
fn tells_the_truth(run: &Run, fate: &Fate, wakes: &[Wakes]) {
    assert_eq!(run.threads.len(), wakes.len(), "a record for each thread");
    let mut beyond = 0;
    for (record, wakes) in run.threads.iter().zip(wakes) {
        let (late, missed) = observed(wakes, fate);
        let limit = fate.deadline_ns.unwrap_or(i64::MAX);
        beyond += late.iter().chain(&missed).filter(|l| **l > limit).count();
        let n = |list: &Vec<i64>| list.len() as u64;
        assert_eq!((record.wakeup.n, record.missed.n), (n(&late), n(&missed)), "counts");
        assert_eq!(record.wakeup.max_ns, late.iter().max().copied(), "the latest wake-up");
        assert_eq!(record.missed.max_ns, missed.iter().max().copied(), "the latest missed");
        let accounted = record.wakeup.n + record.missed.n;
        match &record.ended {
            ThreadEnd::Complete => assert_eq!(accounted, fate.activations),
            ThreadEnd::Stopped | ThreadEnd::Other(_) => assert!(accounted <= fate.activations),
            other => panic!("a thread that has ended is {other:?}"),
        }
        if record.dropped.is_empty() {
            let seconds = run.seconds.iter().filter(|s| s.thread == record.thread);
            let in_seconds: u64 = seconds.map(|s| s.n).sum();
            assert_eq!(in_seconds, record.wakeup.n, "every wake-up is in the record of a second");
        }
        if fate.raw && fate.samples() == SamplesTo::File && record.dropped.is_empty() {
            let raw: usize = run
                .raw
                .iter()
                .filter(|r| r.thread == record.thread)
                .map(|r| usize::try_from(r.n).unwrap_or(0))
                .sum();
            assert_eq!(raw, late.len(), "every sample is in the file");
        }
    }
    if let (Some(verdict), Some(_)) = (&run.verdict, fate.deadline_ns) {
        assert_eq!(verdict.beyond, beyond as u64, "{}", verdict.sentence);
    }
}

/// Fails unless the answer follows from what happened.
fn answers(run: &Run, fate: &Fate) {
    let Some(verdict) = &run.verdict else { panic!("there is no verdict") };
    let outcome = verdict.outcome;
    let has = |impact| run.findings.iter().any(|f| f.impact == impact);
    let complete = run.threads.iter().all(|t| t.ended == ThreadEnd::Complete);
    let reason = run.end_reason();
    assert_eq!(reason == EndReason::Complete, complete, "the last line says how it ended");
    let failed = run.threads.iter().any(|t| matches!(t.ended, ThreadEnd::Other(_)));
    assert!(!failed || outcome == Outcome::Unfit, "a thread that failed forbids any answer");
    let unfit = has(Impact::Unfit);
    let sentence = &verdict.sentence;
    let expected = match fate.deadline_ns {
        _ if unfit => Outcome::Unfit,
        _ if verdict.due == 0 => Outcome::Undecided,
        None => Outcome::Measured,
        Some(_) if fate.rule => return,
        Some(_) if verdict.beyond > 0 => Outcome::NotMet,
        Some(_) if !complete || has(Impact::Doubt) => Outcome::Undecided,
        Some(_) => Outcome::Met,
    };
    assert_eq!(outcome, expected, "{sentence}");
    let died = fate.load.as_ref().is_some_and(|l| l.dies_ns.is_some());
    assert!(died || !has(Impact::Doubt), "nothing gave reason to doubt: {:?}", run.findings);
}

/// A file that was cut off never says more than it holds. Only its last line may be missing where it
/// holds a whole measurement: benchmarks come after the verdict.
fn a_cut_file_is_a_shorter_run(bytes: &[u8], fate: &Fate, wakes: &[Wakes]) {
    let mut run = read_run(Cursor::new(bytes)).unwrap_or_else(|e| panic!("a cut file: {e}"));
    tailbound_stats::judge(&mut run);
    let Some(verdict) = &run.verdict else { return };
    if verdict.outcome == Outcome::Met {
        let whole = run.threads.iter().all(|t| t.ended == ThreadEnd::Complete);
        assert!(whole, "a cut file: {}", verdict.sentence);
        tells_the_truth(&run, fate, wakes);
    }
    if let Some(limit) = fate.deadline_ns {
        let late = run.exceedances.iter().filter(|e| e.error_ns > limit).count() as u64;
        assert!(verdict.beyond >= late, "exceedances in the file count: {}", verdict.sentence);
    }
}

/// How it ended, in words.
fn holds(fate: &Fate) -> String {
    let Played { result, wakes, memory, shown } = play(fate);
    let (bytes, placed, finished, cut, elsewhere) = memory.with(|content| {
        (
            content.bytes.clone(),
            content.placed,
            content.finished,
            content.at_power_cut.take(),
            content.elsewhere.take(),
        )
    });
    if let Some(cut) = cut {
        a_cut_file_is_a_shorter_run(&cut, fate, &wakes);
        // The last block of the disk may be torn.
        let torn = cut.len() - fate.random(99).below(cut.len().min(4096) / 2 + 1);
        if let Some(torn) = cut.get(..torn).filter(|t| t.contains(&b'\n')) {
            a_cut_file_is_a_shorter_run(torn, fate, &wakes);
        }
    }
    match result {
        Ok((run, path)) => {
            assert!(path.is_some() && placed && finished, "the file is there");
            let read = read_run(Cursor::new(&bytes)).unwrap_or_else(|e| panic!("its file: {e}"));
            assert!(
                !read.findings.iter().any(|f| f.id.starts_with("file-")),
                "{:?}",
                read.findings
            );
            assert_eq!(
                read.verdict.as_ref().map(|v| v.outcome),
                run.verdict.as_ref().map(|v| v.outcome)
            );
            tells_the_truth(&run, fate, &wakes);
            viewer_has_all(&run, fate, &wakes, &shown);
            answers(&run, fate);
            let outcome = run.verdict.map_or(String::new(), |v| v.outcome.to_string());
            format!("{outcome}, {}", run.end.map_or(String::new(), |e| e.reason.to_string()))
        }
        Err(e) => {
            let bad = fate.disk_bytes.is_some() || fate.bad_block.is_some() || fate.nameless;
            assert!(bad, "nothing was wrong: {e}");
            assert_eq!(e.kind(), tailbound_core::FailureKind::Cannot);
            assert!(e.to_string().contains("was saved as"), "{e}");
            let saved = elsewhere.unwrap_or_else(|| panic!("nothing was saved: {e}"));
            let run = read_run(Cursor::new(saved)).unwrap_or_else(|e| panic!("elsewhere: {e}"));
            tells_the_truth_elsewhere(&run, fate, &wakes);
            if placed && bytes.contains(&b'\n') {
                a_cut_file_is_a_shorter_run(&bytes, fate, &wakes);
            }
            "saved elsewhere".to_owned()
        }
    }
}

/// A viewer of samples has every wake-up in its order, and the file has none.
fn viewer_has_all(run: &Run, fate: &Fate, wakes: &[Wakes], shown: &[Vec<i64>]) {
    for ((record, wakes), shown) in run.threads.iter().zip(wakes).zip(shown) {
        match fate.samples() {
            SamplesTo::File => assert_eq!(shown.len(), 0),
            SamplesTo::Viewer if record.dropped.is_empty() => {
                assert_eq!(*shown, observed(wakes, fate).0, "every sample is shown");
            }
            SamplesTo::Viewer => {}
        }
    }
    assert!(fate.samples() == SamplesTo::File || run.raw.is_empty());
}

/// What was only in the first file is missing; counts and extremes are not.
fn tells_the_truth_elsewhere(run: &Run, fate: &Fate, wakes: &[Wakes]) {
    let without_raw = Fate { raw: false, ..fate.clone() };
    tells_the_truth(run, &without_raw, wakes);
}

#[test]
fn every_run_tells_the_truth_whatever_it_meets() {
    let number = |name| std::env::var(name).ok().and_then(|n| n.parse::<u64>().ok());
    let one = number("TAILBOUND_SEED");
    let all = one.map_or(1..number("TAILBOUND_SIMULATE").unwrap_or(SEEDS) + 1, |n| n..n + 1);
    let next = AtomicU64::new(all.start);
    let play_on = || {
        let mut ends = BTreeSet::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= all.end {
                return ends;
            }
            let fate = Fate::of(seed);
            let held = std::panic::catch_unwind(|| holds(&fate));
            let end =
                held.unwrap_or_else(|_| panic!("TAILBOUND_SEED={seed} repeats it: {fate:#?}"));
            ends.insert(end);
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let ends: BTreeSet<String> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..workers).map(|_| scope.spawn(play_on)).collect();
        all.into_iter().flat_map(|t| t.join().expect("its panic says why")).collect()
    });
    if one.is_none() {
        // What never happens is not tested.
        let some = |end: &str| ends.iter().any(|e| e == end);
        for end in [
            "met, complete",
            "not-met, complete",
            "measured, complete",
            "unfit, complete",
            "unfit, failed",
            "undecided, complete",
            "undecided, interrupted",
            "not-met, interrupted",
            "not-met, rule",
            "undecided, rule",
            "saved elsewhere",
        ] {
            assert!(some(end), "no run ended `{end}`: {ends:?}");
        }
    }
}

#[test]
fn a_seed_is_one_run() {
    for seed in [3, 17, 40] {
        let fate = Fate { disk_bytes: None, bad_block: None, nameless: false, ..Fate::of(seed) };
        let text = || play(&fate).memory.with(|content| content.bytes.clone());
        assert!(text() == text(), "seed {seed}");
    }
}
