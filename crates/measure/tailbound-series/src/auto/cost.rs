// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the loads beside a measurement got done, against the untouched system.
//!
//! Units: ratios to the untouched system. The median over the rounds of the ratio
//! within each: a load that was slow for all sets of a round was slow for another reason.

use std::collections::BTreeMap;

use serde::Serialize;
use tailbound_core::Run;
use tailbound_core::number::Real as _;

/// One load under one set.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// The load.
    pub load: String,
    /// What it did, relative to the untouched system.
    pub ratio: f64,
}

/// Work per second of each load of a run.
fn rates(run: &Run) -> BTreeMap<&str, f64> {
    let mut sums: BTreeMap<&str, (u64, i64)> = BTreeMap::new();
    for l in &run.loads {
        let sum = sums.entry(&l.name).or_default();
        *sum = (sum.0 + l.count, sum.1 + l.span_ns);
    }
    let rate =
        |(name, (count, ns)): (_, (u64, i64))| (ns > 0).then(|| (name, count.real() / ns.real()));
    sums.into_iter().filter_map(rate).collect()
}

/// The loads of `set` against those of `reference`, where both did something.
#[must_use]
pub fn costs(runs: &[Run], reference: &str, set: &str) -> Vec<Cost> {
    let of = |name: &str| -> BTreeMap<u32, &Run> {
        let rounds = runs.iter().filter_map(|r| Some((r.header.round.as_ref()?, r)));
        rounds.filter(|(p, _)| p.variant == name).map(|(p, r)| (p.round, r)).collect()
    };
    let (a, b) = (of(reference), of(set));
    let mut ratios: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (round, a) in &a {
        let Some(b) = b.get(round) else { continue };
        let b = rates(b);
        for (load, was) in rates(a) {
            if let Some(is) = b.get(load).filter(|_| was > 0.0) {
                ratios.entry(load).or_default().push(is / was);
            }
        }
    }
    let median = |(load, mut all): (&str, Vec<f64>)| {
        all.sort_unstable_by(f64::total_cmp);
        let ratio = tailbound_stats::compare::interval::quantile_sorted(&all, 0.5);
        Cost { load: load.to_owned(), ratio }
    };
    ratios.into_iter().map(median).collect()
}
