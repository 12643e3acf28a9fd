// SPDX-License-Identifier: MIT OR Apache-2.0
//! The statement of a run: answered where it can be, refused with every reason where not.
//!
//! Units: ns.

use tailbound_core::{Distribution, Outcome};
use tailbound_stats::bound::{BlockMaxima, Cause, Settings, bound, outcome};
use tailbound_stats::random::Random;

/// A calm run: each second's latest is exponential above 50 µs.
fn calm(seconds: u64) -> BlockMaxima {
    let mut random = Random::new(6);
    let mut due = Distribution::default();
    let mut maxima_ns = Vec::new();
    for _ in 0..seconds {
        #[expect(clippy::cast_possible_truncation, reason = "below a second")]
        let v = (50_000.0 - 4_000.0 * random.uniform().ln()) as i64;
        maxima_ns.push(v);
        due.add(v);
        due.add_many(5_000, 999);
    }
    BlockMaxima {
        event: "wake-up".to_owned(),
        context: "user".into(),
        maxima_ns,
        seconds,
        seconds_lost: 0,
        seconds_empty: 0,
        changes: Vec::new(),
        step_ns: 1,
        warm_up_ns: 1_000_000_000,
        due,
        missed: 0,
        interval_ns: 1_000_000,
        virtual_time: false,
        unfit: Vec::new(),
        source: None,
        deadline_ns: Some(200_000),
        exceedances: Vec::new(),
    }
}

fn causes(maxima: &BlockMaxima, settings: &Settings) -> Vec<Cause> {
    bound(maxima, settings).reasons().iter().map(|r| r.cause).collect()
}

#[test]
fn a_calm_hour_has_a_bound_with_all_its_figures() {
    let statement = bound(&calm(3610), &Settings::default());
    let b = statement.bound().unwrap_or_else(|| panic!("{:?}", statement.reasons()));
    // Truth: 50 µs + 4 µs · ln(36000).
    assert!((91_900.0..400_000.0).contains(&b.bound_ns), "{b:?}");
    assert!(b.point_ns < b.bound_ns && b.blocks == 3600 && b.block_s == 1);
    assert!((b.period_s - 36_000.0).abs() < 1.0, "{}", b.period_s);
    assert!(
        b.curve.windows(2).all(|w| w[0].upper_ns <= w[1].upper_ns * 1.000_001),
        "{:?}",
        b.curve
    );
    assert!(b.warnings.iter().any(|w| w.starts_with("Preliminary")));
    assert!(statement.discarded.iter().any(|d| d.contains("10 s")));
    let deadline = statement.free.iter().find(|l| l.why == "deadline").expect("a line for it");
    assert!(deadline.count == 0 && deadline.sentence.contains("rarer than one per 20 min"));
    let text = serde_json::to_string(&statement).expect("it is JSON");
    assert!(!text.contains("guarantee") && text.contains("tailbound-bound/2"));
    assert_eq!(statement, bound(&calm(3610), &Settings::default()), "the same every time");
}

#[test]
fn half_a_day_is_judged_in_longer_blocks_and_in_no_time() {
    let begun = std::time::Instant::now();
    let statement = bound(&calm(43_210), &Settings::default());
    let b = statement.bound().unwrap_or_else(|| panic!("{:?}", statement.reasons()));
    assert_eq!((b.block_s, b.blocks), (12, 3600));
    assert!(b.warnings.iter().all(|w| !w.starts_with("Preliminary")));
    assert!(begun.elapsed().as_secs() < 300, "{:?}", begun.elapsed());
}

#[test]
fn every_reason_is_given() {
    let settings = Settings::default();
    assert_eq!(causes(&calm(600), &settings), [Cause::TooShort]);
    let mut bad = calm(600);
    (bad.missed, bad.due.over_range, bad.seconds_lost) = (7, 1, 2);
    bad.unfit = vec!["The clock jumped.".into()];
    bad.changes = vec![300];
    assert_eq!(
        causes(&bad, &settings),
        [
            Cause::Unfit,
            Cause::Missed,
            Cause::OverRange,
            Cause::SecondsLost,
            Cause::Changed,
            Cause::TooShort
        ]
    );
    let far = Settings { extrapolate: 1000.0, confidence: 0.99, ..Settings::default() };
    assert_eq!(causes(&calm(3610), &far), [Cause::TooFar, Cause::Confidence]);
    let mut drift = calm(3610);
    for (i, v) in drift.maxima_ns.iter_mut().enumerate() {
        *v += i64::try_from(i).unwrap_or(0) * 3;
    }
    let refused = bound(&drift, &settings);
    assert_eq!(refused.reasons()[0].cause, Cause::NotStationary);
    assert!(refused.reasons().iter().all(|r| !r.remedy.is_empty()));
    let mut coarse = calm(3610);
    coarse.step_ns = 1000;
    coarse.maxima_ns.iter_mut().for_each(|v| *v = *v / 1000 * 1000);
    assert_eq!(causes(&coarse, &settings), [Cause::Coarse]);
    let mut histogram = calm(3610);
    histogram.maxima_ns.clear();
    histogram.source = Some("cyclictest 2.4 (json)".into());
    let statement = bound(&histogram, &settings);
    assert_eq!(statement.reasons()[0].cause, Cause::NoSeconds);
    assert!(statement.free.is_empty() && statement.free_missing.is_some());
}

#[test]
fn of_an_unfit_run_nothing_is_said_but_why() {
    let mut stopped = calm(3610);
    let title = "the measurement itself was stopped once, for 1 s to 1 s in all";
    for deadline_ns in [None, Some(60_000), Some(9_000_000)] {
        stopped.unfit.clear();
        stopped.deadline_ns = deadline_ns;
        let fit = bound(&stopped, &Settings::default());
        assert!(!fit.free.is_empty() && fit.unfit().is_none() && !fit.observed.is_empty());
        stopped.unfit = vec![title.to_owned()];
        let unfit = bound(&stopped, &Settings::default());
        assert!(unfit.free.is_empty() && unfit.clustering.is_none() && unfit.observed.is_empty());
        assert!(unfit.assumptions.is_empty() && unfit.bound().is_none());
        assert_eq!(unfit.reasons().iter().map(|r| r.cause).collect::<Vec<_>>(), [Cause::Unfit]);
        let (outcome, words) = outcome(&unfit, None);
        assert_eq!(outcome, Outcome::Unfit);
        assert!(words.contains(title), "{words}");
    }
}

#[test]
fn a_run_with_modes_lists_them() {
    let mut modes = calm(3610);
    for v in modes.maxima_ns.iter_mut().step_by(45) {
        *v = 3_400_000;
        modes.due.add(3_400_000);
    }
    let statement = bound(&modes, &Settings::default());
    let tailbound_stats::bound::Extrapolation::Refused { modes, .. } = &statement.extrapolation
    else {
        panic!("a mixture was extrapolated: {:?}", statement.bound());
    };
    assert!(modes.first().is_some_and(|m| m.count >= 80 && m.low_ns > 3_000_000), "{modes:?}");
}

#[test]
fn a_constant_has_one_reason_and_a_second_mechanism_its_own() {
    let mut constant = calm(3610);
    constant.maxima_ns.iter_mut().for_each(|v| *v = 60_000);
    let statement = bound(&constant, &Settings::default());
    let [only] = statement.reasons() else { panic!("{:?}", statement.reasons()) };
    assert_eq!(only.cause, Cause::Constant);
    assert!(only.sentence.contains("are equal") && !only.sentence.contains("every"), "{only:?}");
    let mut met = calm(3610);
    for (at, ns) in [(500, 400_000), (1700, 430_000), (2900, 520_000)] {
        met.maxima_ns[at] = ns;
        met.due.add(ns);
    }
    let statement = bound(&met, &Settings { deadline_ns: Some(1_000_000), ..Settings::default() });
    let [only] = statement.reasons() else { panic!("{:?}", statement.reasons()) };
    assert_eq!(only.cause, Cause::Apart);
    assert!(only.sentence.contains("greatest 3"), "{only:?}");
}
