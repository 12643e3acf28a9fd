// SPDX-License-Identifier: MIT OR Apache-2.0
//! When a bound is refused, in words: what is wrong and what to do about it.
//!
//! Units: ns; seconds.
//! First what is known of the run, then what the numbers say; all that applies, and the one to
//! act on first.

use tailbound_core::number::Real as _;
use tailbound_core::units::{format_ns, format_span, grouped};

use super::extrapolate::{BLOCKS_MIN, Stop};
use super::input::BlockMaxima;
use super::statement::{Cause, Reason, Settings};

/// Shortest run that is extrapolated.
pub(crate) const SECONDS_MIN: u64 = 1800;

/// Farthest extrapolation.
pub(crate) const EXTRAPOLATE_MAX: f64 = 100.0;

/// The confidence that the bound is calibrated for.
pub(crate) const CONFIDENCE: f64 = 0.95;

fn reason(cause: Cause, sentence: impl Into<String>, remedy: &str) -> Reason {
    Reason { cause, sentence: sentence.into(), remedy: remedy.to_owned() }
}

/// Reasons against a bound that need no look at the numbers.
pub(crate) fn known(maxima: &BlockMaxima, settings: &Settings) -> Vec<Reason> {
    let mut out = asked(settings);
    if let Some(title) = maxima.unfit.first() {
        let what = title.trim().trim_end_matches('.');
        out.push(reason(
            Cause::Unfit,
            format!("The figures do not describe this machine: {what}."),
            "Remove the cause that the finding names and measure again.",
        ));
    }
    if maxima.missed > 0 {
        out.push(reason(
            Cause::Missed,
            format!(
                "{} of {} activations were missed: wake-ups came later than the whole interval of \
                 {}.",
                grouped(maxima.missed),
                grouped(maxima.due.n),
                format_ns(maxima.interval_ns.real())
            ),
            "Find what held the CPU so long; a bound describes a tail, not stalls.",
        ));
    }
    if maxima.due.over_range > 0 {
        out.push(reason(
            Cause::OverRange,
            format!("{} values are beyond the range of 17 s.", grouped(maxima.due.over_range)),
            "Find what stopped the machine; this is no tail.",
        ));
    }
    if maxima.maxima_ns.is_empty() {
        out.push(no_seconds(maxima));
        return out;
    }
    out.extend(incomplete(maxima));
    if let Some(first) = maxima.changes.first() {
        out.push(reason(
            Cause::Changed,
            format!(
                "Something changed during the run, {} times, first in second {first}.",
                maxima.changes.len()
            ),
            "Measure the phases apart, or keep load and machine as they are for the whole run.",
        ));
    }
    if maxima.seconds < SECONDS_MIN {
        out.push(reason(
            Cause::TooShort,
            format!(
                "The run is {} long; an extrapolation takes 30 min at least.",
                format_span(
                    i64::try_from(maxima.seconds).unwrap_or(0).saturating_mul(1_000_000_000)
                )
            ),
            "Measure for 30 min or more; 12 h for a verdict.",
        ));
    }
    out
}

fn asked(settings: &Settings) -> Vec<Reason> {
    let mut out = Vec::new();
    let far = settings.extrapolate;
    if !(1.0..=EXTRAPOLATE_MAX).contains(&far) {
        out.push(reason(
            Cause::TooFar,
            format!("{far} times the run was asked for; nothing beyond 100 times can be shown."),
            "Ask for 10 or 100 times, or measure for longer.",
        ));
    }
    if (settings.confidence - CONFIDENCE).abs() > 1e-9 {
        out.push(reason(
            Cause::Confidence,
            "The bound is calibrated for a confidence of 95 % and for no other.".to_owned(),
            "Leave the confidence at 0.95; the lines without a distribution take any.",
        ));
    }
    out
}

fn no_seconds(maxima: &BlockMaxima) -> Reason {
    match &maxima.source {
        Some(source) => reason(
            Cause::NoSeconds,
            format!(
                "{source} keeps neither order nor time of its values: there are no maxima by the \
                 second."
            ),
            "Measure with tailbound, or import a format that keeps every value, with its interval.",
        ),
        None => reason(
            Cause::NoSeconds,
            "There is no whole second with a record.",
            "Measure for longer: 30 min at least.",
        ),
    }
}

fn incomplete(maxima: &BlockMaxima) -> Vec<Reason> {
    let mut out = Vec::new();
    if maxima.seconds_lost > 0 {
        out.push(reason(
            Cause::SecondsLost,
            format!(
                "{} of {} seconds lack the record of a thread.",
                grouped(maxima.seconds_lost),
                grouped(maxima.seconds)
            ),
            "See what the report lists as lost, and measure again.",
        ));
    }
    if maxima.seconds_empty > 0 {
        out.push(reason(
            Cause::SecondsEmpty,
            format!("{} seconds held no wake-up at all.", grouped(maxima.seconds_empty)),
            "Use an interval of one second or less.",
        ));
    }
    out
}

/// What the numbers say against a bound; `ns` is what one unit of theirs is.
pub(crate) fn found(stop: &Stop) -> Reason {
    match stop {
        Stop::Few => reason(
            Cause::TooFewBlocks,
            format!("There are fewer than {} seconds to judge by.", grouped(BLOCKS_MIN as u64)),
            "Measure for 30 min or more.",
        ),
        Stop::Gate(gate) if gate.constant() => reason(
            Cause::Constant,
            format!(
                "All {} block maxima are equal: a constant has no tail to extrapolate.",
                grouped(gate.blocks as u64)
            ),
            "Look whether the source cuts or rounds its values; import them with more digits, or \
             measure with tailbound.",
        ),
        Stop::Gate(gate) => reason(
            Cause::NotStationary,
            format!(
                "The {} block maxima are not independent draws of one distribution: {}.",
                grouped(gate.blocks as u64),
                gate.failed().join("; ")
            ),
            "See the time line for what changed or repeats (load, temperature, another job), \
             remove it or measure it apart, and measure again.",
        ),
        Stop::Apart(gate, few) => reason(
            Cause::Apart,
            format!(
                "The greatest {} of {} block maxima ({} and more) are of another kind than the rest, \
                 which end at {}: a second mechanism, met too seldom to be bounded.",
                few.count,
                grouped(gate.blocks as u64),
                format_ns(few.above),
                format_ns(few.below)
            ),
            "Find and remove what causes them, or measure until it was met fifty times.",
        ),
        Stop::NoThreshold(_) => reason(
            Cause::NoFit,
            "At no threshold is the tail a generalised Pareto distribution: it is a mixture.",
            "See the clusters below, likely of distinct causes: find and remove those.",
        ),
        Stop::Bursts(_, threshold, spread) => reason(
            Cause::Bursts,
            format!(
                "The {} seconds above {} are not spread evenly in time (uniform p = {:.4}, bursts \
                 p = {:.4}).",
                threshold.exceedances,
                format_ns(threshold.value),
                spread.uniform_p,
                spread.dispersion_p
            ),
            "Find what comes in bursts (see the time line), or measure for longer.",
        ),
        Stop::Coarse { scale, .. } => reason(
            Cause::Coarse,
            format!(
                "The source's values come in steps that are coarse beside the tail's scale of {}.",
                format_ns(*scale)
            ),
            "Import values with more digits, or measure with tailbound.",
        ),
        Stop::NoMean(_, _, fit) => reason(
            Cause::NoMean,
            format!(
                "The tail is so heavy (shape {:.2}) that it may have no mean: no bound on it means \
                 anything.",
                fit.shape
            ),
            "Find the cause of the greatest values; measure for longer.",
        ),
        Stop::Inside => reason(
            Cause::Inside,
            "The level asked for lies inside the data.",
            "Use the lines without a distribution.",
        ),
    }
}
