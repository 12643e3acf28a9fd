// SPDX-License-Identifier: MIT OR Apache-2.0
//! The median of few values in memory.
//!
//! Not here: quantiles of a distribution (`quantile`), of weighted units (`compare::resample`).

/// The median; it reorders. 0 for nothing.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let n = values.len();
    match (values.get(n / 2), values.get((n / 2).wrapping_sub(1))) {
        (Some(a), Some(b)) if n.is_multiple_of(2) => f64::midpoint(*a, *b),
        (Some(a), _) => *a,
        (None, _) => 0.0,
    }
}
