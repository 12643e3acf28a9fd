// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether the latest seconds are those in which the machine had something else to do: time taken by the hypervisor,
//! firmware, interrupts or threads above, a quota, a low frequency, tasks that waited ([`DisturbanceKind`]).
//!
//! Units: ns, kHz, counts; a cell is one second of one thread, on its CPU (of a monitor, one window).
//! The latest cells are a tenth of all. What was taken is much where it is above the third quartile of all cells.
//! How many of the latest have much is held against the same count after the seconds of what was taken were put into
//! another order: turned, and in stretches as long as seconds resemble each other, so that a spell of both is no
//! proof. Of all readings that a run has together 1 % may be wrong (Holm); what fits to less than half is not told.
//! Of several that are shown one is told: what is only the lateness, seen from the scheduler, last.
//! Not here: what the coincidence is called (`tailbound-report`). That two things come together does not say which
//! one made the other.
//! Source: Good 2005 (permutation tests); Politis and Romano 1992 (circular blocks); Holm 1979.

mod cells;
mod shuffle;

use std::collections::{BTreeMap, BTreeSet};
use tailbound_core::order;

use serde::Serialize;
use tailbound_core::Run;
pub use tailbound_core::disturbance::DisturbanceKind;
use tailbound_core::number::{Real as _, Whole as _};

use cells::{Cells, Lateness};
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

/// The least and the most of a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Amount {
    /// Of time.
    Time {
        /// The least.
        least_ns: i64,
        /// The most.
        most_ns: i64,
    },
    /// Of events.
    Count {
        /// The fewest.
        least: i64,
        /// The most.
        most: i64,
    },
    /// Of a frequency.
    Frequency {
        /// The slowest.
        least_khz: i64,
        /// The fastest.
        most_khz: i64,
    },
}

/// Late seconds and something else, together more often than by chance.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Coincidence {
    /// What.
    pub kind: DisturbanceKind,
    /// So many of the latest seconds had much of it.
    pub count: usize,
    /// Of how many.
    pub latest: usize,
    /// How much those had.
    #[serde(flatten)]
    pub amount: Amount,
    /// Share of the other seconds that had as much.
    pub others: f64,
    /// The chance of so many without a connection, before the kinds are counted.
    pub p: f64,
    /// Length of what is called a second here: more than 1 of a monitor's windows.
    pub cell_s: u32,
    /// Of threads above: who ran most in those seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
}

/// The coincidence of a run that is worth telling; `None` where nothing is shown.
#[must_use]
pub fn of_run(run: &Run) -> Option<Coincidence> {
    if run.disturbances.is_empty() {
        return None;
    }
    let lateness = Lateness::of_run(run)?;
    let kinds = DisturbanceKind::ALL.into_iter();
    let cells = kinds.filter_map(|kind| Some((kind, lateness.beside(run, kind)?)));
    let (shown, coincidence) = strongest(cells)?;
    let fastest_khz = Lateness::fastest_khz(run);
    let amount = match coincidence.amount {
        Amount::Time { least_ns, most_ns } if shown == DisturbanceKind::Firmware => {
            Amount::Count { least: least_ns, most: most_ns }
        }
        // The slower, the more.
        Amount::Time { least_ns, most_ns } if shown == DisturbanceKind::Frequency => {
            Amount::Frequency {
                least_khz: fastest_khz.saturating_sub(most_ns),
                most_khz: fastest_khz.saturating_sub(least_ns),
            }
        }
        other => other,
    };
    let who = (shown == DisturbanceKind::RanAbove).then(|| above(run)).flatten();
    Some(Coincidence { amount, who, cell_s: lateness.cell_s, ..coincidence })
}

/// Of the threads above, the one that ran most in the latest seconds, if that is more than half of it.
fn above(run: &Run) -> Option<String> {
    let mut latest: Vec<(i64, u64)> = run.seconds.iter().map(|s| (s.max_ns, s.second)).collect();
    order::by(&mut latest, |a, b| b.cmp(a));
    latest.truncate((latest.len() / 10).clamp(LATEST.0, LATEST.1));
    let seconds: BTreeSet<u64> = latest.into_iter().map(|(_, second)| second).collect();
    let mut sums: BTreeMap<&str, i64> = BTreeMap::new();
    for look in &run.disturbances {
        let middle_ns = look.t_ns.saturating_sub(look.span_ns / 2);
        let second = u64::try_from(middle_ns / 1_000_000_000).unwrap_or(u64::MAX);
        for ran in look.above.iter().filter(|_| seconds.contains(&second)) {
            let sum = sums.entry(&ran.thread).or_default();
            *sum = sum.saturating_add(ran.ns);
        }
    }
    let all = sums.values().fold(0i64, |a, b| a.saturating_add(*b));
    let (who, most) = sums.into_iter().max_by_key(|(_, ns)| *ns)?;
    (most > all / 2).then(|| who.to_owned())
}

/// Of the kinds that are shown with all others counted, the one that says most.
fn strongest(
    kinds: impl Iterator<Item = (DisturbanceKind, Cells)>,
) -> Option<(DisturbanceKind, Coincidence)> {
    let mut tests = 0usize;
    let mut found: Vec<Coincidence> = Vec::new();
    for (kind, cells) in kinds {
        tests += 1;
        found.extend(coincidence(kind, &cells));
    }
    // Holm: from the smallest on, up to the first that is not shown.
    found.sort_by(|a, b| a.p.total_cmp(&b.p));
    let shown = found
        .into_iter()
        .enumerate()
        .take_while(|(i, c)| c.p * tests.saturating_sub(*i).real() <= LEVEL)
        .map(|(_, c)| c)
        .filter(|c| c.count * 2 > c.latest);
    // The first of equals: sorted by p, and before that in the order of the kinds.
    let best = shown.min_by_key(|c| c.kind.is_symptom())?;
    Some((best.kind, best))
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
        amount: Amount::Time { least_ns: least.whole_i64(), most_ns: most.whole_i64() },
        cell_s: 1,
        who: None,
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
