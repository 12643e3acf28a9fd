// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a rule that ends a run means nothing, or could not be fulfilled in the time given.
//!
//! Units: ns. Not here: the rule (`until`).

use tailbound_core::plan::StopRule;
use tailbound_core::requirement::Rate;
use tailbound_core::units::format_span;
use tailbound_core::words::UnknownWord;

/// A rule that cannot end a run.
#[derive(Debug, thiserror::Error)]
pub enum UntilError {
    /// No such rule.
    #[error("--until: {0}")]
    Rule(UnknownWord),
    /// There is no rule that has a precision.
    #[error("--precision belongs to a rule: add --until precision")]
    NoRule,
    /// The rule has no precision.
    #[error("--precision has no meaning with --until {rule}")]
    OtherRule {
        /// Which.
        rule: StopRule,
    },
    /// The precision cannot be read.
    #[error(
        "--precision: `{text}` is not a half-width: write for example `5%` or `5%:p50,p99,p99.9`"
    )]
    Precision {
        /// As it was written.
        text: String,
    },
    /// The rule needs a deadline.
    #[error(
        "--until exceedance needs a deadline: add for example --deadline 100us, or write --break 100us"
    )]
    NoDeadline,
    /// The rule needs a deadline and a rate.
    #[error(
        "--until {rule} needs a deadline and a rate: add for example --deadline 100us --rate 1/24h"
    )]
    NoRate {
        /// Which.
        rule: StopRule,
    },
    /// The precision cannot hold within the time given.
    #[error(
        "--until precision: {} are too short: the precision must hold at three checks in a row, each at twice the length of the one before, so that no run ends by it before {}; leave --duration out, or --until",
        format_span(*.given_ns),
        format_span(*.first_ns)
    )]
    TooShortToBePrecise {
        /// The time given.
        given_ns: i64,
        /// No run ends by the rule before this.
        first_ns: i64,
    },
    /// The rate is too low to be shown.
    #[error(
        "--until {rule}: to show {rate} takes more than a year on one machine; `tailbound plan --rate {rate}` says how long, and on how many"
    )]
    TooRare {
        /// Which.
        rule: StopRule,
        /// The rate.
        rate: Rate,
    },
    /// The rate cannot be shown within the time given.
    #[error(
        "--until {rule}: {} cannot show {rate}: a run without exceedances takes {}; leave --duration out, or ask for a higher rate",
        format_span(*.given_ns),
        format_span(*.least_ns)
    )]
    TooShortToShow {
        /// Which.
        rule: StopRule,
        /// The rate.
        rate: Rate,
        /// The time given.
        given_ns: i64,
        /// What a run without exceedances takes.
        least_ns: i64,
    },
}
