// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random task sets: releases of every kind, and jobs that compute, sleep, lock and hold.
//!
//! Units: ns. Everything follows from the seed.
//! Not here: playing them (`scheduler`).

use tailbound_stats::random::Random;

use super::scheduler::{Op, Played};

/// What jobs may do besides computing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Habits {
    pub(crate) sleeps: bool,
    pub(crate) locks: bool,
    pub(crate) holds: bool,
    pub(crate) equals: bool,
}

pub(crate) fn between(random: &mut Random, least: i64, most: i64) -> i64 {
    let width = usize::try_from((most - least).max(0) + 1).unwrap_or(1);
    least + i64::try_from(random.below(width)).unwrap_or(0)
}

/// A set of 2 to 6 tasks whose load together is `load` of a CPU, over `span_ns`.
pub(crate) fn set(random: &mut Random, habits: Habits, load: f64, span_ns: i64) -> Vec<Played> {
    let n = between(random, 2, 6);
    let shares: Vec<f64> = (0..n).map(|_| random.uniform()).collect();
    let all: f64 = shares.iter().sum();
    shares
        .iter()
        .zip(1..)
        .map(|(share, place): (&f64, u8)| {
            let period = between(random, 200, 20_000);
            let cost = ((share / all * load * period as f64) as i64).max(2);
            let priority = if habits.equals { 10 + place / 2 } else { 10 + place };
            let mut jobs = std::collections::VecDeque::new();
            let kind = random.below(3);
            let mut at = between(random, 0, period);
            let mut grid = at;
            while at < span_ns {
                jobs.push_back((at, job(random, habits, cost)));
                at = match kind {
                    // On a grid with jitter, from none to a fifth.
                    0 => {
                        grid += period;
                        grid + between(random, 0, period / 5)
                    }
                    // No sooner than a period.
                    1 => at + period + between(random, 0, period),
                    // Now and then a burst.
                    _ => at + if random.below(5) == 0 { period / 4 } else { period + period / 3 },
                };
            }
            Played { priority, jobs }
        })
        .collect()
}

fn job(random: &mut Random, habits: Habits, cost: i64) -> Vec<Op> {
    let mut left = between(random, cost / 2, cost).max(1);
    let mut ops = Vec::new();
    let piece = |random: &mut Random, left: &mut i64| {
        let ns = between(random, 0, *left);
        *left -= ns;
        ns
    };
    if habits.sleeps && random.coin() {
        ops.extend([Op::Run(piece(random, &mut left)), Op::Sleep(between(random, 1, cost))]);
    }
    if habits.locks && random.coin() {
        let lock = random.below(2);
        ops.extend([
            Op::Run(piece(random, &mut left)),
            Op::Lock(lock),
            Op::Run(piece(random, &mut left)),
        ]);
        if habits.sleeps && random.below(4) == 0 {
            ops.push(Op::Sleep(between(random, 1, cost / 4)));
        }
        ops.push(Op::Unlock(lock));
    }
    if habits.holds && random.coin() {
        ops.push(Op::Hold(piece(random, &mut left)));
    }
    ops.push(Op::Run(left));
    ops
}
