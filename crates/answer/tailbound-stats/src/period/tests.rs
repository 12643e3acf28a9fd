// SPDX-License-Identifier: MIT OR Apache-2.0
//! The study: planted periods are found, and what has none is left alone.

use super::*;
use crate::random::Random;

const S: f64 = 1e9;
const MS: f64 = 1e6;

fn exponential(random: &mut Random, mean: f64) -> f64 {
    -random.uniform().ln() * mean
}

fn normal(random: &mut Random) -> f64 {
    (-2.0 * random.uniform().ln()).sqrt() * (std::f64::consts::TAU * random.uniform()).cos()
}

/// Independent ones over `length`, one per `mean`.
fn poisson(random: &mut Random, length: f64, mean: f64) -> Vec<f64> {
    let mut at = 0.0;
    std::iter::from_fn(|| {
        at += exponential(random, mean);
        (at < length).then_some(at)
    })
    .collect()
}

/// Clusters that begin independently.
fn clusters(random: &mut Random, length: f64, mean: f64, size: f64, spread: f64) -> Vec<f64> {
    let begins = poisson(random, length, mean);
    let mut out = Vec::new();
    for begin in begins {
        let n = exponential(random, size).ceil().whole_usize();
        out.extend((0..n).map(|_| begin + exponential(random, spread)));
    }
    out
}

/// Spells of many and of few.
fn spells(random: &mut Random, length: f64) -> Vec<f64> {
    let (mut at, mut out) = (0.0, Vec::new());
    while at < length {
        let spell = exponential(random, 3.0 * S);
        let mean = exponential(random, 300.0 * MS).max(40.0 * MS);
        out.extend(poisson(random, spell, mean).into_iter().map(|t| t + at));
        at += spell;
    }
    out
}

fn ns(times: &[f64], interval: f64) -> Vec<i64> {
    let tied = |t: &f64| match interval > 0.0 {
        true => ((t / interval).ceil() * interval).whole_i64(),
        false => t.whole_i64(),
    };
    times.iter().map(tied).collect()
}

#[test]
fn what_has_no_period_is_left_alone() {
    let mut claims = Vec::new();
    let kinds = 8usize;
    let runs = 480usize;
    for i in 0..runs {
        let r = &mut Random::new(i as u64 + 1);
        let length = (10.0 + 110.0 * r.uniform()) * S;
        let n = 8.0 + 120.0 * r.uniform();
        let interval = [0.2, 1.0, 10.0, 50.0][r.below(4)] * MS;
        let spread = [1.0, 20.0, 300.0, 2000.0][r.below(4)] * MS;
        let size = 2.0 + 6.0 * r.uniform();
        let kind = i % kinds;
        let rare = 0.3 + 5.0 * r.uniform();
        let (times, interval) = match kind {
            0 => (poisson(r, length, length / n), 0.0),
            1 => (poisson(r, length, length / n), interval),
            2 => (clusters(r, length, length * size / n, size, spread), 0.0),
            3 => (clusters(r, length, length * size / n, size, spread), interval),
            4 => (spells(r, length), 0.0),
            5 => (spells(r, length), interval),
            // A large part of all activations.
            6 => (poisson(r, 200.0 * interval, interval * rare), interval),
            _ => (poisson(r, 1000.0 * MS * n, 1000.0 * MS), 1000.0 * MS),
        };
        if let Some(found) = period(&ns(&times, interval), interval.whole_i64(), 1) {
            claims.push((i, kind, interval, times.len(), found.period_ns, found.count));
        }
    }
    assert!(claims.len() * 200 <= runs, "{} of {runs}: {claims:?}", claims.len());
}

/// Seeds of each planted train.
const TRAINS: usize = 8;

/// One planted train.
struct Planted {
    period: f64,
    jitter: f64,
    present: f64,
    /// Others for each of its periods.
    noise: f64,
    /// Each period begins where the one before ended.
    drifts: bool,
    interval: f64,
    periods: f64,
}

impl Planted {
    fn times(&self, r: &mut Random) -> Vec<i64> {
        let length = self.period * self.periods;
        let mut at = self.period * r.uniform();
        let mut out = Vec::new();
        while at < length {
            let moved = self.jitter * normal(r);
            if r.uniform() < self.present {
                out.push((at + moved).max(0.0));
            }
            at += self.period + if self.drifts { moved } else { 0.0 };
        }
        if self.noise > 0.0 {
            out.extend(poisson(r, length, self.period / self.noise));
        }
        ns(&out, self.interval)
    }

    /// How often it is found in [`TRAINS`].
    fn found(&self) -> usize {
        let near = |found: &ExceedancePeriod| {
            let off = (found.period_ns.real() - self.period).abs();
            off <= self.period * 0.01 && off <= found.error_ns.real()
        };
        let one = |seed: &u64| {
            let times = self.times(&mut Random::new(*seed));
            period(&times, self.interval.whole_i64(), 1).is_some_and(|f| near(&f))
        };
        (0..TRAINS as u64).filter(one).count()
    }
}

const TRAIN: Planted = Planted {
    period: 500.0 * MS,
    jitter: 0.3 * MS,
    present: 1.0,
    noise: 0.0,
    drifts: false,
    interval: 1.0 * MS,
    periods: 20.0,
};

#[test]
fn a_planted_period_is_found() {
    let cases = [
        ("alone", Planted { ..TRAIN }),
        ("free times", Planted { interval: 0.0, ..TRAIN }),
        ("one other a period", Planted { noise: 1.0, ..TRAIN }),
        ("three others a period", Planted { noise: 3.0, periods: 120.0, ..TRAIN }),
        ("half are absent", Planted { present: 0.5, periods: 60.0, ..TRAIN }),
        ("nine of ten are absent", Planted { present: 0.1, periods: 300.0, ..TRAIN }),
        ("half absent, others", Planted { present: 0.5, noise: 0.5, periods: 120.0, ..TRAIN }),
        (
            "it drifts",
            Planted { drifts: true, jitter: 3.0 * MS, noise: 0.5, periods: 200.0, ..TRAIN },
        ),
        (
            "a tick of 4 ms",
            Planted {
                period: 4.0 * MS,
                jitter: 0.0,
                present: 0.6,
                noise: 0.3,
                periods: 400.0,
                ..TRAIN
            },
        ),
        (
            "no multiple",
            Planted { period: 7.3 * MS, jitter: 0.0, noise: 0.3, periods: 300.0, ..TRAIN },
        ),
        (
            "a long list",
            Planted { period: 200.0 * MS, present: 0.7, noise: 1.0, periods: 1000.0, ..TRAIN },
        ),
    ];
    for (name, planted) in cases {
        let found = planted.found();
        assert!(found * 100 >= TRAINS * 95, "{name}: {found} of {TRAINS}");
    }
}

#[test]
fn the_stronger_of_two_periods_is_told() {
    let mut r = Random::new(5);
    let mut times = Planted { periods: 60.0, ..TRAIN }.times(&mut r);
    times.extend(Planted { period: 3100.0 * MS, periods: 10.0, ..TRAIN }.times(&mut r));
    let found = period(&times, 1_000_000, 1).unwrap();
    assert_eq!((found.period_ns + 500_000) / 1_000_000, 500);
    assert!(found.count >= 55 && found.of == times.len(), "{found:?}");
}

#[test]
fn every_activation_late_is_no_period() {
    let every: Vec<i64> = (0..500).map(|i| i * 1_000_000).collect();
    assert_eq!(period(&every, 1_000_000, 1), None);
    let same = vec![7; 100];
    assert_eq!(period(&same, 0, 1), None);
    assert_eq!(period(&[i64::MIN, i64::MAX, 0, 1, 2, 3, 4], i64::MAX, usize::MAX), None);
    assert_eq!(period(&[], 0, 0), None);
}
