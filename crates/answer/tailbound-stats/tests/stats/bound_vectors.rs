// SPDX-License-Identifier: MIT OR Apache-2.0
//! The procedure against an independent, slower implementation in another language, on the same
//! seeded series: `data/bound_vectors.json`.
//!
//! The other implementation looks for the profile likelihood on a grid of 1501
//! shapes; ours refines it. Both agree to six digits.

use serde_json::Value;
use tailbound_stats::bound::extrapolate::extrapolate;
use tailbound_stats::bound::{anderson, gpd, threshold};
use tailbound_stats::random::Random;

/// Probability of the level: ten times the length of the series.
const Q: f64 = 1.0 / 36_000.0;

fn series(seed: u64, shape: f64) -> Vec<f64> {
    let mut random = Random::new(seed);
    (0..3600)
        .map(|_| {
            let u = random.uniform();
            if shape == 0.0 { -u.ln() } else { (u.powf(-shape) - 1.0) / shape }
        })
        .collect()
}

#[track_caller]
fn same(what: &str, got: f64, want: &Value, relative: f64) {
    let want = want.as_f64().expect("a number in the fixture");
    assert!((got - want).abs() <= relative * want.abs(), "{what}: {got} is not {want}");
}

#[test]
fn an_independent_implementation_agrees() {
    let text = include_str!("data/bound_vectors.json");
    let vectors: Value = serde_json::from_str(text).expect("the fixture is JSON");
    for (name, shape) in [("exponential", 0.0), ("heavy", 0.3), ("bounded", -0.3)] {
        let v = &vectors[name];
        let values = series(v["seed"].as_u64().expect("a seed"), shape);
        let found = extrapolate(&values, Q, 0.0, 1).expect("answered there as well");
        assert_eq!(Some(found.threshold.exceedances as u64), v["k"].as_u64(), "{name}");
        let digits = 1e-6;
        for (what, got, relative) in [
            ("u", found.threshold.value, 1e-12),
            ("xi", found.fit.shape, 1e-5),
            ("sigma", found.fit.scale, digits),
            ("cv", found.variation, 1e-10),
            ("point", found.limits.point, digits),
            ("gpd", found.limits.free, digits),
            ("gpd_pos", found.limits.no_end, digits),
            ("expo", found.limits.exponential, 1e-10),
            ("bound", found.limits.of_three(), digits),
        ] {
            same(&format!("{name} {what}"), got, &v[what], relative);
        }
        let gate = &v["gate"];
        same("ljung_box", found.gate.ljung_box_p, &gate["ljung_box"], 1e-8);
        same("kpss", found.gate.kpss, &gate["kpss"], 1e-10);
        same("runs", found.gate.runs_p, &gate["runs"], 1e-8);
        same("tail_slices", found.gate.slices_p, &gate["tail_slices"], 1e-8);
        same("exc_disp", found.spread.dispersion_p, &gate["exc_disp"], 1e-8);
        // There exact, here the limit with a correction.
        same("exc_time", found.spread.uniform_p, &gate["exc_time"], 0.02);
        let mut descending = values;
        descending.sort_by(|a, b| b.total_cmp(a));
        let excesses =
            threshold::excesses(&descending, found.threshold.exceedances).expect("enough of them");
        let fit = excesses.fit(gpd::SHAPE_MIN, gpd::SHAPE_MAX);
        same("A²", anderson::statistic(&excesses, &fit), &v["ad"], digits);
        same("A² p", anderson::p_value(&excesses, &fit), &v["ad_p"], 1e-5);
        // The published vectors of the same implementation were made on a grid of 61 shapes.
        same("coarse", found.limits.of_three(), &v["coarse_bound"], 1e-3);
    }
}
