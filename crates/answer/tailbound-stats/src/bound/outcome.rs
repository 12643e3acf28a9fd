// SPDX-License-Identifier: MIT OR Apache-2.0
//! Does a statement show the deadline?
//!
//! Units: ns in, a sentence out.

use tailbound_core::Outcome;
use tailbound_core::number::Real as _;
use tailbound_core::requirement::Rate;
use tailbound_core::units::{format_ns, spaced};

use super::statement::Statement;

/// The worst of several outcomes: not met, then what is not known; `Measured` of none.
#[must_use]
pub fn worst(outcomes: impl Iterator<Item = Outcome>) -> Outcome {
    let badness = |o: &Outcome| match o {
        Outcome::NotMet => 2,
        Outcome::Undecided | Outcome::Unfit | Outcome::Unknown(_) => 1,
        Outcome::Met | Outcome::Measured => 0,
    };
    outcomes.max_by_key(badness).unwrap_or(Outcome::Measured)
}

/// Does the statement show the deadline? In one word, and why.
///
/// A deadline is shown by a bound that is within it, or by a demonstrated `rate`.
#[must_use]
pub fn outcome(statement: &Statement, rate: Option<Rate>) -> (Outcome, String) {
    if let Some(reason) = statement.unfit() {
        return (Outcome::Unfit, format!("Unfit: nothing is shown. {}", reason.sentence));
    }
    let Some(deadline) = statement.settings.deadline_ns else {
        return (Outcome::Measured, "No deadline was given, so there is nothing to judge.".into());
    };
    let limit = spaced(deadline);
    if let Some(max) = statement.observed_max_ns.filter(|m| *m > deadline) {
        let latest = format_ns(max.real());
        return (
            Outcome::NotMet,
            format!("Not shown: the latest was {latest}, later than the deadline of {limit}."),
        );
    }
    let line = statement.free.iter().find(|l| l.threshold_ns == deadline);
    let required = rate.map(|r| (r, f64::from(r.count) / (r.per_ns.real() / 1e9)));
    if let (Some((rate, per_s)), Some(line)) = (required, line)
        && line.rate_upper_per_s <= per_s
    {
        return (
            Outcome::Met,
            format!("Shown: later than {limit} comes no more often than {rate}."),
        );
    }
    match statement.bound() {
        Some(b) if b.bound_ns <= deadline.real() => {
            let early = if b.warnings.iter().any(|w| w.starts_with("Preliminary")) {
                " (preliminary: see below)"
            } else {
                ""
            };
            let bound = format_ns(b.bound_ns);
            (
                Outcome::Met,
                format!("Shown: the bound of {bound} is within the deadline of {limit}{early}."),
            )
        }
        Some(b) => (
            Outcome::Undecided,
            format!(
                "Undecided: no latency exceeded {limit}, but the bound is {}.",
                format_ns(b.bound_ns)
            ),
        ),
        None => (
            Outcome::Undecided,
            format!("Undecided: nothing was later than {limit}, but there is no bound."),
        ),
    }
}
