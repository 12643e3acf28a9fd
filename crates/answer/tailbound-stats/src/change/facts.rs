// SPDX-License-Identifier: MIT OR Apache-2.0
//! What else changed near a change: facts of the machine, its settings, what was asked for.
//!
//! A fact counts where it differs between one run and the next, at most five runs before or after the change: a cause need
//! not come on the same night as its effect is seen. One that differs from run to run (load averages, free memory)
//! explains nothing. The nearest come first.

use std::collections::BTreeMap;
use tailbound_core::order;

use serde::{Deserialize, Serialize};
use tailbound_core::Run;

/// How many runs before and after a change are looked at.
pub const REACH: usize = 5;
/// A fact that differs between more than one in so many neighbours is restless.
const RESTLESS: usize = 3;

/// What a run knew, in words, by name.
pub type RunFacts = BTreeMap<String, String>;

/// One fact before and after.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactChange {
    /// Its name, as in the run file; `plan.*` for what was asked for.
    pub name: String,
    /// Before.
    pub before: String,
    /// After.
    pub after: String,
    /// How many runs after the change it came; negative: before it.
    pub off: i64,
}

/// The facts that changed near the run `at`, the first one after the change; the nearest first.
#[must_use]
pub fn changed(runs: &[&Run], at: usize) -> Vec<FactChange> {
    let from = at.saturating_sub(REACH + 1);
    let window: Vec<RunFacts> = runs
        .iter()
        .skip(from)
        .take(at - from + REACH + 1)
        .map(|run| all(run).into_iter().collect())
        .collect();
    near(&window, at - from)
}

/// The same of runs whose facts are in words already, in the order of time.
#[must_use]
pub fn near(runs: &[RunFacts], at: usize) -> Vec<FactChange> {
    let from = at.saturating_sub(REACH + 1);
    let window = runs.get(from..(at + REACH + 1).min(runs.len())).unwrap_or_default();
    let unknown = || "not recorded".to_owned();
    let mut names: Vec<&String> = window.iter().flat_map(RunFacts::keys).collect();
    order::by(&mut names, Ord::cmp);
    names.dedup();
    let mut out: Vec<FactChange> = Vec::new();
    for name in names {
        let value = |run: &RunFacts| run.get(name).cloned().unwrap_or_else(unknown);
        let moves: Vec<FactChange> = (from + 1..)
            .zip(window.windows(2))
            .filter_map(|(place, pair)| {
                let (before, after) = (value(pair.first()?), value(pair.get(1)?));
                let off = i64::try_from(place).ok()? - i64::try_from(at).ok()?;
                let name = name.clone();
                (before != after).then_some(FactChange { name, before, after, off })
            })
            .collect();
        let is_restless = moves.len() > (window.len() / RESTLESS).max(1);
        if !is_restless {
            // Of two that are as near the earlier one: a cause comes before its effect.
            out.extend(moves.into_iter().min_by_key(|c| (c.off.abs(), c.off)));
        }
    }
    order::by(&mut out, |a, b| (a.off.abs(), a.off, &a.name).cmp(&(b.off.abs(), b.off, &b.name)));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn run(facts: &[(&str, &str)]) -> RunFacts {
        facts.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect()
    }

    #[test]
    fn the_nearest_comes_first_and_what_is_restless_is_not_there() {
        let runs: Vec<RunFacts> = (0..20)
            .map(|i: usize| {
                let governor = if i < 12 { "performance" } else { "powersave" };
                let kernel = if i < 10 { "6.12.1" } else { "6.12.2" };
                let load = i.to_string();
                let old = if i < 3 { "a" } else { "b" };
                run(&[("governor", governor), ("kernel", kernel), ("load", &load), ("old", old)])
            })
            .collect();
        let told: Vec<(String, i64)> =
            near(&runs, 12).into_iter().map(|c| (c.name, c.off)).collect();
        assert_eq!(told, [("governor".to_owned(), 0), ("kernel".to_owned(), -2)]);
        // A fact that came and went again is one as well.
        let mut back = runs;
        for run in back.iter_mut().skip(14) {
            run.insert("governor".to_owned(), "performance".to_owned());
        }
        let first = near(&back, 12).into_iter().next();
        assert_eq!(first.map(|c| (c.after, c.off)), Some(("powersave".to_owned(), 0)));
        assert!(near(&[], 0).is_empty() && near(&back, 99).is_empty());
    }
}
