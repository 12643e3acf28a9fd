// SPDX-License-Identifier: MIT OR Apache-2.0
//! Moving statistics against a recomputation from the values themselves.
//!
//! Units: ns.

use proptest::prelude::*;
use tailbound_core::record::WindowRecord;
use tailbound_core::{Histogram, Sums};
use tailbound_stats::windows::emit_every_s;
use tailbound_stats::{Moments, Windows};

/// Cumulative counters, as a reader sees them.
struct Counters {
    late: Histogram,
    early: Histogram,
    sums: Sums,
}

impl Counters {
    fn new() -> Self {
        Self { late: Histogram::new(10), early: Histogram::new(7), sums: Sums::default() }
    }
    fn add(&mut self, values: &[i64]) {
        for v in values {
            self.sums.add(*v);
            let side = if *v < 0 { &mut self.early } else { &mut self.late };
            side.add(v.unsigned_abs(), 1);
        }
    }
    fn push(&self, windows: &mut Windows, second: u64, of_it: &[i64]) -> Vec<WindowRecord> {
        let extremes = of_it.iter().min().copied().zip(of_it.iter().max().copied());
        windows.push(second, &self.late, &self.sums, &self.early, extremes)
    }
}

fn check(record: &WindowRecord, values: &[i64]) {
    let value = |name: &str| record.values.get(name).copied();
    assert_eq!(record.n, values.len() as u64);
    let mut sums = Sums::default();
    values.iter().for_each(|v| sums.add(*v));
    let m = Moments::of(&sums);
    for (name, want) in [
        ("mean", m.mean_ns),
        ("sd", m.sd_ns),
        ("skewness", m.skewness),
        ("kurtosis", m.kurtosis),
        ("min", values.iter().min().map(|v| *v as f64)),
        ("max", values.iter().max().map(|v| *v as f64)),
    ] {
        assert_eq!(value(name), want, "{name} is exact");
    }
    assert_eq!(value("p50").is_some(), values.len() >= 20);
    if let Some(p50) = value("p50") {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        let want = sorted[values.len().div_ceil(2) - 1] as f64;
        assert!((p50 - want).abs() <= 1.0 + want.abs() / 128.0, "{p50} is not {want}");
    }
}

proptest! {
    #[test]
    fn every_window_equals_its_recomputation(
        seconds in prop::collection::vec(
            prop::collection::vec(-50_000i64..3_000_000, 0..40), 1..50),
    ) {
        let mut windows = Windows::new(7, &[1, 10, 60]);
        let mut counters = Counters::new();
        for (i, of_it) in seconds.iter().enumerate() {
            counters.add(of_it);
            let second = i as u64;
            let written = counters.push(&mut windows, second, of_it);
            let lengths: Vec<u32> = written.iter().map(|r| r.window_s).collect();
            let due = |w: u32| second + 1 >= u64::from(w) && (second + 1).is_multiple_of(emit_every_s(w));
            let want: Vec<u32> = [1, 10, 60].into_iter().filter(|w| due(*w)).collect();
            prop_assert_eq!(lengths, want);
            for record in &written {
                prop_assert_eq!((record.thread, record.second), (7, second));
                let from = i + 1 - record.window_s as usize;
                check(record, &seconds[from..=i].concat());
            }
            let ten = windows.current(10);
            prop_assert_eq!(ten.is_some(), i >= 9);
            if let Some(record) = ten {
                check(&record, &seconds[i - 9..=i].concat());
            }
        }
    }
}

#[test]
fn gaps_and_repeats_are_not_papered_over() {
    let mut windows = Windows::new(0, &[1, 10]);
    let mut counters = Counters::new();
    let one = [1000i64, 2000];
    for second in 0..10 {
        counters.add(&one);
        counters.push(&mut windows, second, &one);
    }
    assert!(counters.push(&mut windows, 9, &one).is_empty(), "handed over before");
    // The reader was late: seconds 10 to 13 come at once.
    counters.add(&[5000; 8]);
    let written = counters.push(&mut windows, 13, &[5000]);
    let (lengths, n): (Vec<u32>, Vec<u64>) = written.iter().map(|r| (r.window_s, r.n)).unzip();
    assert_eq!((lengths, n), (vec![], vec![]), "no boundary 1 s back, and 10 s are not due");
    assert_eq!(windows.current(1), None);
    assert_eq!(windows.current(10).map(|r| r.n), Some(6 * 2 + 8), "the boundary at 4 s exists");
    assert_eq!(windows.current(60), None, "not asked for");
    // Without the extremes of a second that had values, the window does not claim any.
    counters.add(&one);
    let written = windows.push(14, &counters.late, &counters.sums, &counters.early, None);
    assert!(written.iter().all(|r| r.n == 0 || !r.values.contains_key("max")), "{written:?}");
    assert_eq!(written.len(), 2);
}

#[test]
fn an_endless_run_keeps_no_more_than_its_longest_window() {
    let mut windows = Windows::new(0, &[1, 60]);
    let mut counters = Counters::new();
    for second in 0..300 {
        counters.add(&[100_000]);
        counters.push(&mut windows, second, &[100_000]);
    }
    assert_eq!(windows.current(60).map(|r| r.n), Some(60));
    let held = format!("{windows:?}").matches("Delta {").count();
    assert_eq!(held, 60);
}
