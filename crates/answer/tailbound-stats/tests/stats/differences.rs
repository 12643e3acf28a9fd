// SPDX-License-Identifier: MIT OR Apache-2.0
//! Differences between systems: against a reference implementation on real rounds, error rates
//! under equality, and shifts that are known to be there.
//!
//! Units: ns. Rates over more repetitions: the example `compare_rates`.

use serde_json::Value;
use tailbound_core::Distribution;
use tailbound_core::number::Whole as _;
use tailbound_stats::compare::difference::Dominance;
use tailbound_stats::compare::interval::{intervals, widening};
use tailbound_stats::compare::sentence::{RunTime, notes, sentence};
use tailbound_stats::compare::{Block, Design, Difference, Settings, Word, difference};
use tailbound_stats::random::Random;

use crate::rounds::{DEADLINE_NS, Shift, made_up, real, relabelled};

fn of(a: &[Block], b: &[Block], settings: &Settings) -> Difference {
    difference(a, b, Design::Rounds, Some(DEADLINE_NS), settings).expect("enough rounds")
}

fn near(got: f64, expected: f64, relative: f64, what: &str) {
    assert!((got / expected - 1.0).abs() < relative, "{what}: {got} instead of {expected}");
}

#[test]
fn agrees_with_the_reference_implementation_on_real_rounds() {
    let vectors: Value = serde_json::from_str(include_str!("data/compare.json")).expect("JSON");
    let expected = &vectors["same"];
    let number = |v: &Value| v.as_f64().expect("a number");
    let [a, b] = real();
    let settings = Settings { replicates: 4000, permutations: 4000, ..Settings::default() };
    let d = of(&a, &b, &settings);
    for (i, f) in d.features.iter().take(5).enumerate() {
        near(f.a_ns, number(&expected["qA"][i]), 1e-12, &f.name);
        near(f.b_ns, number(&expected["qB"][i]), 1e-12, &f.name);
        let ratio = f.ratio.expect("late everywhere");
        near(ratio.estimate, number(&expected["ratio"][i]), 1e-12, &f.name);
        // Another generator: limits agree as far as 4000 replicates tell.
        for side in 0..2 {
            near(ratio.pointwise[side], number(&expected["ci"][side][i]), 0.12, &f.name);
        }
    }
    near(d.p.expect("a p"), number(&expected["p"]), 0.05, "p");
    assert_eq!(d.units, [30, 30]);
    assert_ne!(d.word, Word::Regression);
    assert_ne!(d.word, Word::Improvement);
    assert_eq!(d, of(&a, &b, &settings), "the same seed gives the same answer");
}

#[test]
fn intervals_of_given_replicates_agree_exactly() {
    let vectors: Value = serde_json::from_str(include_str!("data/compare.json")).expect("JSON");
    let v = &vectors["intervals"];
    let list = |v: &Value| -> Vec<f64> { serde_json::from_value(v.clone()).expect("numbers") };
    let columns: Vec<Vec<f64>> =
        v["replicates"].as_array().expect("columns").iter().map(list).collect();
    let wider = widening(12, 0.95);
    near(wider, v["widening"].as_f64().expect("a number"), 1e-9, "widening");
    let got = intervals(&list(&v["estimates"]), &columns, wider, 0.95);
    for (i, interval) in got.iter().enumerate() {
        for side in 0..2 {
            near(interval.pointwise[side], list(&v["pointwise"][i])[side], 1e-8, "pointwise");
            near(
                interval.simultaneous[side],
                list(&v["simultaneous"][i])[side],
                1e-8,
                "simultaneous",
            );
        }
    }
}

#[test]
fn equal_real_runs_are_seldom_called_different() {
    let [a, b] = real();
    let mut random = Random::new(11);
    let repetitions = 200;
    let (mut small_p, mut words, mut excluded) = (0, 0, 0);
    for seed in 0..repetitions {
        let [x, y] = relabelled(&a, &b, &mut random);
        let settings = Settings { replicates: 200, permutations: 99, seed, ..Settings::default() };
        let d = of(&x, &y, &settings);
        small_p += i32::from(d.p.is_some_and(|p| p <= 0.05));
        words += i32::from(matches!(d.word, Word::Regression | Word::Improvement));
        excluded +=
            i32::from(d.features.iter().any(|f| {
                f.ratio.is_some_and(|r| r.simultaneous[0] > 1.0 || r.simultaneous[1] < 1.0)
            }));
    }
    assert!(small_p <= 14, "p <= 0.05 in {small_p} of {repetitions}");
    assert!(excluded <= 14, "simultaneous intervals exclude 1 in {excluded} of {repetitions}");
    assert!(words <= 14, "a regression or improvement in {words} of {repetitions}");
}

fn quick(seed: u64) -> Settings {
    Settings { replicates: 300, permutations: 199, seed, ..Settings::default() }
}

#[test]
fn known_shifts_are_found_and_reported() {
    let (mut body, mut tail, mut quiet) = (0, 0, 0);
    let repetitions = 20;
    for seed in 0..repetitions {
        let [a, b] = made_up(30, 20_000, Shift::Body, seed);
        let d = of(&a, &b, &quick(seed));
        body += i32::from(d.p.is_some_and(|p| p <= 0.05));
        assert_ne!(d.word, Word::Improvement, "{:?}", d.features);
        let [a, b] = made_up(30, 20_000, Shift::Tail, 1000 + seed);
        let d = of(&a, &b, &quick(seed));
        let word = |name: &str| d.features.iter().find(|f| f.name == name).map(|f| f.word);
        tail += i32::from(word("p99.99") == Some(Word::Regression));
        quiet += i32::from(word("p50") != Some(Word::Regression));
        if d.word == Word::Regression {
            let words = sentence(&d, "a", "b", &quick(seed));
            assert!(words.contains("b is later than a") && words.contains("p99.99 ×"), "{words}");
        }
    }
    assert!(body >= 16, "1.10 everywhere found in {body} of {repetitions}");
    assert!(tail >= 15, "1.5 in the tail found in {tail} of {repetitions}");
    assert!(quiet == 20, "the median called later in {} of {repetitions}", 20 - quiet);
}

#[test]
fn a_great_difference_is_one_sided_everywhere() {
    let [a, _] = real();
    // A system whose wake-ups are all half as late again, round by round.
    let slower = |block: &Block| {
        let mut block = block.clone();
        for cell in &mut block.cells {
            cell.low_ns += cell.low_ns / 2;
        }
        block.max_ns = block.max_ns.map(|m| m + m / 2);
        block
    };
    let b: Vec<Block> = a.iter().map(slower).collect();
    let d = of(&a, &b, &quick(1));
    assert_eq!((d.word, d.dominance), (Word::Regression, Some(Dominance::Later)));
    assert!(d.features.iter().all(|f| f.word == Word::Regression));
    assert!(d.p.is_some_and(|p| p < 0.01));
    assert!(d.wasserstein_ns > d.wasserstein_by_chance_ns);
    let back = of(&b, &a, &quick(1));
    assert_eq!((back.word, back.dominance), (Word::Improvement, Some(Dominance::Earlier)));
    let same = of(&a, &a, &quick(1));
    assert_eq!((same.word, same.p), (Word::Equivalent, Some(1.0)));
    assert!(same.wasserstein_ns < 1e-9);
}

#[test]
fn exchange_is_exact_for_few_rounds() {
    // Six rounds, each later in the second system: only the exchange of none and of all of them
    // is as extreme, 2 of 64.
    let round = |base: i64, i: i64| Block::of_values((0..2000).map(|k| base + i * 50 + k));
    let a: Vec<Block> = (0..6).map(|i| round(100_000, i)).collect();
    let b: Vec<Block> = (0..6).map(|i| round(160_000, i)).collect();
    let settings = Settings { permutations: 20_000, replicates: 100, ..Settings::default() };
    let d = of(&a, &b, &settings);
    near(d.p.expect("a p"), 2.0 / 64.0, 0.15, "p");
}

#[test]
fn too_little_is_reported_and_not_computed() {
    let [a, b] = real();
    let few = difference(&a[..5], &b[..5], Design::Rounds, None, &quick(1));
    let why = few.expect_err("five rounds").to_string();
    assert!(why.contains("5 rounds") && why.contains("takes 6"), "{why}");
    let uneven = difference(&a[..8], &b[..7], Design::Rounds, None, &quick(1));
    assert!(uneven.is_err());
    let unpaired = difference(&a[..8], &b[..9], Design::Runs, None, &quick(1));
    let d = unpaired.expect("eight runs of each");
    assert!(
        notes(&d, RunTime::Real).iter().any(|n| n.contains("drift not controlled")),
        "{:?}",
        notes(&d, RunTime::Real)
    );
    let short: Vec<Block> = (0..8).map(|i| Block::of_values(i..i + 200)).collect();
    let d = of(&short, &short, &quick(1));
    assert_eq!(d.unsupported.first().map(|u| u.0.as_str()), Some("p99.9"));
    assert!(d.features.iter().any(|f| f.ratio.is_none()) || d.features.len() == 4);
}

/// Runs of 15,000 activations, of which `over` lie beyond the last bucket of the source.
fn censored(seed: u64, over: u64) -> Block {
    let mut random = Random::new(seed);
    let mut d = Distribution::default();
    for _ in 0..15_000 {
        d.add((-random.uniform().ln() * 10_000.0).whole_i64());
    }
    if over > 0 {
        d.n += over;
        (d.unbinned, d.unbinned_from_ns) = (over, Some(1_000_000));
        (d.max_ns, d.sums) = (None, None);
    }
    Block::of(&d, 10, None).expect("where they begin is known")
}

#[test]
fn one_overflow_of_many_thousands_is_an_ordered_value() {
    let a: Vec<Block> = (0..8).map(|i| censored(10 + i, u64::from(i == 3))).collect();
    let b: Vec<Block> = (0..8).map(|i| censored(50 + i, 0)).collect();
    let d = difference(&a, &b, Design::Runs, None, &quick(1)).expect("ranks are known");
    let names: Vec<&str> = d.features.iter().map(|f| f.name.as_str()).collect();
    assert!(names.starts_with(&["p50", "p90", "p99", "p99.9"]), "{names:?}");
    assert_eq!(d.censored_from_ns, Some(1_000_000));
    assert!(notes(&d, RunTime::Real).iter().any(|n| n.contains("in no bucket of the source")));
    assert!(d.wasserstein_ns.is_finite() && d.features.iter().all(|f| f.a_ns.is_finite()));
    // Where so many are beyond that a quantile may be among them, it is named and nothing is equal.
    let many: Vec<Block> = (0..8).map(|i| censored(10 + i, 30)).collect();
    let d = difference(&many, &many, Design::Runs, None, &quick(1)).expect("ranks are known");
    assert_eq!(d.word, Word::Inconclusive);
    assert!(d.censored.contains(&"p99.9".to_owned()), "{:?}", d.censored);
    assert!(
        sentence(&d, "a", "b", &quick(1)).contains("p99.9"),
        "{}",
        sentence(&d, "a", "b", &quick(1))
    );
    // Of unknown size nothing is known, not even their rank.
    let mut unknown = Distribution::default();
    unknown.add(5);
    (unknown.n, unknown.unbinned) = (2, 1);
    assert!(Block::of(&unknown, 10, None).is_err());
}
