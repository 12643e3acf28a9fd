// SPDX-License-Identifier: MIT OR Apache-2.0
//! How often is a change seen where there is none, and where there is one? Runs of an hour whose
//! values are drawn independently: a part of the study of docs/results/bound.md.
//!
//! Units: none.
//! A stretch of 10 s gives the median and the p99 of its values; of more than a thousand they are
//! drawn as such, normal around the quantile.
//! Not here: drawing in parallel and printing (`examples/coverage.rs`).

use serde::Serialize;
use tailbound_core::number::{Real as _, Whole as _};

use super::phases::steps;
use crate::normal;
use crate::random::Random;

/// Stretches of an hour.
const STRETCHES: usize = 360;

/// Values a second that are tried.
pub const RATES: [u32; 3] = [1, 10, 1000];

/// What is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// Exponential.
    Exponential,
    /// Lognormal, sigma 0.5.
    Lognormal,
    /// Pareto of shape 0.5.
    Pareto,
    /// Uniform from 1 to 2.
    Uniform,
}

/// All of them.
pub const FAMILIES: [Family; 4] =
    [Family::Exponential, Family::Lognormal, Family::Pareto, Family::Uniform];

/// What happens during the hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// Nothing.
    Steady,
    /// From the middle on values are so many hundredths greater.
    Step(u32),
    /// For five minutes they are.
    Phase(u32),
}

/// All of them.
pub const EVENTS: [Event; 6] = [
    Event::Steady,
    Event::Step(10),
    Event::Step(20),
    Event::Step(50),
    Event::Phase(20),
    Event::Phase(50),
];

impl Family {
    /// Its name in the table.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Exponential => "exponential",
            Self::Lognormal => "lognormal, sigma 0.5",
            Self::Pareto => "Pareto, shape 0.5",
            Self::Uniform => "uniform from 1 to 2",
        }
    }

    /// The logarithm of the value that one exceeds with probability `p`.
    fn ln(self, p: f64) -> f64 {
        match self {
            Self::Exponential => (-p.ln()).ln(),
            Self::Lognormal => -0.5 * normal::quantile(p),
            Self::Pareto => -0.5 * p.ln(),
            Self::Uniform => (2.0 - p).ln(),
        }
    }
}

impl Event {
    /// Its name in the table.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Steady => "false alarms".to_owned(),
            Self::Step(more) => format!("+{more} % from the middle on"),
            Self::Phase(more) => format!("+{more} % for 5 min"),
        }
    }

    fn ln(self, stretch: usize) -> f64 {
        let more = |hundredths: u32| (1.0 + f64::from(hundredths) / 100.0).ln();
        match self {
            Self::Step(more_by) if stretch >= STRETCHES / 2 => more(more_by),
            Self::Phase(more_by) if (100..130).contains(&stretch) => more(more_by),
            _ => 0.0,
        }
    }
}

/// Draws an hour at `rate` values a second: is a change seen in it?
#[must_use]
pub fn seen(family: Family, rate: u32, event: Event, seed: u64) -> bool {
    let mut random = Random::new(seed);
    let (mut medians, mut p99) = (Vec::new(), Vec::new());
    for stretch in 0..STRETCHES {
        let [a, b] = stretch_of(family, rate, &mut random);
        // The recorder's buckets are 0.8 % wide.
        let bucket = |ln: f64| ((ln + event.ln(stretch)) / 0.008).round() * 0.008;
        medians.push(bucket(a));
        p99.push(bucket(b));
    }
    !steps(&medians).is_empty() || !steps(&p99).is_empty()
}

/// Logarithms of median and p99 of ten seconds.
fn stretch_of(family: Family, rate: u32, random: &mut Random) -> [f64; 2] {
    let n = f64::from(rate) * 10.0;
    if n > 1000.0 {
        return [0.5f64, 0.01].map(|p| {
            let sd = (p * (1.0 - p) / n).sqrt();
            family.ln((p + sd * normal::quantile(random.uniform())).clamp(1e-9, 1.0))
        });
    }
    let mut drawn: Vec<f64> = (0..rate * 10).map(|_| random.uniform()).collect();
    drawn.sort_unstable_by(f64::total_cmp);
    // The rank from above of a quantile: of few values the p99 is the greatest.
    [0.5, 0.99].map(|p: f64| {
        let rank = (n - (p * n).ceil()).max(0.0).whole_usize();
        drawn.get(rank).map_or(f64::NAN, |u| family.ln(*u))
    })
}

/// Share of `repetitions` hours in which a change is seen.
#[must_use]
pub fn share(family: Family, rate: u32, event: Event, seed: u64, repetitions: u64) -> f64 {
    let count = (0..repetitions).filter(|i| seen(family, rate, event, seed + i)).count();
    count.real() / repetitions.max(1).real()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A quick version: fixed seeds, so it cannot fail by chance.
    #[test]
    fn steady_runs_are_steady_at_every_rate_and_steps_are_seen() {
        for rate in RATES {
            for family in FAMILIES {
                let false_alarms = share(family, rate, Event::Steady, 40, 60);
                assert!(false_alarms <= 0.034, "{family:?} at {rate}/s: {false_alarms}");
            }
            let step = share(Family::Exponential, rate, Event::Step(50), 40, 20);
            assert!(step > 0.9, "at {rate}/s: {step}");
        }
    }
}
