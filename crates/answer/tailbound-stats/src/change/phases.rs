// SPDX-License-Identifier: MIT OR Apache-2.0
//! Drift and phases within a run: a two-sided CUSUM over the quantiles of its stretches.
//!
//! Units: seconds of the schedule; natural logarithms of ns.
//! Each stretch of about 10 s gives the logarithm of its median and of its p99. Its level is the
//! median of the run, its spread that of the differences between neighbours, which a drift does
//! not blow up. A sum that gathers what exceeds the level by more than half a spread marks a
//! phase when it reaches five spreads; then the level is learnt anew.
//! Whether there is a change at all is decided before, by two tests of ranks whose level does not
//! depend on the distribution: of how far the sum of the normal scores wanders (long phases, drift),
//! and of a CUSUM of them (short ones). Both figures and both tests together raise a false alarm in
//! at most 1 % of steady runs, at one sample a second as at a thousand; the sum alone did in up to 26 %.
//! Source: Page 1954; Montgomery, "Introduction to Statistical Quality Control" (k = 0.5, h = 5);
//! Kuiper 1960 (range of a bridge); Siegmund 1985 (run length of a CUSUM).

use serde::Serialize;
use tailbound_core::number::Real as _;
use tailbound_core::order;
use tailbound_core::record::BlockRecord;

use crate::bound::gate::scores;
use crate::median::median;
use crate::precision::{Series, TooFewStretches};

/// Version of the method, part of every answer.
pub const METHOD: &str = "cusum/2";

/// Allowance, in spreads.
const K: f64 = 0.5;
/// Limit, in spreads.
const H: f64 = 5.0;
/// Length of a stretch.
const STRETCH_S: u64 = 10;
/// Stretches it takes.
const STRETCHES_MIN: usize = 20;
/// Stretches a level is learnt from.
const LEARN: usize = 12;
/// Stretches that a phase has at least before the next one.
const BEFORE_MIN: usize = 3;
/// Least change that is worth a word: buckets are 0.8 % wide.
const LEAST: f64 = 0.05;

/// Share of steady runs in which one test of one figure may see a change: two of each are 1 %.
const FALSE_ALARMS: f64 = 0.0025;

/// A change within a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Phase {
    /// First second of the new phase.
    pub second: u64,
    /// Which quantile moved most: `p50` or `p99`.
    pub figure: &'static str,
    /// After over before.
    pub ratio: f64,
}

/// The phases that a run fell into, all threads together: where each but the first begins.
/// `Err`: why they were not looked for.
///
/// # Errors
/// The run is too short or its file has no stretches.
pub fn phases(blocks: &[BlockRecord]) -> Result<Vec<Phase>, TooFewStretches> {
    let series = Series::of(blocks, None).grouped(STRETCH_S, STRETCHES_MIN);
    let n = series.stretches.len();
    if n < STRETCHES_MIN {
        return Err(TooFewStretches { stretches: n, least: STRETCHES_MIN });
    }
    let mut found: Vec<Phase> = Vec::new();
    for (figure, p) in [("p50", 0.5), ("p99", 0.99)] {
        let values: Option<Vec<f64>> =
            series.stretches.iter().map(|s| ln_quantile(&s.cells, s.n, p)).collect();
        let Some(values) = values else { continue };
        for (at, ratio) in steps(&values) {
            let Some(second) = series.stretches.get(at).map(|s| s.second) else { continue };
            // What moves both quantiles is one change.
            let near = 3 * series.length_s;
            match found.iter_mut().find(|f| f.second.abs_diff(second) <= near) {
                Some(f) if f.ratio.ln().abs() >= ratio.ln().abs() => {}
                Some(f) => *f = Phase { second: f.second.min(second), figure, ratio },
                None => found.push(Phase { second, figure, ratio }),
            }
        }
    }
    order::by_key(&mut found, |f| f.second);
    Ok(found)
}

fn ln_quantile(cells: &[(i64, u64)], n: u64, p: f64) -> Option<f64> {
    let rank = p * n.real();
    let mut below = 0.0;
    for (edge, count) in cells {
        below += count.real();
        if below >= rank {
            return (*edge > 0).then(|| (edge.real()).ln());
        }
    }
    None
}

/// Is there a change at all, and at which value do those before and after differ most? `values` in
/// their order of time.
fn any(values: &[f64]) -> Option<usize> {
    let scores = scores(values);
    let n = scores.len().real();
    let mean = scores.iter().sum::<f64>() / n;
    let sd = (scores.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / n).sqrt();
    if !sd.is_finite() || sd <= 0.0 {
        return None;
    }
    // Sums reach this in a run of n steady stretches with the probability that is allowed.
    let limit = (n / FALSE_ALARMS).ln() - 1.166;
    let (mut walk, mut low, mut high) = (0.0f64, 0.0f64, 0.0f64);
    let (mut up, mut down, mut greatest) = (0.0f64, 0.0f64, 0.0f64);
    let mut furthest = (0.0f64, 0);
    for (i, score) in scores.iter().enumerate() {
        let z = (score - mean) / sd;
        walk += z;
        if walk.abs() > furthest.0 {
            furthest = (walk.abs(), i + 1);
        }
        (low, high) = (low.min(walk), high.max(walk));
        up = (up + z - K).max(0.0);
        down = (down - z - K).max(0.0);
        greatest = greatest.max(up).max(down);
    }
    let changed = greatest > limit || wander_p((high - low) / n.sqrt()) < FALSE_ALARMS;
    changed.then_some(furthest.1)
}

/// The probability that a Brownian bridge has a range of `x` or more.
fn wander_p(x: f64) -> f64 {
    if x < 0.6 {
        return 1.0;
    }
    let term = |j: u32| {
        let square = (f64::from(j) * x).powi(2);
        2.0 * (4.0 * square - 1.0) * (-2.0 * square).exp()
    };
    (1..=8).map(term).sum::<f64>().clamp(0.0, 1.0)
}

/// Where the level of `values` changes, and by what factor.
pub(super) fn steps(values: &[f64]) -> Vec<(usize, f64)> {
    let Some(parted) = any(values) else { return Vec::new() };
    let mut differences: Vec<f64> = values.windows(2).map(|w| (w[1] - w[0]).abs()).collect();
    // The median difference of two normal values is 0.954 of their standard deviation.
    let sigma = (median(&mut differences) / 0.954).max(LEAST / 5.0);
    let mut out = Vec::new();
    let mut from = 0;
    while values.len().saturating_sub(from) > LEARN {
        let level = median(&mut values.iter().skip(from).take(LEARN).copied().collect::<Vec<_>>());
        let Some((at, alarm)) = first_alarm(values, from, level, sigma) else { break };
        let after = median(&mut values.iter().skip(at).take(LEARN).copied().collect::<Vec<_>>());
        // The level was learnt from few: what came before and after must differ themselves.
        let before: Vec<f64> = values.iter().take(at).skip(from).copied().collect();
        let counts = (before.len().max(1).real(), (values.len() - at).clamp(1, LEARN).real());
        let step = after - median(&mut before.clone());
        // A median varies 1.25 times as much as a mean.
        let chance = 4.0 * 1.25 * sigma * (1.0 / counts.0 + 1.0 / counts.1).sqrt();
        // With next to nothing before it, what was learnt was no level.
        let known = before.len() >= BEFORE_MIN;
        if known && step.abs() > LEAST.max(chance) {
            out.push((at, step.exp()));
        }
        from = if known { at } else { alarm.max(from + 1) };
    }
    if out.is_empty() {
        // Too small beside the spread of a few stretches, but not beside that of all of them.
        let (before, after) = values.split_at(parted.min(values.len()));
        let step = median(&mut after.to_vec()) - median(&mut before.to_vec());
        let whole = before.len() >= BEFORE_MIN && after.len() >= BEFORE_MIN;
        out.extend((whole && step.abs() > LEAST).then(|| (parted, step.exp())));
    }
    out
}

/// The first value of the stretch that drove a sum over the limit, and the one at which it did.
fn first_alarm(values: &[f64], from: usize, level: f64, sigma: f64) -> Option<(usize, usize)> {
    let (mut up, mut down) = (0.0f64, 0.0f64);
    let (mut up_from, mut down_from) = (from, from);
    for (i, v) in values.iter().enumerate().skip(from) {
        // One wild stretch is an outlier and not a phase: it counts for three spreads.
        let z = ((v - level) / sigma).clamp(-3.0, 3.0);
        up = (up + z - K).max(0.0);
        down = (down - z - K).max(0.0);
        if up == 0.0 {
            up_from = i + 1;
        }
        if down == 0.0 {
            down_from = i + 1;
        }
        if up > H {
            return Some((up_from, i));
        }
        if down > H {
            return Some((down_from, i));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn noisy(n: usize, seed: u64, level: impl Fn(usize) -> f64) -> Vec<f64> {
        let mut random = Random::new(seed);
        (0..n)
            .map(|i| level(i) + (0..12).map(|_| random.uniform()).sum::<f64>() * 0.05 - 0.3)
            .collect()
    }

    #[test]
    fn a_load_that_begins_is_marked_where_it_began() {
        let found = steps(&noisy(100, 1, |i| if i < 60 { 10.0 } else { 10.4 }));
        assert!(found.iter().any(|(at, ratio)| at.abs_diff(60) <= 2 && *ratio > 1.2), "{found:?}");
        assert!(found.len() <= 2, "{found:?}");
    }

    #[test]
    fn drift_is_marked_and_a_steady_run_seldom() {
        assert!(!steps(&noisy(200, 2, |i| 10.0 + 0.005 * i.real())).is_empty());
        // A first stretch that is wild is no phase, and has no ratio.
        let wild = steps(&noisy(100, 3, |i| if i < 1 { 14.0 } else { 10.0 }));
        assert!(wild.iter().all(|(_, ratio)| (0.5..2.0).contains(ratio)), "{wild:?}");
        let alarms = (0..200).filter(|s| !steps(&noisy(360, 10 + s, |_| 10.0)).is_empty()).count();
        assert!(alarms <= 2, "{alarms} of 200 steady runs");
    }

    /// One value a second: the p99 of a stretch is the greatest of ten, with a tail of its own.
    #[test]
    fn heavy_tails_at_one_value_a_second_are_no_change() {
        let greatest_of_ten = |random: &mut Random| {
            (0..10).map(|_| random.uniform().powf(-0.5)).fold(0.0f64, f64::max).ln()
        };
        let alarms = (0..300)
            .filter(|seed| {
                let mut random = Random::new(700 + seed);
                let values: Vec<f64> = (0..360).map(|_| greatest_of_ten(&mut random)).collect();
                !steps(&values).is_empty()
            })
            .count();
        assert!(alarms <= 3, "{alarms} of 300 steady runs");
    }

    #[test]
    fn a_phase_of_two_minutes_in_an_hour_is_marked() {
        let found = steps(&noisy(360, 5, |i| if (200..212).contains(&i) { 10.4 } else { 10.0 }));
        assert!(found.iter().any(|(at, _)| at.abs_diff(200) <= 2), "{found:?}");
        assert!((wander_p(1.747) - 0.05).abs() < 1e-3, "Kuiper's 5 %");
    }
}
