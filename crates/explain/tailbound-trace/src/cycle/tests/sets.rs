// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hundreds of random task sets: the period is found, and no cycle is split or joined.

use tailbound_core::cycle::PaceKind;

use super::story::{FUTEX, IOCTL, NANOSLEEP, Pacing, READ, Random, Spec, Step, Story, WRITE};
use super::{Wish, cycles, faults};

/// One to three threads whose cycles fit; the idle time at the end of a cycle is at least half of what the
/// cycle waits within.
fn set(random: &mut Random) -> Vec<Spec> {
    let count = 1 + random.next() % 3;
    (0..count)
        .map(|i| {
            let period = random.within(2_000_000, 20_000_000);
            let share = period / (4 * count);
            let pacing = match random.next() % 4 {
                0 | 1 => Pacing::Timer { period },
                2 => Pacing::Outside { period, jitter: random.within(0, period / 8) },
                _ if random.one_in(2) => Pacing::Relative { sleep: period },
                _ => Pacing::Sporadic {
                    least: period / 2,
                    more: random.within(period / 2, period * 2),
                },
            };
            let mut steps = vec![Step::Run(share / 4, share / 2)];
            for n in 0..random.next() % 4 {
                steps.push(match random.next() % 6 {
                    0 => Step::Yield,
                    1 => Step::Call(WRITE, [1, 0, 9, 0]),
                    2 => Step::Fault,
                    kind => {
                        let (id, args) = match kind {
                            3 => (NANOSLEEP, [1, 0, 0x9000 + n, 0]),
                            4 => (FUTEX, [0x4000 + n, 0x80, 2, 0]),
                            _ if random.one_in(2) => (READ, [7 + n, 0, 64, 0]),
                            _ => (IOCTL, [9, 3, 0, 0]),
                        };
                        let most = random.within(period / 50, period / 10);
                        let one_in = 1 + random.next() % 3;
                        Step::Suspend { id, args, least: most / 2, most, one_in }
                    }
                });
                steps.push(Step::Run(share / 20, share / 8));
            }
            // Higher up the shorter ones, as people do; equal priorities too.
            let prio = 10 + i32::try_from(i / 2).unwrap_or(0);
            Spec { pid: 100 + i32::try_from(i).unwrap_or(0), prio, pacing, steps }
        })
        .collect()
}

fn period_is_right(pacing: Pacing, pace: &tailbound_core::cycle::Pace) -> bool {
    let near = |period: u64, share: f64| {
        pace.period_ns.is_some_and(|p| (p as f64 / period as f64 - 1.0).abs() <= share)
    };
    match pacing {
        Pacing::Timer { period } => pace.kind == PaceKind::Periodic && near(period, 0.001),
        Pacing::Outside { period, .. } => pace.kind == PaceKind::Periodic && near(period, 0.005),
        // Sleep and work together: longer than the sleep, and about alike or not.
        Pacing::Relative { sleep } => {
            pace.kind == PaceKind::Sporadic || pace.period_ns.is_some_and(|p| p >= sleep as i64)
        }
        Pacing::Sporadic { least, .. } => {
            pace.kind != PaceKind::Periodic
                && pace.least_ns.is_some_and(|l| l as f64 >= least as f64 * 0.9)
        }
    }
}

/// Plays `sets` task sets from `seed` on, with `holes` stretches without events in each: threads, threads with a wrong
/// pace, faults.
fn play(seed: u64, sets: u64, holes: usize) -> (usize, Vec<String>, Vec<String>) {
    let (mut threads, mut paces, mut wrong) = (0, Vec::new(), Vec::new());
    for n in 0..sets {
        let mut random = Random(seed + n);
        let specs = set(&mut random);
        let noise = if random.one_in(2) { 300_000 } else { 0 };
        let (entries, truth) = Story::new(seed + n, &specs, noise).play(1_500_000_000);
        let hole = |random: &mut Random| {
            let from = random.within(200_000_000, 1_300_000_000);
            (from, from + random.within(50_000, 30_000_000))
        };
        let mut holes: Vec<(u64, u64)> = (0..holes).map(|_| hole(&mut random)).collect();
        holes.sort_unstable();
        let pids: Vec<i32> = specs.iter().map(|s| s.pid).collect();
        let mut found = cycles(&pids, &entries, &holes, Wish { worst: 4, ..Wish::default() });
        for spec in &specs {
            threads += 1;
            let Some(found) = found.remove(&spec.pid) else { continue };
            let pace = &found.cycles.pace;
            if !period_is_right(spec.pacing, pace) {
                paces.push(format!("{n} {spec:?}: {pace:?} {:?}", found.cycles.activation));
            }
            let truth = truth.get(&spec.pid).map_or(&[][..], Vec::as_slice);
            let found_faults = faults(&found, truth, &holes);
            if let Some(first) = found_faults.first() {
                wrong.push(format!(
                    "{n} {spec:?} {:?}: {} faults, {first}",
                    found.cycles.activation,
                    found_faults.len()
                ));
            }
            for worst in &found.cycles.worst {
                let sum: i64 = worst.parts.iter().map(|p| p.ns).sum();
                assert_eq!(sum, worst.latency_ns, "{n} {spec:?}");
            }
        }
    }
    (threads, paces, wrong)
}

#[test]
fn periods_are_found_and_no_cycle_is_split_or_joined() {
    let (threads, paces, wrong) = play(1, 240, 0);
    assert!(
        wrong.is_empty(),
        "{} of {threads}: {:#?}",
        wrong.len(),
        wrong.get(..6.min(wrong.len()))
    );
    assert!(
        paces.len() * 100 <= threads,
        "{} of {threads}: {:#?}",
        paces.len(),
        paces.get(..6.min(paces.len()))
    );
}

#[test]
fn lost_events_break_cycles_and_never_make_up_others() {
    let (threads, paces, wrong) = play(5000, 120, 3);
    assert!(
        wrong.is_empty(),
        "{} of {threads}: {:#?}",
        wrong.len(),
        wrong.get(..6.min(wrong.len()))
    );
    assert!(
        paces.len() * 100 <= threads,
        "{} of {threads}: {:#?}",
        paces.len(),
        paces.get(..6.min(paces.len()))
    );
}
