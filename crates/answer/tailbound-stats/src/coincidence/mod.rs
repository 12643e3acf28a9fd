// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether the latest seconds are those in which something was taken of the CPU: by the hypervisor, by interrupts, by
//! soft interrupts.
//!
//! Units: ns; a cell is one second of one thread, on its CPU.
//! The latest cells are a tenth of all. What was taken is much where it is above the third quartile of all cells.
//! How many of the latest have much is held against the same count after the seconds of what was taken were put into
//! another order: turned, and in stretches as long as seconds resemble each other, so that a spell of both is no
//! proof. What does not reach 1 % with all kinds together (Holm) is not told, nor what fits to less than half.
//! Not here: what the coincidence is called (`tailbound-report`). That two things come together does not say which
//! one made the other.
//! Source: Good 2005 (permutation tests); Politis and Romano 1992 (circular blocks); Holm 1979.

mod cells;
mod shuffle;

use serde::Serialize;
use tailbound_core::Run;
use tailbound_core::number::{Real as _, Whole as _};

use cells::Cells;
use shuffle::Shuffle;

/// Fewest seconds that can show anything.
const SECONDS_MIN: usize = 30;
/// Fewest and most of the latest cells.
const LATEST: (usize, usize) = (5, 20);
/// Share of tests that may be wrong, all kinds together.
const LEVEL: f64 = 0.01;
/// Orders that are tried.
const ORDERS: usize = 2999;
const SEED: u64 = 1;

/// What was taken of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DisturbanceKind {
    /// By the hypervisor.
    Steal,
    /// By interrupts.
    Interrupt,
    /// By soft interrupts.
    Softirq,
}

impl DisturbanceKind {
    /// Those that are looked at.
    const ALL: [Self; 3] = [Self::Steal, Self::Interrupt, Self::Softirq];
}

/// Late seconds and something taken, together more often than by chance.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Coincidence {
    /// What was taken.
    pub kind: DisturbanceKind,
    /// So many of the latest seconds had much of it.
    pub count: usize,
    /// Of how many.
    pub latest: usize,
    /// The least and the most that was taken in those.
    pub least_ns: i64,
    /// The most.
    pub most_ns: i64,
    /// Share of the other seconds that had as much.
    pub others: f64,
    /// The chance of so many without a connection, before the kinds are counted.
    pub p: f64,
}

/// The strongest coincidence of a run; `None` where nothing is shown.
#[must_use]
pub fn of_run(run: &Run) -> Option<Coincidence> {
    let cells = DisturbanceKind::ALL.map(|kind| Cells::of_run(run, kind));
    let mut found: Vec<Coincidence> = DisturbanceKind::ALL
        .into_iter()
        .zip(&cells)
        .filter_map(|(kind, cells)| coincidence(kind, cells.as_ref()?))
        .collect();
    // Holm: the smallest of them decides; the others are not told.
    found.sort_by(|a, b| a.p.total_cmp(&b.p));
    let tests = DisturbanceKind::ALL.len().real();
    found.into_iter().next().filter(|c| c.p * tests <= LEVEL && c.count * 2 > c.latest)
}

/// The coincidence in `cells`, with its chance; `None` where there is nothing to test.
fn coincidence(kind: DisturbanceKind, cells: &Cells) -> Option<Coincidence> {
    if cells.seconds < SECONDS_MIN {
        return None;
    }
    let late = cells.latest(LATEST)?;
    // Few of many: only they are looked at under each order.
    let places: Vec<(usize, usize)> = late
        .iter()
        .enumerate()
        .filter(|(_, late)| **late)
        .map(|(i, _)| (i / cells.seconds, i % cells.seconds))
        .collect();
    let latest = places.len();
    let much = cells.much();
    let together = |order: &dyn Fn(usize) -> usize| {
        let has = |(row, second): &&(usize, usize)| {
            much.get(row * cells.seconds + order(*second)) == Some(&true)
        };
        places.iter().filter(has).count()
    };
    let count = together(&|second| second);
    if count == 0 {
        return None;
    }
    let mut shuffle = Shuffle::new(cells, &late, &much, SEED);
    let mut as_many = 0usize;
    let orders = shuffle.most().min(ORDERS);
    for _ in 0..orders {
        let order = shuffle.next();
        as_many += usize::from(together(&|s| order.get(s).copied().unwrap_or(s)) >= count);
        // Nothing can be shown any more.
        if as_many.real() > LEVEL * (orders + 1).real() {
            return None;
        }
    }
    let p = (as_many + 1).real() / (orders + 1).real();
    let with: Vec<f64> = picked(cells, &late, &much);
    let least = with.iter().copied().fold(f64::MAX, f64::min);
    let most = with.iter().copied().fold(0.0, f64::max);
    let others = late.iter().zip(&cells.taken).filter(|(late, _)| !**late);
    let (mut all, mut as_much) = (0usize, 0usize);
    for (_, taken) in others {
        all += 1;
        as_much += usize::from(*taken >= least);
    }
    Some(Coincidence {
        kind,
        count,
        latest,
        least_ns: least.whole_i64(),
        most_ns: most.whole_i64(),
        others: as_much.real() / all.max(1).real(),
        p,
    })
}

/// What was taken in the latest cells that had much of it.
fn picked(cells: &Cells, late: &[bool], much: &[bool]) -> Vec<f64> {
    let both = late.iter().zip(much).zip(&cells.taken);
    both.filter(|((late, much), _)| **late && **much).map(|(_, taken)| *taken).collect()
}

#[cfg(test)]
mod tests;
