// SPDX-License-Identifier: MIT OR Apache-2.0
//! Change points of a series of runs: E-divisive with a permutation test and a margin.
//!
//! Units: natural logarithms of ns.
//! A figure enters only if every run has it; each is divided by the spread of its differences
//! from run to run, so that a restless p99.99 does not drown a quiet median. Distances are
//! computed once; a split of n runs costs one pass over their n² distances, also in each
//! permutation, of which there are few where a split is clearly nothing. Where runs resemble their
//! neighbours, series of chance keep that resemblance (`lasting.rs`). A split leaves at least five runs on each side;
//! where fewer are of the new level yet, it is found too early. So each split that is kept is moved to the run from which
//! on the runs are nearer to the new level than to the old one (`placed`).
//! Source: Matteson and James, "A nonparametric approach for multiple change point analysis of
//! multivariate data", JASA 2014, with alpha = 1.

use serde::Serialize;
use tailbound_core::order;

use super::features::{FIGURES, Features};
use super::lasting::Lasting;
use crate::median::median;
use crate::random::Random;
use tailbound_core::number::Real as _;

/// Version of the method, part of every answer.
pub const METHOD: &str = "e-divisive/3";

/// Beginnings of a stretch of runs of which the best split is looked for.
const BEGINNINGS: usize = 8;

/// Runs above which fewer permutations are drawn.
const LONG: usize = 300;

/// How a series is judged.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Settings {
    /// Fewest runs between two changes.
    pub segment_min: usize,
    /// A split must be better than all but this share of the permutations.
    pub level: f64,
    /// Permutations, at most.
    pub permutations: u32,
    /// A figure must move by more than this share.
    pub margin: f64,
    /// Seed of the permutations.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { segment_min: 5, level: 0.01, permutations: 499, margin: 0.05, seed: 1 }
    }
}

/// A figure before and after a change: medians of the two stretches.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Moved {
    /// Which of [`FIGURES`].
    pub figure: &'static str,
    /// Median before, ns.
    pub before_ns: f64,
    /// Median after, ns.
    pub after_ns: f64,
    /// After over before.
    pub ratio: f64,
    /// Is that more than the margin?
    pub beyond_margin: bool,
}

/// One change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// The first run after it, from 0.
    pub at: usize,
    /// Share of the permutations that split as well.
    pub p: f64,
    /// All figures used.
    pub moved: Vec<Moved>,
    /// A figure beyond the margin became later.
    pub worse: bool,
}

/// What a series of runs says.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct History {
    /// [`METHOD`].
    pub method: &'static str,
    /// How it was judged.
    pub settings: Settings,
    /// Runs.
    pub runs: usize,
    /// How much of its deviation a run keeps from the one before, where that is more than chance: then
    /// a level that wanders is no change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lasting: Option<f64>,
    /// Figures that every run has: those that were used.
    pub figures: Vec<&'static str>,
    /// The changes, in order.
    pub changes: Vec<Change>,
    /// Splits that chance does not explain but that moved nothing beyond the margin.
    pub within_margin: usize,
    /// Why nothing was looked for.
    pub why_not: Option<String>,
}

impl History {
    /// Did the last change make anything worse?
    #[must_use]
    pub fn regressed(&self) -> bool {
        self.changes.last().is_some_and(|c| c.worse)
    }
}

/// Looks for changes in `runs`, which are in the order of time.
#[must_use]
pub fn history(runs: &[Features], settings: Settings) -> History {
    let figures: Vec<usize> =
        (0..FIGURES.len()).filter(|i| runs.iter().all(|r| r.ln(*i).is_some())).collect();
    let mut out = History {
        method: METHOD,
        settings,
        runs: runs.len(),
        lasting: None,
        figures: figures.iter().filter_map(|i| FIGURES.get(*i).copied()).collect(),
        changes: Vec::new(),
        within_margin: 0,
        why_not: None,
    };
    let least = settings.segment_min.max(2) * 2;
    if runs.len() < least {
        out.why_not =
            Some(format!("{} runs are too few: it takes {least} to see a change", runs.len()));
        return out;
    }
    if figures.is_empty() {
        out.why_not = Some("there is no figure that every run has".to_owned());
        return out;
    }
    let columns = columns(runs, &figures);
    let levels = columns.clone();
    let chance = Chance { distances: Distances::of(&columns), lasting: Lasting::of(columns) };
    out.lasting = chance.lasting.greatest();
    let mut random = Random::new(settings.seed);
    let mut found = Vec::new();
    split(&chance, 0..runs.len(), settings, &mut random, &mut found);
    order::by_key(&mut found, |f: &(usize, f64)| f.0);
    placed(&levels, &mut found, runs.len(), settings.segment_min.max(2));
    // A split within the margin is no change; its neighbours then border on each other.
    loop {
        let ends = bounds(&found, runs.len());
        let all: Vec<Change> = found
            .iter()
            .zip(ends.windows(3))
            .map(|((at, p), w)| change(runs, &figures, *at, *p, w[0]..w[2], settings.margin))
            .collect();
        match all.iter().position(|c| !c.moved.iter().any(|m| m.beyond_margin)) {
            Some(i) => {
                found.remove(i);
                out.within_margin += 1;
            }
            None => {
                out.changes = all;
                return out;
            }
        }
    }
}

/// Moves each split, by fewer runs than a stretch has at least, to where the runs on both sides are nearest to the median of
/// their own side: the first run of a new level, also where it has few runs yet.
fn placed(columns: &[Vec<f64>], found: &mut [(usize, f64)], runs: usize, least: usize) {
    for i in 0..found.len() {
        let ends = bounds(found, runs);
        let (Some(from), Some(at), Some(to)) = (ends.get(i), ends.get(i + 1), ends.get(i + 2))
        else {
            continue;
        };
        let (from, at, to) = (*from, *at, *to);
        let middle = |c: &Vec<f64>, range: std::ops::Range<usize>| {
            median(&mut c.get(range).unwrap_or_default().to_vec())
        };
        let levels: Vec<(f64, f64)> =
            columns.iter().map(|c| (middle(c, from..at), middle(c, at..to))).collect();
        // How much nearer to the old level than to the new one a run is.
        let nearer = |run: usize| -> f64 {
            let one = |(c, (old, new)): (&Vec<f64>, &(f64, f64))| {
                let value = c.get(run).copied().unwrap_or(*old);
                (value - new).abs() - (value - old).abs()
            };
            columns.iter().zip(&levels).map(one).sum()
        };
        let first = (at + 1).saturating_sub(least).max(from + 1);
        let last = (at + least - 1).min(to.saturating_sub(1));
        // The sum over all runs before a place is greatest where all of them are of the old level.
        let (mut best, mut sum) = ((first, 0.0), 0.0);
        for run in first..last {
            sum += nearer(run);
            if sum > best.1 {
                best = (run + 1, sum);
            }
        }
        if let Some(split) = found.get_mut(i) {
            split.0 = best.0;
        }
    }
}

fn bounds(found: &[(usize, f64)], runs: usize) -> Vec<usize> {
    std::iter::once(0).chain(found.iter().map(|f| f.0)).chain([runs]).collect()
}

fn change(
    runs: &[Features],
    figures: &[usize],
    at: usize,
    p: f64,
    within: std::ops::Range<usize>,
    margin: f64,
) -> Change {
    let side = |range: std::ops::Range<usize>, i: usize| {
        let mut all: Vec<f64> =
            runs.get(range).unwrap_or_default().iter().filter_map(|r| r.ln(i)).collect();
        median(&mut all)
    };
    let moved: Vec<Moved> = figures
        .iter()
        .filter_map(|i| {
            let (before, after) = (side(within.start..at, *i), side(at..within.end, *i));
            Some(Moved {
                figure: FIGURES.get(*i).copied()?,
                before_ns: before.exp(),
                after_ns: after.exp(),
                ratio: (after - before).exp(),
                beyond_margin: (after - before).abs() > margin.ln_1p(),
            })
        })
        .collect();
    let worse = moved.iter().any(|m| m.beyond_margin && m.ratio > 1.0);
    Change { at, p, moved, worse }
}

/// The figures' logarithms, one column each, in units of their spread.
fn columns(runs: &[Features], figures: &[usize]) -> Vec<Vec<f64>> {
    let one = |i: &usize| {
        let values: Vec<f64> = runs.iter().filter_map(|r| r.ln(*i)).collect();
        let mut steps: Vec<f64> = values.windows(2).map(|w| (w[1] - w[0]).abs()).collect();
        // At least 0.1 %: buckets are no finer, and equal runs have no spread.
        let scale = median(&mut steps).max(1e-3);
        values.into_iter().map(|v| v / scale).collect()
    };
    figures.iter().map(one).collect()
}

/// The runs' distances, and what chance makes of such runs.
struct Chance {
    distances: Distances,
    lasting: Lasting,
}

impl Chance {
    /// The greatest energy distance in a series of chance of the runs of `order`, which it reorders.
    fn best(
        &self,
        range: &std::ops::Range<usize>,
        order: &mut [usize],
        least: usize,
        random: &mut Random,
    ) -> Option<f64> {
        if self.lasting.greatest().is_none() {
            random.shuffle(order);
            return best_split(&self.distances, order, least).map(|(best, _)| best);
        }
        let drawn = Distances::of(&self.lasting.draw(range, random));
        let order: Vec<usize> = (0..range.len()).collect();
        best_split(&drawn, &order, least).map(|(best, _)| best)
    }
}

/// Distances between all runs.
struct Distances {
    n: usize,
    all: Vec<f64>,
}

impl Distances {
    fn of(columns: &[Vec<f64>]) -> Self {
        let n = columns.first().map_or(0, Vec::len);
        let mut all = vec![0.0; n * n];
        for (i, row) in all.chunks_exact_mut(n.max(1)).enumerate() {
            for (j, cell) in row.iter_mut().enumerate() {
                let square = |c: &Vec<f64>| Some((c.get(i)? - c.get(j)?).powi(2));
                *cell = columns.iter().filter_map(square).sum::<f64>().sqrt();
            }
        }
        Self { n, all }
    }

    fn row(&self, i: usize) -> &[f64] {
        self.all.get(i * self.n..(i + 1) * self.n).unwrap_or_default()
    }
}

fn split(
    chance: &Chance,
    range: std::ops::Range<usize>,
    settings: Settings,
    random: &mut Random,
    found: &mut Vec<(usize, f64)>,
) {
    let least = settings.segment_min.max(2);
    if range.len() < 2 * least {
        return;
    }
    let mut order: Vec<usize> = range.clone().collect();
    let Some((best, offset)) = best_split(&chance.distances, &order, least) else { return };
    // Of many runs each permutation costs much; 199 still tell 1 %.
    let most =
        if range.len() > LONG { settings.permutations.min(199) } else { settings.permutations };
    let (mut as_good, mut drawn) = (0u32, 0u32);
    let share = |as_good: u32, drawn: u32| f64::from(as_good + 1) / f64::from(drawn + 1);
    // As soon as chance was as good so often that the rest cannot help, the rest is not drawn.
    while drawn < most && share(as_good, most) < settings.level {
        drawn += 1;
        let by_chance = chance.best(&range, &mut order, least, random);
        as_good += u32::from(by_chance.is_some_and(|b| b >= best));
    }
    let p = share(as_good, drawn);
    if share(as_good, most) < settings.level {
        let at = range.start + offset;
        found.push((at, p));
        split(chance, range.start..at, settings, random, found);
        split(chance, at..range.end, settings, random, found);
    }
}

/// The greatest energy distance of a split in two of `order` or of a beginning of it, and where.
///
/// Beginnings are tried because a level that comes and goes again is seen by no split of the
/// whole: what comes after it is like what came before.
fn best_split(d: &Distances, order: &[usize], least: usize) -> Option<(f64, usize)> {
    (1..=BEGINNINGS)
        .filter_map(|part| split_of(d, order.get(..order.len() * part / BEGINNINGS)?, least))
        .max_by(|a, b| a.0.total_cmp(&b.0))
}

/// The best split of all of `order`. Sums within and between the sides follow from those of the
/// split before by the distances of one run.
fn split_of(d: &Distances, order: &[usize], least: usize) -> Option<(f64, usize)> {
    let n = order.len();
    if n < 2 * least {
        return None;
    }
    let (mut left, mut between, mut right) = (0.0, 0.0, 0.0);
    // First all are on the right; then one after another changes sides.
    for (k, i) in order.iter().enumerate() {
        let row = d.row(*i);
        right += order.get(..k).unwrap_or_default().iter().filter_map(|j| row.get(*j)).sum::<f64>();
    }
    let mut best: Option<(f64, usize)> = None;
    for (k, i) in order.iter().enumerate().take(n - least) {
        let row = d.row(*i);
        let (before, after) = order.split_at(k);
        let to_left: f64 = before.iter().filter_map(|j| row.get(*j)).sum();
        let to_right: f64 = after.iter().filter_map(|j| row.get(*j)).sum();
        left += to_left;
        right -= to_right;
        between += to_right - to_left;
        let (a, b) = (k + 1, n - k - 1);
        if a < least {
            continue;
        }
        let (m, l) = (a.real(), b.real());
        let pairs = |x: f64| x * (x - 1.0) / 2.0;
        let energy = 2.0 * between / (m * l) - left / pairs(m) - right / pairs(l);
        let q = m * l / (m + l) * energy;
        if best.is_none_or(|(most, _)| q > most) {
            best = Some((q, a));
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs whose figures vary by `noise` around levels given by `of`.
    fn runs(n: usize, noise: f64, of: impl Fn(usize) -> f64, seed: u64) -> Vec<Features> {
        let mut random = Random::new(seed);
        (0..n)
            .map(|i| {
                let mut f = Features::default();
                for (k, place) in f.ns.iter_mut().enumerate() {
                    let wobble = (random.uniform() + random.uniform() - 1.0) * noise;
                    *place = Some(10_000.0 * (k + 1).real() * of(i) * wobble.exp());
                }
                f
            })
            .collect()
    }

    #[test]
    fn finds_a_step_where_it_is_and_says_which_way() {
        let h =
            history(&runs(40, 0.05, |i| if i < 25 { 1.0 } else { 1.2 }, 3), Settings::default());
        assert_eq!(h.changes.iter().map(|c| c.at).collect::<Vec<_>>(), [25]);
        assert!(h.regressed());
        let back = |i: usize| if (15..30).contains(&i) { 1.3 } else { 1.0 };
        let h = history(&runs(45, 0.05, back, 4), Settings::default());
        assert_eq!(
            h.changes.iter().map(|c| (c.at, c.worse)).collect::<Vec<_>>(),
            [(15, true), (30, false)]
        );
        assert!(!h.regressed(), "the last change was for the better");
    }

    /// A new level is dated from its first run on, from the first night on which it is found.
    #[test]
    fn a_level_of_few_runs_yet_begins_at_its_first_run() {
        let mut found = Vec::new();
        for worse in 1..=9 {
            let mut seen = 0;
            for seed in 0..10 {
                let n = 24 + worse;
                let of = |i: usize| if i < 24 { 1.0 } else { 1.4 };
                let h = history(&runs(n, 0.03, of, 70 + seed), Settings::default());
                let at: Vec<usize> = h.changes.iter().map(|c| c.at).collect();
                assert!(at.is_empty() || at == [24], "{worse} worse runs: {at:?}");
                seen += usize::from(h.regressed());
            }
            found.push(seen);
        }
        // Three or four are seen where they are many of the series, five always.
        assert!(found.iter().skip(4).all(|n| *n == 10), "{found:?}");
        assert!(found.iter().skip(2).take(2).sum::<usize>() > 0, "{found:?}");
    }

    #[test]
    fn sees_nothing_where_nothing_is() {
        let mut false_alarms = 0;
        for seed in 0..100 {
            let h = history(&runs(40, 0.2, |_| 1.0, 100 + seed), Settings::default());
            false_alarms += u32::from(!h.changes.is_empty());
        }
        assert!(false_alarms <= 5, "{false_alarms} of 100");
    }

    /// Runs whose deviation from the level is `kept` that of the run before.
    fn lasting(n: usize, kept: f64, of: impl Fn(usize) -> f64, seed: u64) -> Vec<Features> {
        let mut random = Random::new(seed);
        let mut last = 0.0;
        (0..n)
            .map(|i| {
                last = kept * last + (random.uniform() + random.uniform() - 1.0) * 0.2;
                let mut f = Features::default();
                for (k, place) in f.ns.iter_mut().enumerate() {
                    let own = (random.uniform() + random.uniform() - 1.0) * 0.02;
                    *place = Some(10_000.0 * (k + 1).real() * of(i) * (last + own).exp());
                }
                f
            })
            .collect()
    }

    #[test]
    fn a_level_that_wanders_is_no_change_and_a_great_step_is() {
        let changed = |seed: u64, of: fn(usize) -> f64| {
            let h = history(&lasting(50, 0.7, of, seed), Settings::default());
            !h.changes.is_empty()
        };
        let alarms = (0..50).filter(|s| changed(900 + s, |_| 1.0)).count();
        // Permutations took 31 of 50 such series for changed.
        assert!(alarms <= 6, "{alarms} of 50");
        let seen = (0..10).filter(|s| changed(900 + s, |i| if i < 25 { 1.0 } else { 3.0 })).count();
        assert!(seen >= 8, "{seen} of 10");
    }

    /// The nights of a young farm, and of the lab, whose figures are the same each night.
    #[test]
    fn a_step_of_few_runs_or_of_equal_ones_is_seen() {
        let changed = |runs: &[Features]| !history(runs, Settings::default()).changes.is_empty();
        let step = |at: usize| move |i: usize| if i < at { 1.0 } else { 1.4 };
        for noise in [0.0, 0.01, 0.05] {
            for (n, at) in [(12, 7), (15, 8), (24, 12), (60, 40)] {
                let seen =
                    (0..5).filter(|seed| changed(&runs(n, noise, step(at), 40 + seed))).count();
                assert!(seen >= 4, "{seen} of 5: {n} runs, a step at {at}, noise {noise}");
            }
        }
    }

    #[test]
    fn a_step_within_the_margin_is_no_change() {
        let h =
            history(&runs(40, 0.01, |i| if i < 20 { 1.0 } else { 1.02 }, 3), Settings::default());
        assert!(h.changes.is_empty() && h.within_margin == 1);
        let same = history(&runs(40, 0.0, |_| 1.0, 3), Settings::default());
        assert!(same.changes.is_empty());
    }

    #[test]
    fn too_few_runs_say_so() {
        let h = history(&runs(9, 0.01, |_| 1.0, 3), Settings::default());
        assert!(h.why_not.is_some_and(|w| w.contains("9 runs")));
        let mut bare = runs(12, 0.01, |_| 1.0, 3);
        bare.iter_mut().for_each(|f| f.ns = [None; 6]);
        assert!(history(&bare, Settings::default()).why_not.is_some());
    }
}
