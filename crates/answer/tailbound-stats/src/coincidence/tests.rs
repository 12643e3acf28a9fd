// SPDX-License-Identifier: MIT OR Apache-2.0
//! The study: a planted reading is found among all others, what only looks like one is not told.

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

/// A run with every reading beside the same lateness, none of which has to do with it; they resemble each other.
fn all_unconnected(seed: u64) -> Vec<(DisturbanceKind, Cells)> {
    let first = unconnected(seed);
    let rows = first.late.len() / first.seconds;
    let r = &mut Random::new(seed + 1_000_000);
    let common = spells(r, first.seconds, 5.0);
    let one = |kind: DisturbanceKind| {
        let alike = r.uniform();
        let everywhere = !matches!(kind, DisturbanceKind::Waited | DisturbanceKind::RanAbove);
        let mut taken: Vec<f64> = Vec::new();
        for row in 0..rows {
            for (second, level) in common.iter().enumerate() {
                // What is of the machine is the same for each of its threads.
                let before = everywhere.then(|| taken.get(second).copied()).flatten();
                let amount = level * alike + exponential(r) * (1.0 - alike);
                taken.push(before.filter(|_| row > 0).unwrap_or(amount * 4.0 * MS));
            }
        }
        (kind, Cells { seconds: first.seconds, late: first.late.clone(), taken })
    };
    let mut all: Vec<_> = DisturbanceKind::ALL.into_iter().map(one).collect();
    all[0].1.taken.clone_from(&first.taken);
    all
}

fn told(all: Vec<(DisturbanceKind, Cells)>) -> Option<Coincidence> {
    strongest(all.into_iter()).map(|(_, told)| told)
}

fn alone(cells: Cells) -> Option<Coincidence> {
    told(vec![(DisturbanceKind::Steal, cells)])
}

#[test]
fn without_a_connection_nothing_is_told() {
    let runs = 600u64;
    let wrong: Vec<u64> = (0..runs).filter(|s| alone(unconnected(*s)).is_some()).collect();
    assert!(wrong.len() as u64 * 100 <= runs, "{} of {runs}: {wrong:?}", wrong.len());
    // Twelve readings together are wrong no more often than one.
    let runs = 200u64;
    let wrong: Vec<u64> = (0..runs).filter(|s| told(all_unconnected(*s)).is_some()).collect();
    assert!(wrong.len() as u64 * 100 <= runs, "{} of {runs}: {wrong:?}", wrong.len());
}

#[test]
fn a_planted_reading_is_told_among_all_others_and_before_the_lateness_itself() {
    let mut found = 0;
    for seed in 0..40u64 {
        let mut all = all_unconnected(seed + 9000);
        let kind = DisturbanceKind::ALL[seed as usize % 10];
        let r = &mut Random::new(seed);
        let n = all[0].1.late.len();
        let planted: Vec<f64> = (0..n)
            .map(|_| if r.uniform() < 0.1 { 3.0 * MS * (1.0 + exponential(r)) } else { 0.0 })
            .collect();
        for (of, cells) in &mut all {
            cells.late.iter_mut().zip(&planted).for_each(|(late, more)| *late += more);
            if *of == kind || *of == DisturbanceKind::Waited {
                cells.taken.clone_from(&planted);
            }
        }
        let told = told(all);
        assert!(told.as_ref().is_none_or(|c| c.kind == kind), "{kind}: {told:?}");
        found += usize::from(told.is_some());
    }
    assert!(found >= 36, "{found} of 40");
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
            alone(cells).is_some_and(|c| {
                let enough =
                    matches!(c.amount, Amount::Time { least_ns, .. } if least_ns >= 10_000_000);
                enough && c.count * 3 >= c.latest * 2
            })
        })
        .count();
    assert!(found >= 90, "{found} of 100");
}

#[test]
fn too_little_is_no_test() {
    let none = Cells { seconds: 0, late: Vec::new(), taken: Vec::new() };
    assert_eq!(alone(none), None);
    let same = Cells { seconds: 60, late: vec![1.0; 60], taken: vec![1.0; 60] };
    assert_eq!(alone(same), None);
}
