// SPDX-License-Identifier: MIT OR Apache-2.0
//! One system against another: every figure with its intervals and its word, one permutation
//! p, distance, dominance and exceedances, and the answer in one word.
//!
//! Units: ns, ratios of the second system to the first.
//! The unit of everything is the round (or run, or stretch): what happens within one is
//! correlated, and tests that take each wake-up for an independent one measure how many there
//! were.
//! Not here: where units come from ([`super::block`], [`super::stretches`]), sentences
//! ([`super::sentence`]).

use serde::Serialize;

use super::block::Block;
use super::design::Design;
use super::distance::wasserstein_ns;
use super::exceedance::{self, Exceedance};
use super::interval::{Interval, deviation, intervals, quantile_sorted, widening};
use super::margin::{Word, judge, more_units};
use super::matrix::{AT_ONCE, weigh};
use super::refusal::Refusal;
use super::resample::{Figures, Resampler, Weights};
use super::settings::{PROBABILITIES, Settings};
use super::shift::{self, ShiftPoint};
use crate::quantile::{label, needed};
use crate::random::Random;
use tailbound_core::number::Real as _;

/// One figure of both systems.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Feature {
    /// `p50`, …, `block maximum` (the median over the units of each unit's latest).
    pub name: String,
    /// Its probability, for a quantile.
    pub probability: Option<f64>,
    /// Of the first system.
    pub a_ns: f64,
    /// Of the second.
    pub b_ns: f64,
    /// Second to first; absent where one of them is not always late.
    pub ratio: Option<Interval>,
    /// Second less first.
    pub difference_ns: Interval,
    /// What can be said.
    pub word: Word,
    /// About how many more units would decide it, if it is inconclusive; absent where the
    /// difference is too close to the margin for any number.
    pub more_units: Option<u64>,
}

/// On which side every quantile lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dominance {
    /// The second system is later at every quantile judged.
    Later,
    /// It is earlier at every one.
    Earlier,
}

/// One system against another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// What the units are.
    pub design: Design,
    /// How many of each system.
    pub units: [usize; 2],
    /// The answer: a regression of any figure is one.
    pub word: Word,
    /// The figures.
    pub features: Vec<Feature>,
    /// Quantiles that so few activations do not have, with how many more it takes.
    pub unsupported: Vec<(String, u64)>,
    /// Figures that are not compared because they lie, or by chance could, among censored values.
    pub censored: Vec<String>,
    /// The least value from which on a source censors: values in no bucket are this or more.
    pub censored_from_ns: Option<i64>,
    /// Share of exchanges of labels that differ as much; exact for rounds. Absent where no
    /// figure has a ratio.
    pub p: Option<f64>,
    /// Wasserstein's distance.
    pub wasserstein_ns: f64,
    /// What 95 % of the exchanges of labels stay below.
    pub wasserstein_by_chance_ns: f64,
    /// Whether one system is later everywhere.
    pub dominance: Option<Dominance>,
    /// How often each is later than the deadline, where there is one and every unit knows.
    pub exceedance: Option<Exceedance>,
    /// The ratio over the whole range of probabilities.
    pub shift: Vec<ShiftPoint>,
}

/// Compares `b` with `a`; of [`Design::Rounds`], unit k of both is round k.
///
/// # Errors
/// Too few units, or a unit without activations.
pub fn difference(
    a: &[Block],
    b: &[Block],
    design: Design,
    deadline_ns: Option<i64>,
    settings: &Settings,
) -> Result<Difference, Refusal> {
    check(a, b, design)?;
    // What one source cannot tell apart no unit may: ranks would not be those of values.
    let censored_from_ns = a.iter().chain(b).filter_map(Block::censored_from).min();
    let Some(from) = censored_from_ns else { return Ok(of(a, b, design, deadline_ns, settings)) };
    let alike = |units: &[Block]| -> Vec<Block> {
        units.iter().map(|u| u.clone().censored(from)).collect()
    };
    let d = of(&alike(a), &alike(b), design, deadline_ns, settings);
    Ok(Difference { censored_from_ns, ..d })
}

fn of(
    a: &[Block],
    b: &[Block],
    design: Design,
    deadline_ns: Option<i64>,
    settings: &Settings,
) -> Difference {
    let n = |units: &[Block]| units.iter().map(|u| u.n).sum::<u64>();
    let n = n(a).min(n(b));
    let (judged, unsupported): (Vec<f64>, Vec<f64>) =
        PROBABILITIES.iter().partition(|p| needed(**p) <= n);
    let family = Resampler::new(a, b, design, &judged);
    let units = [a.len(), b.len()];
    let wider = widening(units[0].min(units[1]), settings.confidence);
    let estimate = family.estimate();
    let grid = shift::probabilities(n);
    let ones = Weights { a: vec![1.0; a.len()], b: vec![1.0; b.len()] };

    let mut random = Random::new(settings.seed);
    let mut replicates = Vec::with_capacity(settings.replicates);
    let mut curves = Vec::with_capacity(settings.replicates);
    let mut rates = Vec::with_capacity(settings.replicates);
    while replicates.len() < settings.replicates {
        let draws = AT_ONCE.min(settings.replicates - replicates.len());
        let draws: Vec<_> = (0..draws).map(|_| family.draw(&mut random)).collect();
        for (weights, sums) in draws.iter().zip(family.sums(&draws)) {
            replicates.push(family.figures(&sums, weights));
            curves.push(family.along(&sums, &grid));
            rates.push(exceedance::log_ratio(a, b, weights));
        }
    }
    let (known, censored) = known(&judged, &estimate, &replicates);
    let features = features(&known, &judged, &estimate, &replicates, wider, units, settings);
    let (p, by_chance) = exchange(&family, &estimate, &known, &features, settings, &mut random);
    let mut sums = [vec![0.0; family.matrix.buckets()], vec![0.0; family.matrix.buckets()]];
    for (sum, rows) in sums.iter_mut().zip(&family.matrix.rows) {
        weigh(rows, &vec![1.0; rows.len()], sum);
    }
    let mut exceeded = deadline_ns.and_then(|limit| exceedance::counts(a, b, limit));
    if let Some(e) = exceeded.as_mut().filter(|e| e.beyond != [0, 0]) {
        let estimate = exceedance::log_ratio(a, b, &ones);
        e.ratio = exceedance::interval(estimate, rates, wider, settings.confidence);
    }
    Difference {
        design,
        units,
        word: overall(&features, &censored),
        dominance: dominance(&features),
        features,
        unsupported: unsupported.iter().map(|p| (label(*p), needed(*p) - n)).collect(),
        censored,
        censored_from_ns: None,
        p,
        wasserstein_ns: wasserstein_ns(&family.matrix, &sums[0], &sums[1]),
        wasserstein_by_chance_ns: by_chance,
        exceedance: exceeded,
        shift: shift::points(
            &grid,
            &family.along(&sums, &grid),
            &curves,
            wider,
            settings.confidence,
        ),
    }
}

fn check(a: &[Block], b: &[Block], design: Design) -> Result<(), Refusal> {
    let have = a.len().min(b.len());
    if have < design.units_min() {
        return Err(Refusal::TooFew { have, design });
    }
    if design.is_paired() && a.len() != b.len() {
        return Err(Refusal::Unpaired { a: a.len(), b: b.len() });
    }
    if a.iter().chain(b).any(|u| u.n == 0) {
        return Err(Refusal::Empty { design });
    }
    Ok(())
}

fn column(of: &[Figures], at: usize, f: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    let one = |x: &Figures| {
        f(x.a.get(at).copied().unwrap_or(f64::NAN), x.b.get(at).copied().unwrap_or(f64::NAN))
    };
    of.iter().map(one).collect()
}

/// The name of figure `i`.
fn name(judged: &[f64], i: usize) -> String {
    judged.get(i).map_or_else(|| "block maximum".to_owned(), |p| label(*p))
}

/// Figures whose size is known also in every replicate, and the names of the others.
fn known(judged: &[f64], estimate: &Figures, replicates: &[Figures]) -> (Vec<usize>, Vec<String>) {
    let finite = |i: &usize| {
        let of = |f: &Figures| {
            f.a.get(*i).is_some_and(|v| v.is_finite()) && f.b.get(*i).is_some_and(|v| v.is_finite())
        };
        of(estimate) && replicates.iter().all(of)
    };
    let (known, censored): (Vec<usize>, Vec<usize>) = (0..estimate.a.len()).partition(finite);
    (known, censored.into_iter().map(|i| name(judged, i)).collect())
}

fn features(
    known: &[usize],
    judged: &[f64],
    estimate: &Figures,
    replicates: &[Figures],
    wider: f64,
    units: [usize; 2],
    settings: &Settings,
) -> Vec<Feature> {
    let pair = |i: usize| {
        (estimate.a.get(i).copied().unwrap_or(0.0), estimate.b.get(i).copied().unwrap_or(0.0))
    };
    // There is no ratio to nothing or to an early value.
    let positive = |i: &usize| {
        let of = |f: &Figures| {
            f.a.get(*i).is_some_and(|v| *v > 0.0) && f.b.get(*i).is_some_and(|v| *v > 0.0)
        };
        of(estimate) && replicates.iter().all(of)
    };
    let with_ratio: Vec<usize> = known.iter().copied().filter(positive).collect();
    let logs: Vec<f64> = with_ratio.iter().map(|i| pair(*i)).map(|(a, b)| (b / a).ln()).collect();
    let columns: Vec<Vec<f64>> =
        with_ratio.iter().map(|i| column(replicates, *i, |a, b| (b / a).ln())).collect();
    let ratios = intervals(&logs, &columns, wider, settings.confidence);
    let differences: Vec<f64> = known.iter().map(|i| pair(*i)).map(|(a, b)| b - a).collect();
    let columns: Vec<Vec<f64>> =
        known.iter().map(|i| column(replicates, *i, |a, b| b - a)).collect();
    let differences = intervals(&differences, &columns, wider, settings.confidence);
    let one = |(i, difference_ns): (usize, Interval)| {
        let (a_ns, b_ns) = pair(i);
        let at = with_ratio.iter().position(|k| *k == i);
        let ratio = at.and_then(|k| ratios.get(k)).map(|r| r.map(f64::exp));
        let word = judge(ratio.as_ref(), &difference_ns, &settings.margin);
        let more = ratio
            .filter(|_| word == Word::Inconclusive)
            .and_then(|r| more_units(&r, a_ns, &settings.margin, units[0].min(units[1])));
        let probability = judged.get(i).copied();
        Feature {
            name: name(judged, i),
            probability,
            a_ns,
            b_ns,
            ratio,
            difference_ns,
            word,
            more_units: more,
        }
    };
    known.iter().copied().zip(differences).map(one).collect()
}

/// The p-value of the greatest difference of any figure with a ratio, each in units of its
/// deviation under exchange, which does not depend on the labels: so the test is exact. And
/// what Wasserstein's distance comes to by chance.
fn exchange(
    family: &Resampler<'_>,
    estimate: &Figures,
    known: &[usize],
    features: &[Feature],
    settings: &Settings,
    random: &mut Random,
) -> (Option<f64>, f64) {
    let mut exchanged = Vec::with_capacity(settings.permutations);
    let mut distances = Vec::with_capacity(settings.permutations);
    let all = family.total();
    while exchanged.len() < settings.permutations {
        let deals = AT_ONCE.min(settings.permutations - exchanged.len());
        let deals: Vec<_> = (0..deals).map(|_| family.deal(random)).collect();
        for (figures, [a, b]) in family.exchanged(&deals, &all) {
            distances.push(wasserstein_ns(&family.matrix, &a, &b));
            exchanged.push(figures);
        }
    }
    distances.sort_unstable_by(f64::total_cmp);
    let by_chance = quantile_sorted(&distances, settings.confidence);
    let mut greatest = vec![0.0f64; exchanged.len()];
    let mut seen = 0.0f64;
    let mut any = false;
    for i in known.iter().zip(features).filter(|(_, f)| f.ratio.is_some()).map(|(i, _)| *i) {
        let column = column(&exchanged, i, |a, b| (b / a).ln());
        let Some((a, b)) = estimate.a.get(i).zip(estimate.b.get(i)) else { continue };
        // A figure that exchange makes early has no logarithm.
        if column.iter().any(|v| !v.is_finite()) {
            continue;
        }
        let sd = deviation(&column);
        let scale = if sd > 0.0 { sd } else { 1.0 };
        any = true;
        seen = seen.max(((b / a).ln() / scale).abs());
        greatest.iter_mut().zip(&column).for_each(|(g, v)| *g = g.max((v / scale).abs()));
    }
    // An exchange that comes to the same thing must count, whatever the order of its sums.
    let as_great = greatest.iter().filter(|g| **g >= seen * (1.0 - 1e-12)).count();
    (any.then(|| (1.0 + as_great.real()) / (1.0 + greatest.len().real())), by_chance)
}

/// The answer in one word; `censored` are figures that are left out because their size is not known.
fn overall(features: &[Feature], censored: &[String]) -> Word {
    let any = |word| features.iter().any(|f| f.word == word);
    if any(Word::Regression) {
        Word::Regression
    } else if any(Word::Improvement) {
        Word::Improvement
    } else if any(Word::Inconclusive) || features.is_empty() || !censored.is_empty() {
        Word::Inconclusive
    } else {
        Word::Equivalent
    }
}

fn dominance(features: &[Feature]) -> Option<Dominance> {
    let quantiles = || features.iter().filter(|f| f.probability.is_some());
    let all = |side: fn([f64; 2]) -> bool| {
        quantiles().count() > 0 && quantiles().all(|f| side(f.difference_ns.simultaneous))
    };
    if all(|[low, _]| low > 0.0) {
        Some(Dominance::Later)
    } else if all(|[_, high]| high < 0.0) {
        Some(Dominance::Earlier)
    } else {
        None
    }
}
