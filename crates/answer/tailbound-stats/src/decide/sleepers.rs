// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parallel sleepers: the latencies of tasks that fall due together, by their number.
//!
//! Units: ns, per due activation, over all tasks.

use serde::Serialize;
use tailbound_core::{Distribution, Run};

use super::latency;
use crate::quantile;

/// A number of tasks that sleep in parallel.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sleepers {
    /// How many.
    pub tasks: u32,
    /// Due activations of all of them.
    pub n: u64,
    /// Their mean latency.
    pub mean_ns: Option<f64>,
    /// The deepest quantile that the data supports, with its name.
    pub tail: Option<(String, f64)>,
    /// The latest.
    pub max_ns: Option<i64>,
}

/// The runs with tasks, by number; several of one number are put together.
#[must_use]
pub fn sleepers(runs: &[&Run]) -> Vec<Sleepers> {
    let mut numbers: Vec<u32> = runs.iter().filter_map(|r| r.header.plan.tasks).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let mut out: Vec<(u32, Distribution)> = Vec::new();
    for tasks in numbers {
        let mut due = Distribution::default();
        for run in runs.iter().filter(|r| r.header.plan.tasks == Some(tasks)) {
            due.merge(&run.judged_total().1);
        }
        if due.n > 0 {
            out.push((tasks, due));
        }
    }
    // One quantile for all numbers, or their line would jump where the data gets deeper.
    let deepest = latency::QUANTILES.iter().rev().chain([&0.99]).copied().find(|p| {
        !out.is_empty() && out.iter().all(|(_, due)| quantile::quantile(due, *p).ns().is_some())
    });
    out.into_iter()
        .map(|(tasks, due)| Sleepers {
            tasks,
            n: due.n,
            mean_ns: due.mean(),
            tail: deepest
                .and_then(|p| Some((quantile::label(p), quantile::quantile(&due, p).ns()?))),
            max_ns: due.max_ns,
        })
        .collect()
}
