// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long must be measured: to show a rate, a share of activations in time, a quantile or a
//! mean, and what a shorter run shows.
//!
//! Units: seconds of schedule; rates per second.
//! Two clocks tick here. A *rate* ("one per 24 h") needs time: seconds count, however many
//! activations they hold, and machines measured beside each other add up. A *share* or a
//! *quantile* ("99.999 % in time") needs activations, as many as would be independent; where
//! late ones come in clusters, every cluster counts as one.
//! Not here: limits themselves ([`crate::rates`]), what a run achieved ([`crate::precision`]).
//! Source: Hanley and Lippman-Hand 1983; Garwood 1936; McKenney, "Is Parallel Programming Hard",
//! section on validation (T = -(1/n)·ln(1-P)).

use serde::Serialize;

use crate::anytime;
use crate::chi::gamma_quantile;
use crate::rates::{events_allowed, exposure_needed, rate_upper, trials_needed};

/// Version of the method, part of every answer.
pub const METHOD: &str = "planning/1";

/// Exceedances for which the table of a plan has a row.
const ALLOWED: [u64; 6] = [0, 1, 2, 3, 5, 10];

/// Lengths that people measure, in seconds.
const LENGTHS_S: [f64; 11] = [
    60.0,
    600.0,
    3600.0,
    4.0 * 3600.0,
    12.0 * 3600.0,
    86_400.0,
    3.0 * 86_400.0,
    7.0 * 86_400.0,
    30.0 * 86_400.0,
    91.0 * 86_400.0,
    365.0 * 86_400.0,
];

/// What it takes to show something if a number of exceedances is seen.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Needed {
    /// Exceedances (seconds with one, or late activations) that may be seen.
    pub allowed: u64,
    /// What it takes: seconds of schedule of all machines together, or activations.
    pub exposure: f64,
    /// Seconds on each machine.
    pub each_s: f64,
}

/// What a clean run of a length shows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CleanRunBound {
    /// Length of the run on each machine.
    pub length_s: f64,
    /// Exceedances are rarer than one per this time, at the confidence asked for.
    pub one_per_s: f64,
}

/// How to show that a rate of exceedances is low enough.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Demonstration {
    /// The rate to be shown, per second.
    pub rate_per_s: f64,
    /// At this confidence.
    pub confidence: f64,
    /// Machines measured beside each other.
    pub machines: u32,
    /// Rows by exceedances seen; the first is a clean run.
    pub needed: Vec<Needed>,
    /// Seconds on each machine after which a clean run shows it although somebody looked all
    /// the time and would have stopped earlier.
    pub anytime_each_s: f64,
    /// What shorter clean runs show.
    pub shorter: Vec<CleanRunBound>,
}

/// What it takes to show a rate of at most `rate_per_s`.
#[must_use]
pub fn demonstration(rate_per_s: f64, confidence: f64, machines: u32) -> Demonstration {
    let machines = machines.max(1);
    let parallel = f64::from(machines);
    let row = |allowed: u64| {
        let exposure = exposure_needed(allowed, rate_per_s, confidence);
        Needed { allowed, exposure, each_s: exposure / parallel }
    };
    let needed: Vec<Needed> = ALLOWED.into_iter().map(row).collect();
    let planned = row(0).exposure;
    let lengths: Vec<f64> = LENGTHS_S.into_iter().filter(|s| *s * parallel < planned).collect();
    let last = lengths.len().saturating_sub(5);
    Demonstration {
        rate_per_s,
        confidence,
        machines,
        needed,
        anytime_each_s: anytime::time_needed(0, rate_per_s, planned, confidence) / parallel,
        shorter: lengths
            .into_iter()
            .skip(last)
            .map(|length_s| shown(length_s, confidence, machines))
            .collect(),
    }
}

/// What a clean run of `length_s` on each of `machines` shows.
#[must_use]
pub fn shown(length_s: f64, confidence: f64, machines: u32) -> CleanRunBound {
    let exposure = length_s * f64::from(machines.max(1));
    CleanRunBound { length_s, one_per_s: 1.0 / rate_upper(0, exposure, confidence) }
}

/// How to show that a share of the activations is in time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ShareInTime {
    /// The share to be shown.
    pub share: f64,
    /// At this confidence.
    pub confidence: f64,
    /// Rows by late activations seen: activations in `exposure`.
    pub needed: Vec<Needed>,
    /// Of a given number of activations: how many may be late; `None` within: too few to show
    /// it at all.
    pub given: Option<ActivationBudget>,
}

/// A number of activations, and what may be late of them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ActivationBudget {
    /// Activations.
    pub activations: f64,
    /// Late ones that still show the share; `None`: not even a clean run does.
    pub allowed: Option<u64>,
    /// Late ones to be expected if the share is just reached.
    pub expected: f64,
    /// Probability of being late that the run shows if none is.
    pub clean_shows: f64,
}

/// What it takes to show that `share` of the activations are in time, at intervals of
/// `interval_s` on `threads` threads together.
#[must_use]
pub fn share_in_time(
    share: f64,
    confidence: f64,
    interval_s: f64,
    threads: u32,
    activations: Option<f64>,
) -> ShareInTime {
    let late = 1.0 - share;
    let row = |allowed: u64| {
        let exposure = if allowed == 0 {
            trials_needed(late, confidence)
        } else {
            exposure_needed(allowed, late, confidence)
        };
        Needed { allowed, exposure, each_s: exposure * interval_s / f64::from(threads.max(1)) }
    };
    ShareInTime {
        share,
        confidence,
        needed: ALLOWED.into_iter().map(row).collect(),
        given: activations.map(|n| given(n, late, confidence)),
    }
}

/// What `activations` show of a probability `late`, at most.
#[must_use]
pub fn given(activations: f64, late: f64, confidence: f64) -> ActivationBudget {
    let mut allowed = events_allowed(activations, late, confidence);
    // A clean run is judged exactly; the Poisson form asks for a little more.
    if allowed.is_none() && activations >= trials_needed(late, confidence) {
        allowed = Some(0);
    }
    ActivationBudget {
        activations,
        allowed,
        expected: activations * late,
        clean_shows: rate_upper(0, activations, confidence),
    }
}

/// How many activations a quantile takes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct QuantilePlan {
    /// Probability of the quantile.
    pub quantile: f64,
    /// At this confidence.
    pub confidence: f64,
    /// Half-width asked for, as a share of the probability of being later.
    pub precision: f64,
    /// Independent activations that give it an upper limit at all.
    pub finite: f64,
    /// Independent activations that know the probability beyond it so well.
    pub precise: f64,
}

/// What a quantile of probability `quantile` takes.
#[must_use]
pub fn quantile_plan(quantile: f64, precision: f64, confidence: f64) -> QuantilePlan {
    let beyond = 1.0 - quantile;
    let z = two_sided_normal(confidence);
    QuantilePlan {
        quantile,
        confidence,
        precision,
        finite: trials_needed(beyond, confidence),
        precise: quantile / beyond * (z / precision).powi(2),
    }
}

/// z of which a standard normal variable is within ±z with probability `confidence`.
#[must_use]
pub fn two_sided_normal(confidence: f64) -> f64 {
    // z² is chi-square with one degree of freedom: twice a gamma variable of shape ½.
    (2.0 * gamma_quantile(0.5, confidence)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(got: f64, want: f64, relative: f64) {
        assert!((got - want).abs() <= relative * want, "{got} is not {want}");
    }

    #[test]
    fn once_a_day_takes_three_days_and_machines_add_up() {
        let one = demonstration(1.0 / 86_400.0, 0.95, 1);
        near(one.needed.first().map_or(0.0, |n| n.each_s), 20f64.ln() * 86_400.0, 1e-9);
        let three = demonstration(1.0 / 86_400.0, 0.95, 3);
        near(three.needed.first().map_or(0.0, |n| n.each_s), 20f64.ln() * 28_800.0, 1e-9);
        assert!(one.needed.windows(2).all(|w| w[0].exposure < w[1].exposure));
        let ratio = one.anytime_each_s / one.needed.first().map_or(0.0, |n| n.each_s);
        assert!(ratio > 1.7 && ratio < 1.9, "looking all the time costs: {ratio}");
    }

    #[test]
    fn durations_as_published() {
        near(shown(100e6 * 200e-6, 0.95, 1).one_per_s, 1.85 * 3600.0, 3e-3);
        near(shown(12.0 * 3600.0, 0.95, 1).one_per_s, 4.0 * 3600.0, 2e-3);
        let mckenney = given(1e7, 1e-5, 0.95);
        assert_eq!(mckenney.allowed, Some(83));
        near(mckenney.clean_shows, 3.0e-7, 2e-3);
        assert_eq!(given(500_000.0, 1e-5, 0.99999).allowed, None);
    }

    #[test]
    fn quantiles_as_published() {
        let plan = quantile_plan(0.99999, 0.10, 0.95);
        near(plan.finite, 299_572.0, 1e-5);
        near(plan.precise, 38.4e6, 2e-3);
        near(quantile_plan(0.9999, 0.10, 0.95).precise, 3.84e6, 2e-3);
        near(two_sided_normal(0.95), 1.959_963_985, 1e-9);
    }
}
