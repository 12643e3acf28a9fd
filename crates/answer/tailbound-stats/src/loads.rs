// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the loads of a run achieved.
//!
//! Units: the load's own, per second.

use std::collections::BTreeMap;

use serde::Serialize;
use tailbound_core::Run;
use tailbound_core::number::Real as _;

/// What one load did over the whole run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoadTotal {
    /// Its position in the plan.
    pub load: u32,
    /// Its name.
    pub name: String,
    /// What is counted.
    pub unit: String,
    /// Units of work in all.
    pub count: u64,
    /// Time covered by its records.
    pub span_ns: i64,
    /// Units of work per second over that time.
    pub rate_per_s: f64,
    /// The least rate of one record.
    pub least_per_s: f64,
}

/// What the loads achieved, in the order of the plan.
#[must_use]
pub fn loads(run: &Run) -> Vec<LoadTotal> {
    let mut all: BTreeMap<u32, LoadTotal> = BTreeMap::new();
    for l in run.loads.iter().filter(|l| l.span_ns > 0) {
        let rate = l.count.real() * 1e9 / l.span_ns.real();
        let t = all.entry(l.load).or_insert_with(|| LoadTotal {
            load: l.load,
            name: l.name.clone(),
            unit: l.unit.clone(),
            count: 0,
            span_ns: 0,
            rate_per_s: 0.0,
            least_per_s: rate,
        });
        t.count = t.count.saturating_add(l.count);
        t.span_ns = t.span_ns.saturating_add(l.span_ns);
        t.least_per_s = t.least_per_s.min(rate);
        t.rate_per_s = t.count.real() * 1e9 / t.span_ns.real();
    }
    all.into_values().collect()
}
