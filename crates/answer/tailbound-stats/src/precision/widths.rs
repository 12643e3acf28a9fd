// SPDX-License-Identifier: MIT OR Apache-2.0
//! The half-widths themselves: of moments by the stretches' influence, of quantiles by their
//! design effect.
//!
//! Units: ns.
//! A figure f of the whole is, to first order, its value plus the mean of the stretches'
//! influences: for the mean the stretch's own mean less the whole's, for the others the
//! derivative by the raw moments m1 to m4 times what the stretch's are off. So a figure of the
//! fourth power is judged on all of the run and not as a mean of noisy kurtoses of stretches.

use tailbound_core::Sums;
use tailbound_core::number::Real as _;

use super::QuantileWidth;
use super::series::{Series, Stretch};
use crate::student;

/// Mean powers 1 to 4 of values around `centre`.
fn powers(sums: &Sums, centre: f64) -> [f64; 4] {
    let n = sums.n.real();
    let raw = [
        sums.s1.real() / n,
        sums.s2.real() / n,
        sums.s3.real() / n,
        (sums.s4_low.real() + sums.s4_high.real() * 2f64.powi(64)) / n,
    ];
    let [a, b, c, d] = raw;
    let k = centre;
    [
        a - k,
        b - 2.0 * k * a + k * k,
        c - 3.0 * k * b + 3.0 * k * k * a - k.powi(3),
        d - 4.0 * k * c + 6.0 * k * k * b - 4.0 * k.powi(3) * a + k.powi(4),
    ]
}

/// Half-widths of mean, sd, skewness and kurtosis.
pub(super) fn moments(series: &Series, confidence: f64) -> [Option<f64>; 4] {
    let none = [None; 4];
    let mut all = Sums::default();
    for s in &series.stretches {
        // Sums with clamped values would make the figures look better known than they are.
        let Some(sums) = s.sums.filter(|x| x.n > 0 && x.clamped == 0) else { return none };
        all.merge(&sums);
    }
    if all.n == 0 {
        return none;
    }
    let mean = all.s1.real() / all.n.real();
    let [_, m2, m3, m4] = powers(&all, mean);
    let mut influences: [Vec<f64>; 4] = Default::default();
    for sums in series.stretches.iter().filter_map(|s| s.sums.as_ref()) {
        // Of longer stretches more: the figure is one of activations.
        let weight = sums.n.real() * series.stretches.len().real() / all.n.real();
        let [d1, p2, p3, p4] = powers(sums, mean);
        let (d2, d3) = (p2 - m2, p3 - m3 - 3.0 * m2 * d1);
        let d4 = p4 - m4 - 4.0 * m3 * d1;
        let sd = m2.sqrt();
        let of = [
            d1,
            d2 / (2.0 * sd),
            d3 / sd.powi(3) - 1.5 * m3 / sd.powi(5) * d2,
            d4 / (m2 * m2) - 2.0 * m4 / m2.powi(3) * d2,
        ];
        for (list, value) in influences.iter_mut().zip(of) {
            list.push(value * weight);
        }
    }
    influences.map(|list| half_width(&list, confidence))
}

/// Half-width of the mean of `values`; `None` where it is no number.
fn half_width(values: &[f64], confidence: f64) -> Option<f64> {
    let n = values.len().real();
    if n < 2.0 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let t = student::quantile(f64::midpoint(1.0, confidence), n - 1.0);
    Some(t * (variance / n).sqrt()).filter(|h| h.is_finite())
}

/// Intervals of the quantiles `probabilities`, each at `confidence`.
#[must_use]
pub fn quantiles(series: &Series, probabilities: &[f64], confidence: f64) -> Vec<QuantileWidth> {
    let whole = whole(&series.stretches);
    let n: u64 = whole.iter().map(|(_, _, c)| c).sum();
    if n == 0 {
        return Vec::new();
    }
    let t = student::quantile(
        f64::midpoint(1.0, confidence),
        (series.stretches.len().real() - 1.0).max(1.0),
    );
    probabilities
        .iter()
        .map(|p| {
            let design_effect = design_effect(series, &whole, n, *p);
            let n_effective = n.real() / design_effect;
            // Ranks ±t·√(q(1-q)/N_eff) as shares; with few beyond, an end leaves the data.
            let spread = t * (p * (1.0 - p) / n_effective).sqrt();
            // The Wilson ends are inside 0 and 1 and right also where few lie beyond.
            let z2 = t * t / n_effective;
            let centre = (p + z2 / 2.0) / (1.0 + z2);
            let reach = (spread * spread + z2 * z2 / 4.0).sqrt() / (1.0 + z2);
            // Without a value to spare beyond an end there is no limit on that side.
            let (lower, upper) = (centre - reach, centre + reach);
            let low_ns = (lower * n_effective >= 1.0).then(|| at(&whole, n, lower)).flatten();
            let high_ns =
                ((1.0 - upper) * n_effective >= 1.0).then(|| at(&whole, n, upper)).flatten();
            let half_ns = low_ns.zip(high_ns).map(|(low, high)| (high - low) / 2.0);
            QuantileWidth { p: *p, design_effect, n_effective, low_ns, high_ns, half_ns }
        })
        .collect()
}

/// Lower edge, upper edge and count of all stretches' buckets together.
fn whole(stretches: &[Stretch]) -> Vec<(i64, i64, u64)> {
    let mut all = std::collections::BTreeMap::<i64, u64>::new();
    for (edge, count) in stretches.iter().flat_map(|s| &s.cells) {
        let c = all.entry(*edge).or_default();
        *c = c.saturating_add(*count);
    }
    all.into_iter()
        .map(|(edge, count)| {
            let low = if edge > 0 { lower_edge(edge) } else { edge };
            (low, edge, count)
        })
        .collect()
}

/// The lower edge of the bucket whose upper edge this is: they are 2^-7 of a power of two wide.
fn lower_edge(edge: i64) -> i64 {
    let v = edge.unsigned_abs();
    let e = 63 - (v | 1 << crate::blocks::PRECISION).leading_zeros();
    let shift = e.saturating_sub(crate::blocks::PRECISION);
    i64::try_from((v >> shift) << shift).unwrap_or(edge)
}

/// The value of the share `share`, linear inside its bucket.
fn at(whole: &[(i64, i64, u64)], n: u64, share: f64) -> Option<f64> {
    let rank = share * n.real();
    let mut below = 0.0;
    for (low, high, count) in whole {
        let next = below + count.real();
        if next >= rank {
            let inside = ((rank - below) / count.real()).clamp(0.0, 1.0);
            return Some(low.real() + (*high - *low).real() * inside);
        }
        below = next;
    }
    None
}

/// How much more the counts beyond the quantile vary between stretches than those of
/// independent activations would; at least 1.
fn design_effect(series: &Series, whole: &[(i64, i64, u64)], n: u64, p: f64) -> f64 {
    // The bucket's edge that is nearest to the quantile, and the share really beyond it.
    let mut below = 0u64;
    let mut best: Option<(f64, i64, f64)> = None;
    for (_, edge, count) in whole {
        below = below.saturating_add(*count);
        let share = 1.0 - below.real() / n.real();
        let off = (share - (1.0 - p)).abs();
        if share > 0.0 && best.is_none_or(|(least, ..)| off < least) {
            best = Some((off, *edge, share));
        }
    }
    let Some((_, edge, share)) = best else { return 1.0 };
    let k = series.stretches.len().real();
    // Against what the stretch should have by its length, so that a shorter one is no surprise.
    let excess = series.stretches.iter().map(|s| s.above(edge).real() - share * s.n.real());
    let variance = excess.map(|d| d * d).sum::<f64>() / (k - 1.0).max(1.0);
    let independent = n.real() / k * share * (1.0 - share);
    if independent > 0.0 { (variance / independent).max(1.0) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use tailbound_core::number::Whole as _;

    use super::*;
    use crate::blocks::PRECISION;
    use crate::precision::{Precision, decimals_us};
    use crate::random::Random;
    use tailbound_core::histogram::{Histogram, SparseHistogram};
    use tailbound_core::record::BlockRecord;

    /// Stretches of exponential values whose scale a random walk moves by `drift`.
    fn blocks(count: u64, each: u64, drift: f64, random: &mut Random) -> Vec<BlockRecord> {
        (0..count)
            .map(|second| {
                let (mut h, mut sums) = (Histogram::new(PRECISION), Sums::default());
                let scale = 10_000.0 * (drift * (random.uniform() - 0.5)).exp();
                for _ in 0..each {
                    let v = (-random.uniform().ln() * scale).whole_i64();
                    h.add(v.unsigned_abs(), 1);
                    sums.add(v);
                }
                let late = SparseHistogram::from(&h);
                BlockRecord {
                    thread: 0,
                    second,
                    seconds: 1,
                    n: each,
                    sums: Some(sums),
                    late,
                    early: None,
                }
            })
            .collect()
    }

    #[test]
    fn intervals_hold_as_often_as_they_say() {
        let mut random = Random::new(11);
        let truth = [10_000.0, 10_000.0, 10_000.0 * 2f64.ln(), 10_000.0 * 100f64.ln()];
        let mut held = [0u32; 4];
        for _ in 0..200 {
            let p = Precision::of(&blocks(40, 500, 0.0, &mut random), None, &[0.5, 0.99]);
            let q = |i: usize| p.quantiles.get(i).map(|q| (q.low_ns, q.high_ns));
            for i in 0..2 {
                if let Some((Some(low), Some(high))) = q(i) {
                    held[i + 2] += u32::from(low <= truth[i + 2] && truth[i + 2] <= high);
                }
            }
        }
        for _ in 0..200 {
            let all = blocks(40, 500, 0.0, &mut random);
            let p = Precision::of(&all, None, &[]);
            let total = Series::of(&all, None).total();
            let m = crate::moments::Moments::of(&total.sums.unwrap_or_default());
            let within = |got: Option<f64>, half: Option<f64>, truth: f64| {
                u32::from((got.unwrap_or(0.0) - truth).abs() <= half.unwrap_or(0.0))
            };
            held[0] += within(m.mean_ns, p.mean_ns, truth[0]);
            held[1] += within(m.sd_ns, p.sd_ns, truth[1]);
        }
        // 95 % of 200 is 190, with a standard deviation of 3.
        assert!(held.iter().all(|h| (180..=200).contains(h)), "{held:?}");
    }

    #[test]
    fn dependence_widens() {
        let steady = Precision::of(&blocks(100, 1000, 0.0, &mut Random::new(5)), None, &[0.5]);
        let moving = Precision::of(&blocks(100, 1000, 1.0, &mut Random::new(5)), None, &[0.5]);
        let effect = |p: &Precision| p.quantiles.first().map_or(0.0, |q| q.design_effect);
        assert!(effect(&steady) < 2.5 && effect(&moving) > 20.0);
        assert!(moving.mean_ns > steady.mean_ns.map(|h| h * 3.0));
    }

    #[test]
    fn a_short_run_says_that_it_is_short() {
        let p = Precision::of(&blocks(7, 1000, 0.0, &mut Random::new(5)), None, &[0.5]);
        assert!(p.mean_ns.is_none() && p.why_not.unwrap_or_default().contains("at least 8 s"));
        let none = Precision::of(&[], None, &[0.5]);
        assert!(none.why_not.unwrap_or_default().contains("no stretches"));
    }

    #[test]
    fn decimals_are_those_that_are_right() {
        assert_eq!(decimals_us(12.0), Some(1));
        assert_eq!(decimals_us(5.0), Some(2));
        assert_eq!(decimals_us(5.1), Some(1));
        assert_eq!(decimals_us(499.0), Some(0));
        assert_eq!(decimals_us(600.0), None);
    }
}
