// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers without a unit, as text for people.

/// A number without unit, as skewness and kurtosis are.
#[must_use]
pub(crate) fn unitless(v: Option<f64>) -> String {
    match v {
        None => "unknown".to_owned(),
        Some(v) if !v.is_finite() => "unknown".to_owned(),
        Some(v) if v.abs() >= 1000.0 => format!("{v:.0}"),
        Some(v) => format!("{v:.2}"),
    }
}
