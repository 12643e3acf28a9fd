// SPDX-License-Identifier: MIT OR Apache-2.0
//! The procedure on a plain series of block maxima: gate, threshold, fit, limits; the greatest
//! of them is the bound.
//!
//! Units: those of the values.
//! Everything in here sees only numbers in the order of time; what is known about the run
//! beside them is judged before (`refuse.rs`).
//! Source: docs/results/bound.md.

use serde::Serialize;

use super::few::{Few, SURPRISE_MAX};
use super::gate::{Gate, regroup};
use super::gpd::{Excesses, Gpd, SHAPE_MAX, SHAPE_MIN};
use super::limits;
use super::threshold::{self, Spread, Threshold};
use crate::chi::chi_square_quantile;
use crate::random::Random;
use tailbound_core::number::Real as _;

/// Fewest blocks: 50 exceedances of 5 %.
pub const BLOCKS_MIN: usize = 1000;

/// Level of each of the three limits at which their greatest reaches 95 %.
///
/// Calibrated on tails of known shape: the likelihood of a few dozen exceedances alone holds
/// less often than it says. docs/results/bound.md has the study.
pub const INTERNAL_LEVEL: f64 = 0.975;

/// Level of the upper limit of the shape that decides whether the tail may have no mean.
pub const SHAPE_LEVEL: f64 = 0.9;

/// Higher thresholds of which the limit without an end counts too: those that had to fit.
///
/// Without them the bound held in 83 % of all cases on a tail of which the heavy part shows in
/// one second of fifty only: a fit to the twentieth greatest seconds hardly sees it.
const HIGHER: usize = 2;

/// Numbers of greatest values that are also bounded by themselves, as an exponential tail.
///
/// A second mechanism that was met a few times bends the fit less than it should: without these
/// limits the bound held in 60 to 84 % where it was met once or twice.
const FEW: [usize; 6] = [1, 2, 3, 5, 10, 20];

/// How far those limits count: so many times the fitted limit, both from the threshold on. One value
/// alone says so little that its limit would be many times that of any sound tail.
const FEW_MOST: f64 = 3.0;

/// Numbers of blocks that are taken together until the gate is passed.
pub const FACTORS: [usize; 6] = [1, 2, 5, 10, 30, 60];

/// Ties among the exceedances from which on the step of the source matters.
const TIES_MAX: f64 = 0.1;

/// Largest step of the source, as a share of the scale.
const STEP_MAX: f64 = 0.01;

/// Why there is no bound.
#[derive(Clone, Debug, PartialEq)]
pub enum Stop {
    /// Fewer blocks than [`BLOCKS_MIN`].
    Few,
    /// No usable block length passes the gate; the last one tried.
    Gate(Gate),
    /// The greatest few are of another kind than the rest.
    Apart(Gate, Few),
    /// At no threshold does the fit hold.
    NoThreshold(Gate),
    /// The exceedances come in bursts.
    Bursts(Gate, Threshold, Spread),
    /// Values in steps that are coarse against the scale.
    Coarse {
        /// Gate.
        gate: Gate,
        /// Threshold.
        threshold: Threshold,
        /// The fitted scale.
        scale: f64,
    },
    /// The shape may be 1 or more.
    NoMean(Gate, Threshold, Gpd),
    /// What is asked for lies inside the data.
    Inside,
}

/// The three limits of one level.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Limits {
    /// Best value, with every shape.
    pub point: f64,
    /// Limit with every shape.
    pub free: f64,
    /// Limit without credit for an end of the tail.
    pub no_end: f64,
    /// Limit of an exponential tail.
    pub exponential: f64,
    /// Greatest limit without an end from the next higher thresholds; `None`: there is none.
    pub higher: Option<f64>,
    /// Greatest exponential limit of the few greatest values alone, as far as it counts.
    pub few: Option<f64>,
}

impl Limits {
    /// The greatest of all.
    #[must_use]
    pub fn bound(&self) -> f64 {
        let fitted = self.fitted();
        self.few.map_or(fitted, |few| few.max(fitted))
    }

    /// The greatest of those that come from a fit of the tail.
    #[must_use]
    pub fn fitted(&self) -> f64 {
        self.higher.map_or(self.of_three(), |h| h.max(self.of_three()))
    }

    /// The greatest of the three at the threshold that was taken.
    #[must_use]
    pub fn of_three(&self) -> f64 {
        self.free.max(self.no_end).max(self.exponential)
    }
}

/// What the procedure found.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    /// How many of the given blocks were taken together.
    pub factor: usize,
    /// The tests.
    pub gate: Gate,
    /// The threshold.
    pub threshold: Threshold,
    /// Exceedances in time.
    pub spread: Spread,
    /// The fit.
    pub fit: Gpd,
    /// Upper limit of its shape at [`INTERNAL_LEVEL`].
    pub shape_upper: f64,
    /// Standard deviation over mean of the excesses.
    pub variation: f64,
    /// The limits, as values (not excesses).
    pub limits: Limits,
    /// Blocks after they were taken together.
    pub blocks: usize,
    tail: Tail,
}

/// Bounds the level that a block exceeds with probability `asked`.
///
/// `values` are block maxima in the order of time; `step` is that of their source, 0 if they
/// are exact; `seed` is for spreading values over their step.
///
/// # Errors
/// Why there is none.
pub fn extrapolate(values: &[f64], asked: f64, step: f64, seed: u64) -> Result<Fitted, Stop> {
    if values.len() < BLOCKS_MIN {
        return Err(Stop::Few);
    }
    let mut random = Random::new(seed);
    let spread_out: Vec<f64> =
        values.iter().map(|v| if step > 1.0 { v + step * random.uniform() } else { *v }).collect();
    let (factor, series, gate) = stationary(&spread_out)?;
    let descending = descending(&series);
    if let Some(few) = apart(&descending) {
        return Err(Stop::Apart(gate, few));
    }
    let threshold = threshold::choose(&descending).ok_or(Stop::NoThreshold(gate))?;
    let spread = Spread::of(&series, threshold.value);
    if !spread.passed() {
        return Err(Stop::Bursts(gate, threshold, spread));
    }
    let k = threshold.exceedances;
    let excesses = threshold::excesses(&descending, k).ok_or(Stop::NoThreshold(gate))?;
    let fit = excesses.fit(SHAPE_MIN, SHAPE_MAX);
    if step > 1.0 && step >= STEP_MAX * fit.scale && ties(&regroup(values, factor), k) > TIES_MAX {
        return Err(Stop::Coarse { gate, threshold, scale: fit.scale });
    }
    let shape_upper = limits::shape_upper(&excesses, &fit, SHAPE_LEVEL)
        .ok_or(Stop::NoMean(gate, threshold, fit))?;
    let tail = Tail { excesses, base: threshold.value, blocks: series.len().real(), factor };
    let limits = tail.limits(asked).ok_or(Stop::Inside)?;
    Ok(Fitted {
        gate,
        threshold,
        spread,
        fit,
        shape_upper,
        variation: tail.excesses.variation(),
        limits,
        factor,
        blocks: series.len(),
        tail,
    })
}

impl Fitted {
    /// The limits at another probability `q` of a given (not regrouped) block; `None` inside
    /// the data.
    #[must_use]
    pub fn at(&self, q: f64) -> Option<Limits> {
        self.tail.limits(q)
    }

    /// The limits if the largest observation had not been made.
    #[must_use]
    pub fn without_largest(&self, q: f64) -> Option<Limits> {
        let excesses = self.tail.excesses.without_largest()?;
        Tail { excesses, blocks: self.tail.blocks - 1.0, ..self.tail.clone() }.limits(q)
    }
}

/// The excesses over a threshold, and of how many blocks they are.
#[derive(Clone, Debug, PartialEq)]
struct Tail {
    excesses: Excesses,
    base: f64,
    blocks: f64,
    factor: usize,
}

impl Tail {
    /// One in how many of `k` exceedances is what a given block has with probability `q`;
    /// `None`: not even one, so that the level lies inside the data.
    fn one_in(&self, k: f64, q: f64) -> Option<f64> {
        // Of a group of blocks: none of its blocks above.
        let q = 1.0 - (1.0 - q).powf(self.factor.real());
        let r = k / self.blocks / q;
        (r > 1.0 && r.is_finite()).then_some(r)
    }

    fn limits(&self, q: f64) -> Option<Limits> {
        let k = self.excesses.k();
        let r = self.one_in(k, q)?;
        let (free, _) = limits::by_profile(&self.excesses, r, INTERNAL_LEVEL, SHAPE_MIN);
        let (no_end, _) = limits::by_profile(&self.excesses, r, INTERNAL_LEVEL, 0.0);
        let exponential = limits::by_exponential(&self.excesses, r, INTERNAL_LEVEL);
        let fitted = Limits {
            point: self.base + free.point,
            free: self.base + free.upper,
            no_end: self.base + no_end.upper,
            exponential: self.base + exponential.upper,
            higher: self.higher(q),
            few: None,
        };
        let most = self.base + FEW_MOST * (fitted.fitted() - self.base);
        Some(Limits { few: self.few(q).map(|few| few.min(most)), ..fitted })
    }

    /// The limit of the greatest few values alone: exact if they are exponential above the next.
    fn few(&self, q: f64) -> Option<f64> {
        let descending = descending(self.excesses.values());
        FEW.into_iter()
            .filter_map(|m| {
                let r = self.one_in(m.real(), q)?;
                let next = *descending.get(m)?;
                let sum: f64 = descending.iter().take(m).map(|y| y - next).sum();
                let scale = 2.0 * sum / chi_square_quantile(2.0 * m.real(), 1.0 - INTERNAL_LEVEL);
                Some(self.base + next + scale * r.ln())
            })
            .reduce(f64::max)
    }

    fn higher(&self, q: f64) -> Option<f64> {
        let descending = descending(self.excesses.values());
        threshold::candidates_from(descending.len())
            .into_iter()
            .skip(1)
            .take(HIGHER)
            .filter_map(|k| {
                let r = self.one_in(k.real(), q)?;
                let excesses = threshold::excesses(&descending, k)?;
                let (level, _) = limits::by_profile(&excesses, r, INTERNAL_LEVEL, 0.0);
                Some(self.base + descending.get(k)? + level.upper)
            })
            .reduce(f64::max)
    }
}

/// The greatest few, if they are of another kind than the rest: of the lowest, of a middle and of the
/// highest threshold that can be taken.
fn apart(descending: &[f64]) -> Option<Few> {
    let candidates = threshold::candidates(descending.len());
    [candidates.first(), candidates.get(candidates.len() / 2), candidates.last()]
        .into_iter()
        .flatten()
        .filter_map(|k| {
            let base = *descending.get(*k)?;
            let excesses: Vec<f64> = descending.iter().take(*k).map(|v| v - base).collect();
            let few = Few::of(&excesses)?;
            Some(Few { below: base + few.below, above: base + few.above, ..few })
        })
        .max_by(|a, b| a.surprise.total_cmp(&b.surprise))
        .filter(|few| few.surprise > SURPRISE_MAX)
}

/// The first number of blocks taken together that passes the gate.
fn stationary(values: &[f64]) -> Result<(usize, Vec<f64>, Gate), Stop> {
    let mut last = None;
    for factor in FACTORS {
        let series = regroup(values, factor);
        if series.len() < BLOCKS_MIN {
            break;
        }
        let gate = Gate::of(&series);
        if gate.passed() {
            return Ok((factor, series, gate));
        }
        last = Some(gate);
    }
    Err(last.map_or(Stop::Few, Stop::Gate))
}

pub(crate) fn descending(values: &[f64]) -> Vec<f64> {
    let mut out = values.to_vec();
    out.sort_unstable_by(f64::total_cmp);
    out.reverse();
    out
}

/// The share of the `k` greatest values that equal their neighbour.
fn ties(values: &[f64], k: usize) -> f64 {
    let descending = descending(values);
    let top = descending.get(..k).unwrap_or(&descending);
    let equal = top.windows(2).filter(|w| w[0].total_cmp(&w[1]).is_eq()).count();
    equal.real() / top.len().max(1).real()
}
