// SPDX-License-Identifier: MIT OR Apache-2.0
//! Quantiles, mode and survival curve against sorted values, and what they refuse.
//!
//! Units: ns.

use proptest::prelude::*;
use tailbound_core::Distribution;
use tailbound_core::stated::StatedQuantiles;
use tailbound_stats::quantile::{label, needed};
use tailbound_stats::{Quantile, STANDARD, Summary, median, mode, quantile, survival};

fn of(values: &[i64]) -> Distribution {
    let mut d = Distribution::default();
    values.iter().for_each(|v| d.add(*v));
    d
}

/// Mostly µs, some early, some very late: what wake-ups look like.
fn wakeups() -> impl Strategy<Value = Vec<i64>> {
    let one = prop_oneof![
        6 => 0i64..20_000,
        2 => 20_000i64..5_000_000,
        1 => -40_000i64..0,
        1 => 0i64..40_000_000_000,
    ];
    prop::collection::vec(one, 20..600)
}

/// Within one bucket of the true value: 2^-10 of it late, 2^-7 of it early.
fn tolerance(value: i64) -> f64 {
    let share = if value < 0 { 128.0 } else { 1024.0 };
    1.0 + value.abs() as f64 / share
}

proptest! {
    #[test]
    fn quantiles_are_within_a_bucket_of_the_sorted_values(values in wakeups()) {
        let d = of(&values);
        let mut sorted = values.clone();
        sorted.sort_unstable();
        for p in [0.05, 0.1, 0.5, 0.9, 0.95, 0.97] {
            let got = quantile(&d, p);
            if (values.len() as u64) < needed(p) {
                let more = needed(p) - values.len() as u64;
                prop_assert_eq!(got, Quantile::Needs { more });
                continue;
            }
            let rank = (p * values.len() as f64 * (1.0 - 1e-12)).ceil() as usize;
            let want = sorted[rank - 1];
            let Quantile::Value { ns, low_ns, high_ns } = got else { panic!("{p}: {got:?}") };
            let (want_f, min, max) = (want as f64, sorted[0] as f64, sorted[sorted.len() - 1] as f64);
            prop_assert!(low_ns <= want_f && want_f <= high_ns, "{p}: {want} in {got:?}");
            prop_assert!(low_ns <= ns && ns <= high_ns && min <= ns && ns <= max, "{got:?}");
            // Over-range values share one bucket; the bounds then say how little is known.
            if want < 1 << 34 && d.over_range == 0 {
                prop_assert!((ns - want_f).abs() <= tolerance(want), "{p}: {want} {got:?}");
            }
        }
    }

    #[test]
    fn order_and_merging_change_nothing(values in wakeups(), cut in 0usize..600) {
        let whole = Summary::of(&of(&values));
        let mut reversed = values.clone();
        reversed.reverse();
        prop_assert_eq!(&Summary::of(&of(&reversed)), &whole);
        let cut = cut.min(values.len());
        let mut merged = of(&values[cut..]);
        merged.merge(&of(&values[..cut]));
        prop_assert_eq!(&Summary::of(&merged), &whole);
    }

    #[test]
    fn survival_falls_from_all_to_none(values in wakeups()) {
        let d = of(&values);
        let curve = survival(&d);
        let last = curve.last().copied();
        prop_assert_eq!(last, d.max_ns.map(|max| (max as f64, 0.0)));
        prop_assert!(curve.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 > w[1].1), "{curve:?}");
        for (ns, probability) in curve {
            let later = values.iter().filter(|v| **v as f64 > ns).count() as f64;
            prop_assert!((later / values.len() as f64 - probability).abs() < 1e-12);
        }
    }

    #[test]
    fn the_mode_is_where_most_values_are(base in 0i64..1_000_000, others in wakeups()) {
        let mut d = of(&others);
        d.add_many(base, others.len() as u64 * 2000);
        let got = mode(&d).map(|m| m.ns);
        prop_assert!(got.is_some_and(|m| (m - base as f64).abs() <= tolerance(base)), "{base} {got:?}");
    }
}

#[test]
fn a_lone_value_in_a_narrow_bucket_is_no_mode() {
    // 100 ns wide at 100 µs, 1 ns wide below 2 µs: a body of 3000 values, and one below it.
    let mut values: Vec<i64> = (0..3000).map(|i| 100_000 + i * i % 7919).collect();
    values.push(900);
    let got = mode(&of(&values)).map(|m| m.ns);
    assert!(got.is_some_and(|m| (100_000.0..108_000.0).contains(&m)), "{got:?}");
    // Values that are all alike are their own mode, to the nanosecond.
    // A bucket's middle may lie beyond all that was measured; the mode does not.
    assert_eq!(mode(&of(&[3650; 100])).map(|m| (m.ns, m.width_ns)), Some((3650.0, 2)));
    assert_eq!(mode(&of(&[3651; 100])).map(|m| (m.ns, m.width_ns)), Some((3651.0, 2)));
}

#[test]
fn a_quantile_takes_ten_values_beyond_it() {
    let thresholds: Vec<u64> = STANDARD.iter().map(|p| needed(*p)).collect();
    assert_eq!(thresholds, [200, 20, 100, 200, 1000, 10_000, 100_000, 1_000_000]);
    assert_eq!(quantile(&of(&[]), 0.99), Quantile::Needs { more: 1000 });
    assert_eq!(median(&of(&[1, 2, 3])), Quantile::Needs { more: 17 });
    let names: Vec<String> = STANDARD.iter().map(|p| label(*p)).collect();
    assert_eq!(names, ["p5", "p50", "p90", "p95", "p99", "p99.9", "p99.99", "p99.999"]);
    assert_eq!(quantile(&of(&[1]), f64::NAN), Quantile::Unknown);
}

#[test]
fn whole_numbers_of_ranks_do_not_slip() {
    // 0.999 * 10,000 is 9990 whatever the float says.
    let d = of(&(1..=10_000).map(|v| v % 2000).collect::<Vec<_>>());
    let mut sorted: Vec<i64> = (1..=10_000).map(|v| v % 2000).collect();
    sorted.sort_unstable();
    assert_eq!(quantile(&d, 0.999).ns(), Some(sorted[9989] as f64));
}

#[test]
fn what_a_source_lost_is_not_made_up() {
    // A histogram of 1 µs steps to 400 µs: 5 of 1000 values ran over.
    let mut d = Distribution { resolution_ns: 1000, ..Distribution::default() };
    d.add_many(50_000, 900);
    d.add_many(399_000, 95);
    (d.n, d.unbinned, d.unbinned_from_ns) = (1000, 5, Some(400_000));
    (d.sums, d.max_ns) = (None, Some(2_000_000));
    assert_eq!(quantile(&d, 0.5).ns(), Some(50_000.0), "the source's own value");
    assert_eq!(quantile(&d, 0.99).ns(), Some(399_000.0));
    d.add_many(60_000, 9000);
    (d.n, d.unbinned) = (d.late.total() + 15, 15);
    assert_eq!(quantile(&d, 0.999), Quantile::AtLeast { ns: 400_000 });
    assert!(survival(&d).last().is_some_and(|(_, p)| *p > 0.0));
    d.unbinned_from_ns = None;
    assert_eq!(quantile(&d, 0.5), Quantile::Unknown);
    assert!(survival(&d).is_empty());
    // Counted, but in no bucket at all.
    let lost = Distribution { n: 5000, max_ns: Some(9), sums: None, ..Distribution::default() };
    assert_eq!(quantile(&lost, 0.5), Quantile::Unknown);
    assert_eq!(mode(&lost), None);
}

#[test]
fn quantiles_that_a_source_printed_are_its_own_and_bound_the_others() {
    let printed = [(0.25, 6289), (0.5, 13_945), (0.9, 34_500), (0.954, 34_600), (0.999, 1_798_633)];
    let mut d = Distribution {
        n: 10_000,
        min_ns: Some(2688),
        max_ns: Some(5_701_735),
        unbinned: 10_000,
        unbinned_from_ns: Some(2688),
        quantiles: StatedQuantiles::new(printed).expect("they rise"),
        sums: None,
        ..Distribution::default()
    };
    assert_eq!(quantile(&d, 0.5).ns(), Some(13_945.0));
    assert_eq!(quantile(&d, 0.999).ns(), Some(1_798_633.0));
    assert_eq!(quantile(&d, 0.99), Quantile::AtLeast { ns: 34_600 }, "nothing is made up");
    assert_eq!(quantile(&d, 0.05), Quantile::AtLeast { ns: 2688 });
    assert_eq!(quantile(&d, 0.9999), Quantile::Needs { more: 90_000 });
    // Two that are next to each other leave nothing open.
    let between = Quantile::Value { ns: 34_550.0, low_ns: 34_500.0, high_ns: 34_600.0 };
    assert_eq!(quantile(&d, 0.95), between);
    // Quantiles of one thread are not those of all.
    let mut all = d.clone();
    all.merge(&d);
    assert!(all.quantiles.is_empty() && quantile(&all, 0.5) == Quantile::AtLeast { ns: 2688 });
    d.quantiles = StatedQuantiles::default();
    assert_eq!(quantile(&d, 0.5), Quantile::AtLeast { ns: 2688 });
}

#[test]
fn the_lowest_step_of_a_source_is_below_it_and_not_nothing() {
    // oslat in steps of 1 µs, with a minimum that is finer.
    let mut d = Distribution { resolution_ns: 1000, ..Distribution::default() };
    d.add_many(0, 900);
    d.add_many(3000, 100);
    (d.sums, d.min_ns, d.max_ns) = (None, Some(20), Some(3400));
    assert_eq!(quantile(&d, 0.5), Quantile::Below { ns: 1000, low_ns: 20.0 });
    assert_eq!(quantile(&d, 0.5).ns(), None, "no number is made up");
    assert_eq!(quantile(&d, 0.95).ns(), Some(3000.0));
    // Ours are exact: 0 is 0.
    let ours = of(&[0; 100]);
    assert_eq!(quantile(&ours, 0.5).ns(), Some(0.0));
}
