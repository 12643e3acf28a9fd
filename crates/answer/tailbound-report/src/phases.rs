// SPDX-License-Identifier: MIT OR Apache-2.0
//! What changed within a run, as sentences, as marks in pictures and for scripts.
//!
//! Not here: finding it (`tailbound_stats::change::phases`).

use serde_json::{Value, json};
use tailbound_core::number::Real as _;
use tailbound_core::units::format_span;
use tailbound_stats::Analysis;
use tailbound_stats::change::Phase;
use tailbound_stats::change::phases::METHOD;
use tailbound_stats::precision::TooFewStretches;

fn ratio(p: &Phase) -> String {
    format!("{} × {:.2}", p.figure, p.ratio)
}

/// The seconds where something changed, with a few words each, for a picture over time.
pub(crate) fn marks(analysis: &Analysis<'_>) -> Vec<(f64, String)> {
    let found = analysis.phases().unwrap_or_default();
    found.iter().map(|p| (p.second.real(), ratio(p))).collect()
}

/// What changed, a sentence each; nothing where nothing did.
#[must_use]
pub fn sentences(analysis: &Analysis<'_>) -> Vec<String> {
    let found = analysis.phases().unwrap_or_default();
    let one = |p: &Phase| {
        let after = i64::try_from(p.second).unwrap_or(i64::MAX).saturating_mul(1_000_000_000);
        format!("After about {} the machine behaved otherwise: {}.", format_span(after), ratio(p))
    };
    let mut out: Vec<String> = found.iter().map(one).collect();
    if !out.is_empty() {
        out.push(
            "Figures of the whole run mix these phases; they allow no bound beyond what was seen."
                .to_owned(),
        );
    }
    out
}

/// Why it is not known whether anything changed.
#[must_use]
pub fn why_not(analysis: &Analysis<'_>) -> Option<TooFewStretches> {
    analysis.phases().err()
}

/// The same for scripts.
#[must_use]
pub fn json(analysis: &Analysis<'_>) -> Value {
    match analysis.phases() {
        Ok(found) => json!({"method": METHOD, "found": found, "why_not": null}),
        Err(why) => json!({"method": METHOD, "found": null, "why_not": why.to_string()}),
    }
}
