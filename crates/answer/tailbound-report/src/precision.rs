// SPDX-License-Identifier: MIT OR Apache-2.0
//! How well the figures of a run are known, as cells of tables and as a sentence.
//!
//! Units: ns in, people's units out. Half-widths are those of all due
//! activations: a stretch of the schedule counts them, woken and missed alike.
//! Not here: the numbers (`tailbound_stats::precision`).

use tailbound_core::units::format_ns;
use tailbound_stats::Analysis;

/// What the column or row of half-widths is called.
pub const NAME: &str = "95 % ±";

/// The half-width of a time.
pub(crate) fn time(half_ns: Option<f64>) -> String {
    half_ns.map_or_else(|| "unknown".to_owned(), |h| format!("±{}", format_ns(h)))
}

/// The half-width of a number without unit.
pub(crate) fn bare(half: Option<f64>) -> String {
    half.map_or_else(
        || "unknown".to_owned(),
        |h| format!("±{}", crate::unitless::unitless(Some(h))),
    )
}

/// The half-width of the quantile `p`; `open` where too few values lie beyond for a limit, and
/// nothing where the quantile itself is not given.
pub(crate) fn quantile(summary: &tailbound_stats::Summary, p: f64) -> String {
    if summary.quantile(p).and_then(|q| q.ns()).is_none() {
        return String::new();
    }
    let known = summary.precision.as_ref().and_then(|known| known.quantile(p));
    match known {
        Some(q) => q.half_ns.map_or_else(|| "open".to_owned(), |h| format!("±{}", format_ns(h))),
        None => "unknown".to_owned(),
    }
}

/// What is known in one sentence, or why nothing is.
#[must_use]
pub fn sentence(analysis: &Analysis<'_>) -> Option<String> {
    let known = analysis.precision()?;
    Some(match (&known.why_not, known.mean_sentence()) {
        (Some(why), _) => format!("{NAME}: unknown: {why}"),
        (None, Some(mean)) => format!(
            "{NAME}: half-widths from {} stretches of {} s; {mean}",
            known.stretches, known.stretch_s
        ),
        (None, None) if known.lasting.is_some() => format!(
            "{NAME}: half-widths from {} stretches of {} s, which states of the machine outlast: each is \
             at least as given; the mean's is unknown",
            known.stretches, known.stretch_s
        ),
        (None, None) => format!(
            "{NAME}: half-widths from {} stretches of {} s; the mean's is unknown",
            known.stretches, known.stretch_s
        ),
    })
}
