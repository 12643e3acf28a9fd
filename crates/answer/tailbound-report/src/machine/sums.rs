// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts and rates of all CPUs together.

use std::collections::BTreeMap;

/// All that came, whatever CPU.
pub(crate) fn total(counts: &BTreeMap<u32, u64>) -> u64 {
    counts.values().fold(0, |a, b| a.saturating_add(*b))
}

/// All that came in a second, whatever CPU.
pub(crate) fn per_second(rates: &BTreeMap<u32, f64>) -> f64 {
    rates.values().fold(0.0, |a, b| a + b)
}
