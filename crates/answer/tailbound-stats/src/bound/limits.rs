// SPDX-License-Identifier: MIT OR Apache-2.0
//! Upper limits: of a level far out, three ways, and of the shape.
//!
//! Units: those of the excesses.
//! A level is exceeded by one in r of the excesses. Its limit by profile likelihood is where
//! the best fit that has this level is worse than the best fit of all by half the chi-square
//! quantile of one degree of freedom; once with every shape, once without credit for an end
//! (shape 0 or more); and the exact limit of an exponential tail.
//! Source: Coles 2001, 2.6.6 and 4.3.3 (profile likelihood); method and level as in docs/results/bound.md.

use super::gpd::{Excesses, Gpd, SHAPE_MAX, SHAPE_MIN, level, scale_of_level};
use crate::chi::chi_square_quantile;
use crate::optimise::{maximise, root};

/// Step of the shapes that are tried first.
const SHAPE_STEP: f64 = 0.025;

/// How often a limit is looked for half as far again.
const WIDER_MAX: u32 = 60;

/// A level: its best value, and its upper limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// By the best fit.
    pub point: f64,
    /// Upper limit at the confidence asked for.
    pub upper: f64,
}

/// Half the chi-square quantile that a one-sided limit at `confidence` takes.
fn drop(confidence: f64) -> f64 {
    chi_square_quantile(1.0, 2.0 * confidence - 1.0) / 2.0
}

/// The likelihood as a function of a level.
struct Profile<'a> {
    excesses: &'a Excesses,
    r: f64,
    shape_min: f64,
}

impl Profile<'_> {
    fn at(&self, z: f64, shape: f64) -> f64 {
        self.excesses.log_likelihood(shape, scale_of_level(shape, z, self.r))
    }

    fn steps(&self) -> u32 {
        let mut n = 0u32;
        while self.shape_min + f64::from(n) * SHAPE_STEP < SHAPE_MAX - 1e-9 {
            n += 1;
        }
        n
    }

    fn shape(&self, step: u32) -> f64 {
        (self.shape_min + f64::from(step) * SHAPE_STEP).min(SHAPE_MAX)
    }

    /// The greatest likelihood with the level `z`, and the step of the shape it is near.
    ///
    /// Climbs from the step `near`, where the neighbouring level had it.
    fn best(&self, z: f64, near: Option<u32>) -> (f64, u32) {
        let last = self.steps();
        let at = |i: u32| self.at(z, self.shape(i));
        let all = || {
            (0..=last).map(|i| (i, at(i))).max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, at(0)))
        };
        let (mut here, mut l) = match near {
            Some(i) => (i.min(last), at(i.min(last))),
            None => all(),
        };
        if !l.is_finite() {
            (here, l) = all();
        }
        loop {
            let up = if here < last { at(here + 1) } else { f64::NEG_INFINITY };
            let down = if here > 0 { at(here - 1) } else { f64::NEG_INFINITY };
            if up > l {
                (here, l) = (here + 1, up);
            } else if down > l {
                (here, l) = (here - 1, down);
            } else {
                break;
            }
        }
        let low = self.shape(here.saturating_sub(1));
        let high = self.shape((here + 1).min(last));
        let (_, refined) = maximise(low, high, 1e-7, |shape| self.at(z, shape));
        (refined.max(l), here)
    }
}

/// The level of one in `r` excesses by profile likelihood, with a shape of `shape_min` or more.
#[must_use]
pub fn by_profile(excesses: &Excesses, r: f64, confidence: f64, shape_min: f64) -> (Level, Gpd) {
    let shape_min = shape_min.max(SHAPE_MIN);
    let fit = excesses.fit(shape_min, SHAPE_MAX);
    let point = fit.level(r);
    let profile = Profile { excesses, r, shape_min };
    let near = std::cell::Cell::new(None);
    let greatest = fit.log_likelihood.max(profile.best(point, None).0);
    let enough = drop(confidence);
    // Positive beyond the limit.
    let excess = |z: f64| {
        let (l, step) = profile.best(z, near.get());
        near.set(Some(step));
        greatest - l - enough
    };
    let (mut inside, mut outside) = (point, point * 1.2);
    for _ in 0..WIDER_MAX {
        if excess(outside) >= 0.0 {
            break;
        }
        inside = outside;
        outside *= 1.5;
    }
    let upper = root(inside.ln(), outside.ln(), 1e-9, |z| excess(z.exp())).exp();
    (Level { point, upper }, fit)
}

/// The level of one in `r` excesses of an exponential tail: exact.
#[must_use]
pub fn by_exponential(excesses: &Excesses, r: f64, confidence: f64) -> Level {
    let (k, mean) = (excesses.k(), excesses.mean());
    let scale = 2.0 * k * mean / chi_square_quantile(2.0 * k, 1.0 - confidence);
    Level { point: level(0.0, mean, r), upper: level(0.0, scale, r) }
}

/// The upper limit of the shape; `None`: 1 or more, where the tail has no mean.
#[must_use]
pub fn shape_upper(excesses: &Excesses, fit: &Gpd, confidence: f64) -> Option<f64> {
    let enough = drop(confidence);
    let centre = fit.scale.ln();
    let excess = |shape: f64| {
        let (_, l) = maximise(centre - 2.0, centre + 1.0, 1e-6, |log_scale| {
            excesses.log_likelihood(shape, log_scale.exp())
        });
        fit.log_likelihood - l - enough
    };
    (excess(SHAPE_MAX) > 0.0).then(|| root(fit.shape, SHAPE_MAX, 1e-6, excess))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn an_exponential_tail_is_seen_as_one() {
        let mut random = Random::new(11);
        let y: Vec<f64> = (0..400).map(|_| -random.uniform().ln() * 3.0).collect();
        let y = Excesses::new(y).expect("positive");
        let (free, fit) = by_profile(&y, 100.0, 0.975, SHAPE_MIN);
        assert!(fit.shape.abs() < 0.15 && (fit.scale - 3.0).abs() < 0.7, "{fit:?}");
        let truth = 3.0 * 100f64.ln();
        assert!(free.upper > truth && free.upper < 3.0 * truth, "{free:?}");
        let (no_end, _) = by_profile(&y, 100.0, 0.975, 0.0);
        let plain = by_exponential(&y, 100.0, 0.975);
        assert!(plain.upper > plain.point && no_end.upper > plain.point);
        let upper = shape_upper(&y, &fit, 0.975).expect("far below 1");
        assert!(upper > fit.shape && upper < 0.4, "{upper}");
        // The scale of the values does not matter.
        let scaled = Excesses::new(y.values().iter().map(|v| v * 1e5)).expect("positive");
        let (again, _) = by_profile(&scaled, 100.0, 0.975, SHAPE_MIN);
        assert!((again.upper / free.upper / 1e5 - 1.0).abs() < 1e-6);
    }

    #[test]
    fn a_tail_without_a_mean_has_no_limit() {
        let mut random = Random::new(2);
        let y = (0..200).map(|_| random.uniform().powf(-1.0) - 1.0);
        let y = Excesses::new(y).expect("positive");
        let fit = y.fit(SHAPE_MIN, SHAPE_MAX);
        assert_eq!(shape_upper(&y, &fit, 0.975), None, "{fit:?}");
    }
}
