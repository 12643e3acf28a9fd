// SPDX-License-Identifier: MIT OR Apache-2.0
//! What else was different before and after a change: facts of the machine, its settings, what
//! was asked for.
//!
//! A fact counts only if it is the same in all runs looked at on one side and
//! another, the same again, on the other: load averages and free memory differ from run to run
//! and explain nothing.

use std::collections::BTreeMap;

use serde::Serialize;
use tailbound_core::Run;

/// Runs looked at on each side of a change.
const SIDE: usize = 5;

/// One fact before and after.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FactChange {
    /// Its name, as in the run file; `plan.*` for what was asked for.
    pub name: String,
    /// Before.
    pub before: String,
    /// After.
    pub after: String,
}

/// What of the runs before `at` is not so from `at` on.
#[must_use]
pub fn changed(runs: &[&Run], at: usize) -> Vec<FactChange> {
    let (before, after) = runs.split_at(at.min(runs.len()));
    let before = before.get(before.len().saturating_sub(SIDE)..).unwrap_or_default();
    let after = after.get(..SIDE.min(after.len())).unwrap_or_default();
    let (before, after) = (steady(before), steady(after));
    let unknown = || "not recorded".to_owned();
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort();
    names.dedup();
    names
        .into_iter()
        .filter_map(|name| {
            // `None` inside: it differs from run to run.
            let old = before.get(name).cloned().unwrap_or_else(|| Some(unknown()))?;
            let new = after.get(name).cloned().unwrap_or_else(|| Some(unknown()))?;
            (old != new).then(|| FactChange { name: name.clone(), before: old, after: new })
        })
        .collect()
}

/// Facts by name; `None` where the runs do not agree.
fn steady(runs: &[&Run]) -> BTreeMap<String, Option<String>> {
    let mut out: BTreeMap<String, Option<String>> = BTreeMap::new();
    for (i, run) in runs.iter().enumerate() {
        for (name, value) in all(run) {
            let fresh = i == 0;
            let entry = out.entry(name).or_insert_with(|| fresh.then(|| value.clone()));
            if entry.as_ref().is_some_and(|v| *v != value) {
                *entry = None;
            }
        }
    }
    out
}

fn all(run: &Run) -> Vec<(String, String)> {
    let header = &run.header;
    let mut out: Vec<(String, String)> =
        header.machine.iter().map(|(k, v)| (k.clone(), v.text())).collect();
    out.push(("tool".to_owned(), header.tool.clone()));
    let plan = &header.plan;
    let none = || "none".to_owned();
    out.push(("plan.activations".to_owned(), plan.activations.to_string()));
    out.push((
        "plan.deadline".to_owned(),
        plan.requirement.deadline_ns.map_or_else(none, tailbound_core::units::exact),
    ));
    out.push((
        "plan.cpu_dma_latency_us".to_owned(),
        plan.cpu_dma_latency_us.map_or_else(none, |v| v.to_string()),
    ));
    out.push((
        "plan.tune".to_owned(),
        plan.tune
            .as_ref()
            .map_or_else(none, |t| format!("{} {}", t.name, t.rt_cpus).trim().to_owned()),
    ));
    out.push(("plan.observe".to_owned(), plan.observe.map_or_else(none, |v| v.to_string())));
    out
}
