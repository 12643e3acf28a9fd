// SPDX-License-Identifier: MIT OR Apache-2.0
//! Do releases lie on a grid? Its period, place and jitter, release by release in bounded memory.
//!
//! Units: ns. The first releases are kept; from the median of their distances the
//! grid is fitted by least squares, and from then on each release is only compared with it and with
//! the releases shortly before it: a clock that drifts against ours is no jitter.
//! A grid is claimed where 19 of 20 distances are near a multiple of the period, also over many
//! releases, and at most one place in twenty is skipped.
//! Not here: distances of n releases (`watched`), which hold without any grid.

use std::collections::VecDeque;

use tailbound_core::number::{Real as _, Whole as _};
use tailbound_core::tasks::{Arrival, ArrivalModel};

/// Releases from which a grid is fitted.
const LEARN: usize = 256;
/// Fewest releases of which a grid is said.
const LEAST: u64 = 8;
/// Neighbours that are compared with a release.
const BACK: usize = 32;

/// Looks for a grid.
#[derive(Clone, Debug, Default)]
pub(super) struct Grid {
    first_ns: Option<i64>,
    /// Times since the first release, until there is a fit.
    early: Vec<f64>,
    fit: Option<Fit>,
}

#[derive(Clone, Debug, Default)]
struct Fit {
    period: f64,
    /// Where the grid lies, since the first release.
    offset: f64,
    /// Time and place on the grid of the last releases; cut at gaps.
    recent: VecDeque<(f64, f64)>,
    distances: u64,
    near: u64,
    far_pairs: u64,
    near_pairs: u64,
    skipped: u64,
    jitter: f64,
}

impl Grid {
    /// One release.
    pub(super) fn release(&mut self, t_ns: i64) {
        let first = *self.first_ns.get_or_insert(t_ns);
        let t = t_ns.saturating_sub(first).real();
        match &mut self.fit {
            Some(fit) => fit.release(t),
            None => {
                self.early.push(t);
                if self.early.len() >= LEARN {
                    self.fit = Fit::of(&self.early);
                    // Where no grid can be fitted, as all came at once, the next ones are tried.
                    self.early.clear();
                }
            }
        }
    }

    /// Releases between were not seen: nothing is compared across.
    pub(super) fn gap(&mut self) {
        if let Some(fit) = &mut self.fit {
            fit.recent.clear();
        } else {
            // Distances across the gap are few among many, and the median bears them.
        }
    }

    /// What can be said.
    pub(super) fn arrival(&self) -> Arrival {
        let learned = || Fit::of(&self.early);
        let Some(fit) = self.fit.clone().or_else(learned) else { return Arrival::default() };
        let first = self.first_ns.unwrap_or(0);
        fit.arrival(first).unwrap_or_default()
    }
}

impl Fit {
    /// The grid that fits these times, ascending, from 0 on.
    fn of(times: &[f64]) -> Option<Self> {
        let mut distances: Vec<f64> = times.windows(2).filter_map(distance).collect();
        distances.sort_unstable_by(f64::total_cmp);
        let mut period = *distances.get(distances.len() / 2)?;
        if period < 1.0 {
            return None;
        }
        let mut offset = 0.0;
        // With a better period the places of far releases are better known: once more.
        for _ in 0..2 {
            (period, offset) = line(times, period)?;
        }
        if period < 1.0 {
            return None;
        }
        let mut fit = Self { period, offset, ..Self::default() };
        times.iter().for_each(|t| fit.release(*t));
        Some(fit)
    }

    fn release(&mut self, t: f64) {
        let place = match self.recent.back() {
            None => ((t - self.offset) / self.period).round(),
            Some((before, place)) => place + ((t - before) / self.period).round(),
        };
        let off = |(t0, p0): &(f64, f64)| ((t - t0) - (place - p0) * self.period).abs();
        if let Some(last) = self.recent.back() {
            let (steps, off) = (place - last.1, off(last));
            self.distances += 1;
            self.near += u64::from(steps >= 1.0 && off <= self.period / 8.0);
            self.skipped = self.skipped.saturating_add((steps - 1.0).max(0.0).whole_u64());
        }
        if let Some(far) = self.recent.front().filter(|_| self.recent.len() == BACK) {
            self.far_pairs += 1;
            self.near_pairs += u64::from(off(far) <= self.period / 4.0);
        }
        let most = self.recent.iter().map(off).fold(0.0, f64::max);
        self.jitter = self.jitter.max(most);
        self.recent.push_back((t, place));
        if self.recent.len() > BACK {
            self.recent.pop_front();
        }
    }

    fn arrival(&self, first_ns: i64) -> Option<Arrival> {
        let most = |of: u64, all: u64| of.saturating_mul(20) >= all.saturating_mul(19);
        let periodic = self.distances + 1 >= LEAST
            && most(self.near, self.distances)
            && most(self.near_pairs, self.far_pairs)
            && self.skipped.saturating_mul(20) <= self.distances;
        periodic.then(|| {
            let period_ns = self.period.round().whole_i64().max(1);
            Arrival {
                model: ArrivalModel::Periodic,
                period_ns: Some(period_ns),
                jitter_ns: Some(self.jitter.ceil().whole_i64()),
                offset_ns: Some(
                    first_ns.saturating_add(self.offset.round().whole_i64()).rem_euclid(period_ns),
                ),
                skipped: self.skipped,
            }
        })
    }
}

fn distance(pair: &[f64]) -> Option<f64> {
    match pair {
        [a, b] => Some(b - a),
        _ => None,
    }
}

/// Period and begin of the line through places and times, by least squares; places come from `period`.
fn line(times: &[f64], period: f64) -> Option<(f64, f64)> {
    let (mut place, mut before) = (0.0, *times.first()?);
    let (mut n, mut sk, mut st, mut skk, mut skt) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for t in times {
        place += ((t - before) / period).round();
        before = *t;
        n += 1.0;
        sk += place;
        st += t;
        skk += place * place;
        skt += place * t;
    }
    let spread = n * skk - sk * sk;
    (spread > 0.0).then(|| {
        let slope = (n * skt - sk * st) / spread;
        (slope, (st - slope * sk) / n)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn found(times: impl IntoIterator<Item = i64>) -> Arrival {
        let mut grid = Grid::default();
        times.into_iter().for_each(|t| grid.release(t));
        grid.arrival()
    }

    fn below(random: &mut Random, n: i64) -> i64 {
        i64::try_from(random.below(usize::try_from(n.max(1)).unwrap_or(1))).unwrap_or(0)
    }

    #[test]
    fn the_period_is_found_through_jitter_drift_and_skipped_places() {
        let (mut right, mut all) = (0, 0);
        for seed in 0..400 {
            let mut random = Random::new(seed);
            let period = 100_000 + below(&mut random, 20_000_000);
            let jitter = below(&mut random, period / 16);
            let jobs = 10 + below(&mut random, 2000);
            let offset = below(&mut random, period);
            let skips = seed % 4 == 0;
            let times = (0..jobs).filter_map(|k| {
                let late = below(&mut random, jitter);
                (!(skips && k % 40 == 39)).then_some(offset + k * period + late)
            });
            let got = found(times.collect::<Vec<_>>());
            let near = got.period_ns.is_some_and(|p| (p - period).abs() * 100 <= period);
            let bounded = got.jitter_ns.is_some_and(|j| j <= jitter + jitter / 4 + 2);
            all += 1;
            right += i32::from(near && bounded);
        }
        assert!(right * 100 >= all * 99, "{right} of {all}");
    }

    #[test]
    fn what_is_no_grid_is_not_called_one() {
        for seed in 0..100 {
            let mut random = Random::new(seed);
            let mut t = 0;
            // A minimum distance and as much again by chance; a random walk of small steps; two
            // distances in turn.
            let spread: Vec<i64> = (0..500)
                .map(|_| {
                    t += 1_000_000 + below(&mut random, 1_000_000);
                    t
                })
                .collect();
            assert_eq!(found(spread).model, ArrivalModel::Sporadic, "seed {seed}");
            let in_turn = (0..500).map(|k| 5_000_000 * (k / 2) + 1_600_000 * (k % 2));
            assert_eq!(found(in_turn).model, ArrivalModel::Sporadic);
        }
        assert_eq!(found([]).model, ArrivalModel::Sporadic);
        assert_eq!(found([7; 600]).model, ArrivalModel::Sporadic);
        assert_eq!(found([0, 5, 10]).model, ArrivalModel::Sporadic);
    }
}
