// SPDX-License-Identifier: MIT OR Apache-2.0
//! Quantiles, median, mode and survival curve of a distribution, signed: the early side
//! comes first.
//!
//! Units: ns. A quantile is the value of rank ceil(p·n), linear inside its
//! bucket and never outside the exact extremes. It is given only where at least ten values
//! lie beyond it (n >= 10/(1-p), or 10/p for the low ones), else how many more are needed.
//! In the lowest step of a source of coarse steps it is less than a step, never 0.
//! Not here: confidence intervals, and the P² estimates ([`crate::p2`]).

use serde::Serialize;
use tailbound_core::Distribution;
use tailbound_core::number::{Real as _, Whole as _};
use tailbound_core::stated::Stated;

/// The quantiles that every summary gives.
pub const STANDARD: [f64; 8] = [0.05, 0.5, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.99999];

/// Values that must lie beyond a quantile for it to be given.
const BEYOND_MIN: f64 = 10.0;

/// Stated quantiles that differ by less than this factor are one.
const NEAR: f64 = 1.02;

/// A quantile, or why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Quantile {
    /// It is known to within a bucket.
    Value {
        /// Best value.
        ns: f64,
        /// Least value it can be.
        low_ns: f64,
        /// Greatest value it can be.
        high_ns: f64,
    },
    /// Too few values.
    Needs {
        /// How many more it takes.
        more: u64,
    },
    /// The source put it into its lowest step, which it names 0: it is less than a step.
    Below {
        /// It is less than this.
        ns: i64,
        /// Least value it can be.
        low_ns: f64,
    },
    /// The source counted it, but in no bucket.
    AtLeast {
        /// It is this or more.
        ns: i64,
    },
    /// The source does not tell.
    Unknown,
}

impl Quantile {
    /// The best value, where there is one.
    #[must_use]
    pub fn ns(&self) -> Option<f64> {
        match self {
            Self::Value { ns, .. } => Some(*ns),
            _ => None,
        }
    }
}

/// The stretch where values are densest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Mode {
    /// Its middle, or the source's own value where the source is coarse.
    pub ns: f64,
    /// Its width.
    pub width_ns: u64,
}

/// A bucket on the signed axis, with inclusive bounds.
#[derive(Clone, Copy, Debug)]
struct Cell {
    low_ns: i64,
    high_ns: i64,
    width_ns: u64,
    count: u64,
}

impl Cell {
    fn middle(&self) -> f64 {
        f64::midpoint(self.low_ns.real(), self.high_ns.real())
    }
}

/// Non-empty buckets in ascending order of value.
fn cells(d: &Distribution) -> impl Iterator<Item = Cell> + '_ {
    let early = d.early.buckets().rev().map(|b| Cell {
        low_ns: -(b.low_ns + b.width_ns - 1).cast_signed(),
        high_ns: -b.low_ns.cast_signed(),
        width_ns: b.width_ns,
        count: b.count,
    });
    let late = d.late.buckets().map(|b| Cell {
        low_ns: b.low_ns.cast_signed(),
        high_ns: (b.low_ns + b.width_ns - 1).cast_signed(),
        width_ns: b.width_ns,
        count: b.count,
    });
    early.chain(late)
}

/// The same, cut to the exact extremes.
fn cut_cells(d: &Distribution) -> impl Iterator<Item = Cell> + '_ {
    // Over-range values share the top bucket, which then is the last one that is not empty.
    let top_ns =
        d.late.buckets().next_back().filter(|_| d.over_range > 0).map(|b| b.low_ns.cast_signed());
    cells(d).map(move |mut cell| {
        if top_ns == Some(cell.low_ns) {
            cell.high_ns = d.max_ns.unwrap_or(i64::MAX).max(cell.high_ns);
        }
        // An extreme outside the bucket would be a contradiction of the source: left alone.
        if let Some(min) = d.min_ns.filter(|m| *m <= cell.high_ns) {
            cell.low_ns = cell.low_ns.max(min);
        }
        if let Some(max) = d.max_ns.filter(|m| *m >= cell.low_ns) {
            cell.high_ns = cell.high_ns.min(max);
        }
        cell
    })
}

/// How many values a quantile of probability `p` takes.
#[must_use]
pub fn needed(p: f64) -> u64 {
    let beyond = p.min(1.0 - p);
    // 1 - 0.99999 is off by 5e-12 of itself.
    if beyond > 0.0 { round_up(BEYOND_MIN / beyond * (1.0 - 1e-9)) } else { u64::MAX }
}

/// Up to the next whole number, unless only rounding errors are above the last one.
fn round_up(x: f64) -> u64 {
    (x * (1.0 - 1e-12)).ceil().whole_u64()
}

/// The quantile of probability `p` (0 to 1) of `d`.
#[must_use]
pub fn quantile(d: &Distribution, p: f64) -> Quantile {
    if !(0.0..=1.0).contains(&p) || d.n == 0 && d.late.total() == 0 && d.early.total() == 0 {
        return if p.is_nan() || d.n > 0 { Quantile::Unknown } else { needs(p, 0) };
    }
    let binned = d.late.total().saturating_add(d.early.total());
    let all = binned.saturating_add(d.unbinned);
    if all < d.n {
        // Values that are in no bucket and are not said to be anywhere.
        return if d.n < needed(p) { needs(p, d.n) } else { Quantile::Unknown };
    }
    if all < needed(p) {
        return needs(p, all);
    }
    if !d.quantiles.is_empty() {
        let known = d.quantiles.at(p);
        // Beside a histogram only what the source says exactly is better.
        if binned == 0 || matches!(known, Stated::Exactly(_)) {
            return stated(d, known);
        }
    }
    let rank = round_up(p * all.real()).clamp(1, all);
    let unbinned_from = (d.unbinned > 0).then_some(d.unbinned_from_ns);
    if unbinned_from == Some(None) {
        return Quantile::Unknown;
    }
    let unbinned_from = unbinned_from.flatten();
    let mut below = 0u64;
    for cell in cut_cells(d) {
        if below.saturating_add(cell.count) >= rank {
            // An unbinned value may lie below this bucket: then the rank is not known.
            return match unbinned_from {
                Some(from) if edge(d, cell) > from.real() => Quantile::AtLeast { ns: from },
                _ => inside(d, cell, rank - below),
            };
        }
        below = below.saturating_add(cell.count);
    }
    unbinned_from.map_or(Quantile::Unknown, |ns| Quantile::AtLeast { ns })
}

/// A quantile of which only others that the source printed are known.
fn stated(d: &Distribution, known: Stated) -> Quantile {
    match known {
        Stated::Exactly(ns) => {
            Quantile::Value { ns: ns.real(), low_ns: ns.real(), high_ns: ns.real() }
        }
        // Two that are as near to each other as the edges of a bucket are one value.
        Stated::Between(low, high) if low >= 0 && high.real() <= low.real() * NEAR => {
            let (low_ns, high_ns) = (low.real(), high.real());
            Quantile::Value { ns: f64::midpoint(low_ns, high_ns), low_ns, high_ns }
        }
        Stated::Between(ns, _) | Stated::AtLeast(ns) => Quantile::AtLeast { ns },
        Stated::Unknown => d.min_ns.map_or(Quantile::Unknown, |ns| Quantile::AtLeast { ns }),
    }
}

/// The greatest value a bucket stands for.
fn edge(d: &Distribution, cell: Cell) -> f64 {
    if d.resolution_ns > 1 { source_value(d, cell) } else { cell.high_ns.real() }
}

fn needs(p: f64, have: u64) -> Quantile {
    Quantile::Needs { more: needed(p).saturating_sub(have) }
}

/// The value of rank `rank` (1 to `cell.count`) of a bucket.
fn inside(d: &Distribution, cell: Cell, rank: u64) -> Quantile {
    let (low_ns, high_ns) = (cell.low_ns.real(), cell.high_ns.real());
    if d.resolution_ns > 1 && cell.low_ns >= 0 && source_value(d, cell) == 0.0 {
        let ns = i64::try_from(d.resolution_ns).unwrap_or(i64::MAX);
        // A least value that is known more finely lies within the step, not within the bucket of 0.
        let least = d.min_ns.filter(|m| (0..ns).contains(m)).unwrap_or(0);
        return Quantile::Below { ns, low_ns: least.real() };
    }
    let exact = |ns: i64| Quantile::Value { ns: ns.real(), low_ns: ns.real(), high_ns: ns.real() };
    if let Some(max) = d.max_ns.filter(|m| *m == cell.high_ns && rank == cell.count) {
        return exact(max);
    }
    if let Some(min) = d.min_ns.filter(|m| *m == cell.low_ns && rank == 1) {
        return exact(min);
    }
    let ns = if d.resolution_ns > 1 {
        source_value(d, cell)
    } else if cell.count > 1 {
        // The ranks of a bucket are spread evenly from its first value to its last one.
        low_ns + (high_ns - low_ns) * (rank - 1).real() / (cell.count - 1).real()
    } else {
        cell.middle()
    };
    Quantile::Value { ns, low_ns, high_ns }
}

/// The value that a source of coarse steps put into this bucket: the least multiple of the
/// step in it. Where several fit, the bucket is wider than the step and the middle is as good.
fn source_value(d: &Distribution, cell: Cell) -> f64 {
    let step = i64::try_from(d.resolution_ns).unwrap_or(i64::MAX);
    let first = cell.low_ns.div_euclid(step).saturating_mul(step);
    let first = if first < cell.low_ns { first.saturating_add(step) } else { first };
    let last = cell.high_ns.div_euclid(step).saturating_mul(step);
    if first > last {
        cell.middle()
    } else {
        // As many multiples above as below: again a multiple.
        let steps = (last - first) / step / 2;
        first.saturating_add(steps.saturating_mul(step)).real()
    }
}

/// The median: the quantile of 0.5, under the same rules.
#[must_use]
pub fn median(d: &Distribution) -> Quantile {
    quantile(d, 0.5)
}

/// Where most values are: the stretch of one width that holds the most; of equals, the lowest.
///
/// The width is that of Freedman and Diaconis, twice the interquartile range over the cube
/// root of n, and at least a bucket of the histogram or a step of the source. With the
/// narrowest buckets alone a single value in one of 1 ns would outweigh the body of a
/// distribution whose buckets are wider.
#[must_use]
pub fn mode(d: &Distribution) -> Option<Mode> {
    let all: Vec<Cell> = cells(d)
        .map(|mut cell| {
            // The values of a coarse source stand for a whole step of it.
            cell.width_ns = cell.width_ns.max(d.resolution_ns);
            cell
        })
        .collect();
    let width_ns = stretch_ns(&all);
    let mut best: Option<(f64, usize, usize)> = None;
    let (mut end, mut held) = (0, 0u64);
    for (first, cell) in all.iter().enumerate() {
        // From the lower edge of one bucket; a bucket that is wider is a stretch by itself.
        let width = width_ns.max(cell.width_ns);
        let limit_ns = cell.low_ns.saturating_add_unsigned(width - 1);
        while let Some(next) = all.get(end).filter(|c| end <= first || c.high_ns <= limit_ns) {
            held = held.saturating_add(next.count);
            end += 1;
        }
        let density = held.real() / width.real();
        if best.is_none_or(|(most, ..)| density > most) {
            best = Some((density, first, end - 1));
        }
        held = held.saturating_sub(cell.count);
    }
    let (_, first, last) = best?;
    let (first, last) = (all.get(first)?, all.get(last)?);
    // The middle of a stretch may lie beyond the last value in it, which is known.
    let within = |ns: f64| {
        let ns = d.max_ns.map_or(ns, |max| ns.min(max.real()));
        d.min_ns.map_or(ns, |min| ns.max(min.real()))
    };
    if first.low_ns == last.low_ns {
        let ns = if d.resolution_ns > 1 { source_value(d, *first) } else { first.middle() };
        return Some(Mode { ns: within(ns), width_ns: first.width_ns });
    }
    let ns = f64::midpoint(first.low_ns.real(), last.high_ns.real());
    Some(Mode { ns: within(ns), width_ns })
}

/// The width of Freedman and Diaconis over `all`; at least 1 ns.
fn stretch_ns(all: &[Cell]) -> u64 {
    let n: u64 = all.iter().map(|c| c.count).sum();
    let at = |share: f64| {
        let rank = round_up(share * n.real()).max(1);
        let mut below = 0u64;
        let found = all.iter().find(|c| {
            below = below.saturating_add(c.count);
            below >= rank
        });
        found.map_or(0.0, Cell::middle)
    };
    round_up(2.0 * (at(0.75) - at(0.25)) / (n.real()).cbrt()).max(1)
}

/// The probability of being later than a value, as steps at the buckets' upper edges.
///
/// Values ascend, probabilities descend; the last step is the exact maximum with 0. Where
/// values are in no bucket the curve ends above 0, or is empty.
#[must_use]
pub fn survival(d: &Distribution) -> Vec<(f64, f64)> {
    let binned = d.late.total().saturating_add(d.early.total());
    let all = binned.saturating_add(d.unbinned);
    if all == 0 || all < d.n || d.unbinned > 0 && d.unbinned_from_ns.is_none() {
        return Vec::new();
    }
    let mut above = all;
    let mut curve = Vec::new();
    for cell in cut_cells(d) {
        let edge = edge(d, cell);
        if d.unbinned > 0 && d.unbinned_from_ns.is_some_and(|from| edge > from.real()) {
            return curve;
        }
        above = above.saturating_sub(cell.count);
        curve.push((edge, above.real() / all.real()));
    }
    curve
}

/// The name of a quantile: `p50`, `p99.9`.
#[must_use]
pub fn label(p: f64) -> String {
    let text = format!("{:.6}", p * 100.0);
    format!("p{}", text.trim_end_matches('0').trim_end_matches('.'))
}
