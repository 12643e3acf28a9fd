// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rounds to study comparisons with: real ones of one configuration, and made-up ones whose
//! difference is known.
//!
//! Units: ns. `data/rounds.jsonl`: 30 rounds of two runs each of one
//! configuration, 4 s at 1 kHz on two CPUs under hackbench, on a shared virtual machine, in
//! random order; per due activation, precision 7.
//! Made-up ones are correlated within a round as real ones are: a state of two that lasts,
//! a drift from round to round that both systems share, and a heavy tail.

use tailbound_core::Distribution;
use tailbound_core::histogram::{Histogram, SparseHistogram};
use tailbound_stats::compare::Block;
use tailbound_stats::random::Random;

/// The deadline that real rounds are asked about.
pub(crate) const DEADLINE_NS: i64 = 1_000_000;

/// The real rounds: the runs of both labels.
pub(crate) fn real() -> [Vec<Block>; 2] {
    let mut out = [Vec::new(), Vec::new()];
    for line in include_str!("data/rounds.jsonl").lines() {
        let v: serde_json::Value = serde_json::from_str(line).expect("the fixture is JSON");
        let late: SparseHistogram =
            serde_json::from_value(v["late"].clone()).expect("a sparse histogram");
        let mut d = Distribution { late: Histogram::new(7), ..Distribution::default() };
        late.add_to(&mut d.late);
        d.n = d.late.total();
        d.max_ns = v["max_ns"].as_i64();
        let side = usize::from(v["variant"] == "A2");
        out[side].push(Block::of(&d, 7, Some(DEADLINE_NS)).expect("every value is in a bucket"));
    }
    out
}

/// Exchanges the two runs of each round with probability one half: no difference is left but
/// chance.
pub(crate) fn relabelled(a: &[Block], b: &[Block], random: &mut Random) -> [Vec<Block>; 2] {
    let (mut a, mut b) = (a.to_vec(), b.to_vec());
    for (x, y) in a.iter_mut().zip(&mut b) {
        if random.coin() {
            std::mem::swap(x, y);
        }
    }
    [a, b]
}

/// What the second system of made-up rounds is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shift {
    /// The same as the first.
    None,
    /// 1.10 times as late, always.
    Body,
    /// 1.5 times as late above the 99.9 % quantile.
    Tail,
}

/// Above this lie 0.1 % of the made-up values.
const TAIL_FROM_NS: f64 = 126_000.0;

/// Made-up rounds.
pub(crate) fn made_up(rounds: usize, n: usize, shift: Shift, seed: u64) -> [Vec<Block>; 2] {
    let mut random = Random::new(seed);
    let mut out = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        let drift = (0.15 * normal(&mut random)).exp();
        let own = [0.05, 0.05].map(|s| (s * normal(&mut random)).exp());
        out[0].push(one(n, drift * own[0], Shift::None, &mut random));
        out[1].push(one(n, drift * own[1], shift, &mut random));
    }
    out
}

fn one(n: usize, factor: f64, shift: Shift, random: &mut Random) -> Block {
    let mut slow = random.uniform() < 0.2;
    let values: Vec<i64> = (0..n)
        .map(|_| {
            // The slow state lasts 200 activations, the other 800.
            if random.uniform() < if slow { 1.0 / 200.0 } else { 1.0 / 800.0 } {
                slow = !slow;
            }
            let body = 20_000.0 * factor * (0.25 * normal(random)).exp();
            let stretched = if slow { 1.6 } else { 1.0 };
            // One in a hundred meets something that takes Pareto's time.
            let hit = if random.uniform() < 0.01 { random.uniform().powf(-0.4) * 2.0 } else { 1.0 };
            let v = body * stretched * hit;
            let v = match shift {
                Shift::None => v,
                Shift::Body => v * 1.1,
                Shift::Tail if v > TAIL_FROM_NS => v * 1.5,
                Shift::Tail => v,
            };
            v as i64
        })
        .collect();
    Block::of_values(values)
}

/// Box and Muller's normal deviate.
fn normal(random: &mut Random) -> f64 {
    (-2.0 * random.uniform().ln()).sqrt() * (std::f64::consts::TAU * random.uniform()).cos()
}
