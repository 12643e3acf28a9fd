// SPDX-License-Identifier: MIT OR Apache-2.0
//! The study: planted steal time is found, what only looks like it is not told.

use super::*;
use crate::random::Random;

const MS: f64 = 1e6;

fn exponential(random: &mut Random) -> f64 {
    -random.uniform().ln()
}

/// Levels that stay for a while, each around so many seconds.
fn spells(random: &mut Random, seconds: usize, length: f64) -> Vec<f64> {
    let mut level = random.uniform();
    (0..seconds)
        .map(|_| {
            if random.uniform() < 1.0 / length {
                level = random.uniform();
            }
            level
        })
        .collect()
}

/// Rows of seconds without a connection between lateness and what was taken.
fn unconnected(seed: u64) -> Cells {
    let r = &mut Random::new(seed);
    let (rows, seconds) = (1 + r.below(4), 30 + r.below(270));
    let memory = [1.0, 1.0, 5.0, 20.0];
    // Other CPUs are late, and taken from, at the same times.
    let (late_memory, taken_memory) = (memory[r.below(4)], memory[r.below(4)]);
    let (late_common, taken_common) =
        (spells(r, seconds, late_memory), spells(r, seconds, taken_memory));
    let rare = [0.02, 0.2, 0.6, 1.0][r.below(4)];
    let mut cells = Cells { seconds, late: Vec::new(), taken: Vec::new() };
    for _ in 0..rows {
        for second in 0..seconds {
            let level = late_common[second];
            cells.late.push(50_000.0 * (1.0 + 4.0 * level * level) * (1.0 + exponential(r)));
            let taken = r.uniform() < rare * (0.2 + 1.6 * taken_common[second]);
            let ticks = if taken { exponential(r).ceil() } else { 0.0 };
            cells.taken.push(ticks * 10.0 * MS);
        }
    }
    cells
}

fn told(cells: &Cells) -> Option<Coincidence> {
    coincidence(DisturbanceKind::Steal, cells)
        .filter(|c| c.p * 3.0 <= LEVEL && c.count * 2 > c.latest)
}

#[test]
fn without_a_connection_nothing_is_told() {
    let runs = 600u64;
    // One kind may take a third of the level.
    let wrong: Vec<u64> = (0..runs).filter(|seed| told(&unconnected(*seed)).is_some()).collect();
    assert!(wrong.len() as u64 * 300 <= runs, "{} of {runs}: {wrong:?}", wrong.len());
}

#[test]
fn planted_steal_time_is_told_with_its_amounts() {
    let found = (0..100u64)
        .filter(|seed| {
            let mut cells = unconnected(*seed + 5000);
            let r = &mut Random::new(*seed);
            cells.taken.fill(0.0);
            for (late, taken) in cells.late.iter_mut().zip(&mut cells.taken) {
                if r.uniform() < 0.1 {
                    *taken = 10.0 * MS * (1.0 + exponential(r)).floor();
                    *late += *taken * 0.9;
                }
            }
            told(&cells).is_some_and(|c| c.least_ns >= 10_000_000 && c.count * 3 >= c.latest * 2)
        })
        .count();
    assert!(found >= 90, "{found} of 100");
}

#[test]
fn too_little_is_no_test() {
    let none = Cells { seconds: 0, late: Vec::new(), taken: Vec::new() };
    assert_eq!(told(&none), None);
    let same = Cells { seconds: 60, late: vec![1.0; 60], taken: vec![1.0; 60] };
    assert_eq!(told(&same), None);
}
