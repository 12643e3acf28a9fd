// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a run shows about how late it can be: the shape of the answer.
//!
//! Units: ns (fractional where computed), seconds where named `_s`.
//! Every part can be written as JSON; method, settings and seed are part of it.
//! Not here: how it is found ([`super::procedure`]), pictures (`tailbound-report`).

use serde::Serialize;
use tailbound_core::Context;

use super::extrapolate::Limits;
use super::gate::Gate;
use super::modes::TailMode;
use super::threshold::Spread;

/// Version of the method: answers of one version can be compared.
pub const METHOD: &str = "tailbound-bound/2";

/// What is asked.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Settings {
    /// Confidence of the distribution-free lines. The bound has one of 95 % or is refused.
    pub confidence: f64,
    /// How many times the length of the run the bound reaches: 1 to 100.
    pub extrapolate: f64,
    /// Thresholds to state rates of, in ns, beside the deadline and the observed maximum.
    pub above_ns: Vec<i64>,
    /// Deadline, in ns.
    pub deadline_ns: Option<i64>,
    /// For spreading values over the step of a coarse source.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            confidence: 0.95,
            extrapolate: 10.0,
            above_ns: Vec::new(),
            deadline_ns: None,
            seed: 1,
        }
    }
}

/// How often something later than a threshold still comes, whatever the distribution.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FreeLine {
    /// The threshold.
    pub threshold_ns: i64,
    /// Why this threshold: `deadline`, `asked`, `observed-max` or `round`.
    pub why: &'static str,
    /// Seconds that held something later; where a record is missing, as many as can be.
    pub count: u64,
    /// Seconds measured.
    pub seconds: u64,
    /// Upper limit of the rate of such seconds, per second.
    pub rate_upper_per_s: f64,
    /// Least mean time between them.
    pub mean_time_between_s: f64,
    /// All that in words.
    pub sentence: String,
}

/// How much the great values cluster.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Clustering {
    /// Extremal index, 0 to 1.
    pub index: f64,
    /// Of what: `activations` or `seconds`.
    pub of: &'static str,
    /// How many exceedances it is from.
    pub exceedances: usize,
    /// In words.
    pub sentence: String,
}

/// Why there is no extrapolation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The source keeps no time: there are no maxima by the second.
    NoSeconds,
    /// A finding says that the figures do not describe the machine.
    Unfit,
    /// Activations were missed.
    Missed,
    /// Values beyond the range of the histogram.
    OverRange,
    /// Seconds lack the record of a thread.
    SecondsLost,
    /// Seconds without any wake-up.
    SecondsEmpty,
    /// Shorter than half an hour.
    TooShort,
    /// Fewer than 1000 blocks.
    TooFewBlocks,
    /// Farther than 100 times the run.
    TooFar,
    /// A confidence the method is not calibrated for.
    Confidence,
    /// Something changed during the run.
    Changed,
    /// All blocks are equal.
    Constant,
    /// Blocks are not independent draws of one distribution.
    NotStationary,
    /// The greatest few are of another kind than the rest.
    Apart,
    /// At no threshold is the tail a generalised Pareto distribution.
    NoFit,
    /// Exceedances come in bursts.
    Bursts,
    /// The tail may have no mean.
    NoMean,
    /// Values come in coarse steps.
    Coarse,
    /// The level asked for lies inside the data.
    Inside,
}

impl Cause {
    /// Every cause, with its id and what it is.
    pub const ALL: [(Self, &'static str, &'static str); 19] = [
        (
            Self::NoSeconds,
            "no-seconds",
            "The source keeps no time: there are no maxima by the second.",
        ),
        (Self::Unfit, "unfit", "A finding says that the figures do not describe the machine."),
        (Self::Missed, "missed", "Activations were missed."),
        (Self::OverRange, "over-range", "Values lie beyond the range of the histogram."),
        (Self::SecondsLost, "seconds-lost", "Seconds lack the record of a thread."),
        (Self::SecondsEmpty, "seconds-empty", "There are seconds without any wake-up."),
        (Self::TooShort, "too-short", "The run is shorter than half an hour."),
        (Self::TooFewBlocks, "too-few-blocks", "There are fewer than 1000 blocks."),
        (Self::TooFar, "too-far", "The time asked for is more than 100 times the run."),
        (Self::Confidence, "confidence", "The method is not calibrated for this confidence."),
        (Self::Changed, "changed", "Something changed during the run."),
        (Self::Constant, "constant", "All blocks are equal."),
        (
            Self::NotStationary,
            "not-stationary",
            "Blocks are not independent draws of one distribution.",
        ),
        (Self::Apart, "apart", "The greatest few are of another kind than the rest."),
        (Self::NoFit, "no-fit", "At no threshold is the tail a generalised Pareto distribution."),
        (Self::Bursts, "bursts", "Exceedances come in bursts."),
        (Self::NoMean, "no-mean", "The tail may have no mean."),
        (Self::Coarse, "coarse", "Values come in coarse steps."),
        (Self::Inside, "inside", "The level asked for lies inside the data."),
    ];

    /// Its word in JSON.
    #[must_use]
    pub fn id(self) -> &'static str {
        Self::ALL.iter().find(|(cause, ..)| *cause == self).map_or("", |(_, id, _)| id)
    }
}

/// One reason against an extrapolation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reason {
    /// For scripts.
    pub cause: Cause,
    /// What is wrong, a sentence.
    pub sentence: String,
    /// What to do, a sentence.
    pub remedy: String,
}

/// A point of the curve: what is exceeded about once in a time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ReturnLevel {
    /// Mean time between exceedances.
    pub period_s: f64,
    /// Best value.
    pub level_ns: f64,
    /// Upper limit: the bound for this time.
    pub upper_ns: f64,
}

/// What the bound would be without the largest observation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Influence {
    /// The bound without it.
    pub bound_ns: f64,
    /// Share by which the bound falls.
    pub drop: f64,
    /// Does the bound rest on one event (a fall by more than half)?
    pub one_event: bool,
}

/// An extrapolated bound with all it comes from.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bound {
    /// The bound.
    pub bound_ns: f64,
    /// Best value of the same level, without any margin.
    pub point_ns: f64,
    /// The limits of which it is the greatest, in ns.
    pub limits: Limits,
    /// It is exceeded about once in this time.
    pub period_s: f64,
    /// Probability that a second exceeds it.
    pub probability_per_s: f64,
    /// How many times the run that is.
    pub extrapolation: f64,
    /// Length of a block.
    pub block_s: u64,
    /// How many blocks.
    pub blocks: usize,
    /// The threshold of the tail.
    pub threshold_ns: f64,
    /// How many blocks are above it.
    pub exceedances: usize,
    /// Shape of the tail.
    pub shape: f64,
    /// Its upper limit at 90 %.
    pub shape_upper: f64,
    /// What the shape means.
    pub shape_words: &'static str,
    /// Scale of the tail.
    pub scale_ns: f64,
    /// Standard deviation over mean of the excesses: 1 for an exponential tail.
    pub variation: f64,
    /// The tests of the blocks.
    pub gate: Gate,
    /// Anderson–Darling p of the fit.
    pub fit_p: f64,
    /// The tests of the exceedances' times.
    pub spread: Spread,
    /// Without the largest observation.
    pub influence: Option<Influence>,
    /// Level over time between exceedances.
    pub curve: Vec<ReturnLevel>,
    /// The bound in words.
    pub sentence: String,
    /// What a reader must know beside it.
    pub warnings: Vec<String>,
}

/// The bound, or why there is none.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Extrapolation {
    /// There is one.
    Bound(Box<Bound>),
    /// There is none.
    Refused {
        /// All reasons against one, the one to act on first.
        reasons: Vec<Reason>,
        /// Where the great values lie, the greatest first.
        modes: Vec<TailMode>,
        /// The tests of the blocks, where there were enough.
        gate: Option<Gate>,
    },
}

/// All of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Statement {
    /// [`METHOD`].
    pub method: &'static str,
    /// What was asked.
    pub settings: Settings,
    /// The context that is judged.
    pub context: Context,
    /// Length of the run in whole seconds.
    pub seconds: u64,
    /// Latest of all.
    pub observed_max_ns: Option<i64>,
    /// Rates without any assumption about the distribution.
    pub free: Vec<FreeLine>,
    /// Why there is no such line, if there is none.
    pub free_missing: Option<String>,
    /// Clustering of great values; `None`: too few of them.
    pub clustering: Option<Clustering>,
    /// The bound or the refusal.
    pub extrapolation: Extrapolation,
    /// What was left out before.
    pub discarded: Vec<String>,
    /// What all of this assumes.
    pub assumptions: Vec<String>,
    /// The greatest blocks and how often one as great was seen, for the picture: those that the
    /// bound comes from; of all seconds where there is none.
    pub observed: Vec<(f64, i64)>,
}

impl Statement {
    /// The bound, if there is one.
    #[must_use]
    pub fn bound(&self) -> Option<&Bound> {
        match &self.extrapolation {
            Extrapolation::Bound(b) => Some(b),
            Extrapolation::Refused { .. } => None,
        }
    }

    /// Why the figures do not describe the machine, if so.
    #[must_use]
    pub fn unfit(&self) -> Option<&Reason> {
        self.reasons().iter().find(|r| r.cause == Cause::Unfit)
    }

    /// The reasons against one, if there is none.
    #[must_use]
    pub fn reasons(&self) -> &[Reason] {
        match &self.extrapolation {
            Extrapolation::Bound(_) => &[],
            Extrapolation::Refused { reasons, .. } => reasons,
        }
    }
}
