// SPDX-License-Identifier: MIT OR Apache-2.0
//! Moments against certified values: the univariate sets of the NIST Statistical Reference
//! Datasets, a real run of 432 million wake-ups, and ten wake-ups with one very late.
//!
//! Units: each set in its own whole-number unit, scaled back for comparison.
//! Not here: PiDigits. The certified mean 4.5348 is not that of the first 5000 digits of π
//! (4.5358), so the set cannot be computed.
//! Source: NIST StRD (mean, standard deviation, lag-1 autocorrelation); skewness and kurtosis
//! of Mavro and lat10 by rational arithmetic.

use tailbound_core::Sums;
use tailbound_stats::{Accumulator, Moments};

struct Certified {
    name: &'static str,
    data: Vec<i64>,
    /// Values are whole multiples of this.
    unit: f64,
    mean: f64,
    sd: f64,
    lag1: Option<f64>,
    /// g1 and g2.
    shape: Option<(f64, f64)>,
}

fn parse(text: &str) -> Vec<i64> {
    text.split_whitespace().map(|w| w.parse().expect("a whole number")).collect()
}

/// NumAcc2 to NumAcc4: one value, then 500 pairs below and above it, in tenths.
fn alternating(middle: i64) -> Vec<i64> {
    std::iter::once(middle).chain([middle - 1, middle + 1].repeat(500)).collect()
}

fn sets() -> Vec<Certified> {
    let set = |name, data, unit, mean, sd, lag1, shape| Certified {
        name,
        data,
        unit,
        mean,
        sd,
        lag1: Some(lag1),
        shape,
    };
    // Two points beside the mean in 1000 of 1001 values: g2 = 1001/1000 - 3 exactly.
    let pairs = Some((0.0, -1.999));
    vec![
        set(
            "NumAcc1",
            vec![10_000_001, 10_000_003, 10_000_002],
            1.0,
            10_000_002.0,
            1.0,
            -0.5,
            Some((0.0, -1.5)),
        ),
        set("NumAcc2", alternating(12), 0.1, 1.2, 0.1, -0.999, pairs),
        set("NumAcc3", alternating(10_000_002), 0.1, 1_000_000.2, 0.1, -0.999, pairs),
        set("NumAcc4", alternating(100_000_002), 0.1, 10_000_000.2, 0.1, -0.999, pairs),
        set(
            "Mavro",
            parse(include_str!("data/mavro.txt")),
            1e-5,
            2.001_856,
            0.000_429_123_454_003_053,
            0.937_989_183_438_248,
            Some((0.625_418_070_142_952, -0.858_384_027_819_303)),
        ),
        set(
            "Lew",
            parse(include_str!("data/lew.txt")),
            1.0,
            -177.435,
            277.332_168_044_316,
            -0.307_304_800_605_679,
            None,
        ),
        set(
            "Lottery",
            parse(include_str!("data/lottery.txt")),
            1.0,
            518.958_715_596_330,
            291.699_727_470_969,
            -0.120_948_622_967_393,
            None,
        ),
        set(
            "Michelso",
            parse(include_str!("data/michelso.txt")),
            0.01,
            299.8524,
            0.079_010_547_819_051_8,
            0.535_199_668_621_283,
            None,
        ),
        Certified {
            name: "lat10",
            data: vec![3000, 3100, 2900, 3050, 2950, 3000, 3200, 2800, 3000, 1_000_000],
            unit: 1.0,
            mean: 102_700.0,
            sd: 315_279.101_220_912_94,
            lag1: None,
            shape: Some((2.666_666_079_817_61, 5.111_109_285_358_57)),
        },
    ]
}

fn close(name: &str, what: &str, got: Option<f64>, want: f64, relative: f64) {
    let got = got.unwrap_or_else(|| panic!("{name}: {what} is missing"));
    assert!(
        (got - want).abs() <= relative * want.abs().max(1e-9),
        "{name} {what}: {got} is not {want}"
    );
}

fn lag1(data: &[i64]) -> f64 {
    let mean = data.iter().sum::<i64>() as f64 / data.len() as f64;
    let d: Vec<f64> = data.iter().map(|v| *v as f64 - mean).collect();
    d.windows(2).map(|w| w[0] * w[1]).sum::<f64>() / d.iter().map(|x| x * x).sum::<f64>()
}

#[test]
fn exact_sums_give_every_certified_digit() {
    for set in sets() {
        let mut sums = Sums::default();
        set.data.iter().for_each(|v| sums.add(*v));
        let m = Moments::of(&sums);
        close(set.name, "mean", m.mean_ns.map(|x| x * set.unit), set.mean, 2e-15);
        close(set.name, "sd", m.sd_ns.map(|x| x * set.unit), set.sd, 3e-15);
        if let Some(want) = set.lag1 {
            close(set.name, "lag-1", Some(lag1(&set.data)), want, 1e-9);
        }
        if let Some((g1, g2)) = set.shape {
            close(set.name, "g1", m.skewness, g1, 2e-14);
            close(set.name, "g2", m.kurtosis, g2, 2e-14);
        }
    }
}

#[test]
fn the_accumulator_is_right_in_one_pass_and_merged() {
    for set in sets() {
        // Input rounding, not the algorithm, limits NumAcc3 and NumAcc4.
        let tolerance = match set.name {
            "NumAcc3" => 1e-9,
            "NumAcc4" => 1e-7,
            _ => 1e-12,
        };
        let mut one = Accumulator::default();
        let mut parts = Accumulator::default();
        for chunk in set.data.chunks(7) {
            let mut part = Accumulator::default();
            for v in chunk {
                one.add(*v as f64 * set.unit);
                part.add(*v as f64 * set.unit);
            }
            parts.merge(&part);
        }
        for m in [one.moments(), parts.moments()] {
            assert_eq!(m.n, set.data.len() as u64);
            close(set.name, "mean", m.mean_ns, set.mean, 1e-14);
            close(set.name, "sd", m.sd_ns, set.sd, tolerance);
            if let Some((g1, g2)) = set.shape.filter(|_| !set.name.starts_with("NumAcc")) {
                close(set.name, "g1", m.skewness, g1, 1e-9);
                close(set.name, "g2", m.kurtosis, g2, 1e-9);
            }
        }
    }
}

#[test]
fn a_real_run_of_432_million_wakeups() {
    let sums = Sums {
        n: 432_000_000,
        clamped: 0,
        s1: 1_450_989_301_003,
        s2: 5_282_558_110_563_883,
        s3: 25_682_897_697_925_353_277,
        s4_low: 598_137_869_466_438_163_751_071,
        s4_high: 0,
    };
    let m = Moments::of(&sums);
    close("432 M", "mean", m.mean_ns, 3_358.771_530_099_537, 1e-15);
    close("432 M", "sd", m.sd_ns, 973.035_243_574_408_6, 1e-15);
    close("432 M", "g1", m.skewness, 13.046_654_167_723_03, 1e-15);
    close("432 M", "g2", m.kurtosis, 1_147.949_062_716_937_6, 1e-15);
}

#[test]
fn what_is_not_defined_is_absent() {
    let of = |values: &[i64]| {
        let mut sums = Sums::default();
        values.iter().for_each(|v| sums.add(*v));
        Moments::of(&sums)
    };
    assert_eq!(of(&[]), Moments::default());
    assert_eq!((of(&[7]).mean_ns, of(&[7]).variance), (Some(7.0), None));
    let same = of(&[7, 7, 7]);
    assert_eq!((same.variance, same.skewness, same.kurtosis), (Some(0.0), None, None));
    let two = of(&[1, 3]);
    assert_eq!((two.skewness, two.skewness_adjusted), (Some(0.0), None));
    assert_eq!(two.kurtosis, Some(-2.0));
    assert!(
        of(&[1, 2, 9]).skewness_adjusted.is_some() && of(&[1, 2, 9]).kurtosis_adjusted.is_none()
    );
    // Sums from a damaged file: no panic, no figure out of nothing.
    let bad = Sums { n: 5, s1: i128::MAX, s2: 3, ..Sums::default() };
    assert_eq!((Moments::of(&bad).variance, Moments::of(&bad).kurtosis), (None, None));
}
